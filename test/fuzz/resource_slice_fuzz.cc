// Any bytes as a ResourceSlice: an error, or devices whose attributes can be used without another
// look.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "agent/resource_slices.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(data, data + size);
  const absl::StatusOr<agent::ResourceSlice> slice = agent::ReadResourceSlice({.json = text});
  if (!slice.ok()) return 0;
  for (const auto& [name, device] : slice->devices) {
    if (device.numa_node.value_or(0) < 0) std::abort();
    if (!device.gpu_uuid.empty() && !device.gpu_uuid.starts_with("GPU-")) std::abort();
  }
  return 0;
}
