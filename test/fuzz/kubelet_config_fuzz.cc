// A kubelet's command line and its configuration, split at the first byte 0xff: both are read,
// merged and checked, and give the same values twice.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "podresources/kubelet_config.h"
#include "podresources/kubelet_fields.h"
#include "podresources/kubelet_flags.h"
#include "podresources/kubelet_process.h"
#include "podresources/kubelet_state.h"
#include "podresources/kubelet_yaml.h"

namespace {

podresources::KubeletConfig Read(const std::string& cmdline, const std::string& yaml) {
  using namespace podresources;  // NOLINT(google-build-using-namespace)
  KubeletConfig config;
  MergedConfig merged;
  merged.whole = true;
  if (const auto document = ParseYaml(yaml); document.ok()) {
    LayDocument(*document, {ConfigSource::kFile, "file"}, merged);
    LayEvictionDefault(merged);
    LayDocument(*document, {ConfigSource::kFile, "drop-in"}, merged);
  }
  const auto process = RecognizeKubelet(SplitCommandLine(cmdline));
  if (process) LayFlags(ParseKubeletFlags(process->arguments), merged);
  LayFlags(ParseKubeletFlags(ParseArgumentsFile(cmdline)), merged);
  ReadFields(merged, config);
  return config;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string input(data, data + size);
  const std::size_t middle = input.find('\xff');
  const std::string cmdline = input.substr(0, middle);
  const std::string yaml = middle == std::string::npos ? input : input.substr(middle + 1);
  const podresources::KubeletConfig config = Read(cmdline, yaml);
  if (!(config == Read(cmdline, yaml))) std::abort();
  podresources::CheckKubeletConfig(config, {}, static_cast<int>(size % 20));
  return 0;
}
