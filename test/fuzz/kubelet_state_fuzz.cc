// The three state files. First byte: which of them. What is accepted parses to the same value
// again.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "podresources/kubelet_state.h"

namespace {

template <class T>
void Check(absl::StatusOr<T> (*parse)(const std::string&), const std::string& json) {
  const absl::StatusOr<T> first = parse(json);
  if (!first.ok()) return;
  const absl::StatusOr<T> second = parse(json);
  if (!second.ok() || !(*first == *second)) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string json(data + 1, data + size);
  switch (data[0] % 3) {
    case 0:
      Check(podresources::ParseCpuManagerState, json);
      break;
    case 1:
      Check(podresources::ParseMemoryManagerState, json);
      break;
    default:
      Check(podresources::ParseDeviceCheckpoint, json);
  }
  return 0;
}
