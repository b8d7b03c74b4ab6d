// Any bytes as a kubelet's answer to /configz, on a host that shows nothing else: never an error of
// the whole, and every value says where it is from.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "podresources/kubelet_config.h"
#include "podresources/kubelet_state.h"
#include "test/support/temp_tree.h"

namespace {

template <class T>
void CheckSource(const podresources::Sourced<T>& value) {
  using Source = podresources::ConfigSource;
  const bool known = value.source == Source::kConfigz || value.source == Source::kDefault;
  if (value.value && !known) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  setenv("TMPDIR", "/dev/shm", 1);
  static const test::TempTree empty;
  const std::string text(data, data + size);
  const absl::StatusOr<podresources::KubeletConfig> config =
      podresources::ReadKubeletConfig(empty.Open(), {.configz = text});
  if (!config.ok()) std::abort();
  CheckSource(config->topology_policy);
  CheckSource(config->topology_scope);
  CheckSource(config->topology_options);
  CheckSource(config->cpu_policy);
  CheckSource(config->cpu_options);
  CheckSource(config->reserved_cpus);
  CheckSource(config->memory_policy);
  CheckSource(config->reserved_memory);
  CheckSource(config->feature_gates);
  podresources::CheckKubeletConfig(*config, {}, static_cast<int>(size % 20));
  return 0;
}
