// Device ids and DRA names come from plugins: whatever they are, the answer is an address of this
// machine or a reason, and the same one twice.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "base/file_tree.h"
#include "hwinfo/amd_kfd.h"
#include "hwinfo/device_id.h"
#include "hwinfo/nvidia_procfs.h"

namespace {

hwinfo::Topology Node() {
  hwinfo::Topology topology;
  hwinfo::PciDevice gpu;
  gpu.address = {.domain = 0, .bus = 0x1b, .device = 0, .function = 0};
  gpu.vendor = hwinfo::kNvidia;
  gpu.uuid = "GPU-8a7b1c2d-0000-1111-2222-333344445555";
  gpu.minor = 0;
  gpu.names = {"card0", "renderD128"};
  gpu.partitions = {"amdgpu_xcp_3"};
  topology.devices = {gpu};
  return topology;
}

void Check(const hwinfo::ResolvedDevice& device) {
  if (device.address.has_value() == !device.reason.empty()) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const hwinfo::Topology topology = Node();
  static const absl::StatusOr<base::FileTree> root = base::FileTree::Open("/");
  const std::string text(reinterpret_cast<const char*>(data), size);
  const base::FileTree* const tree = root.ok() && size % 2 == 0 ? &*root : nullptr;
  const auto device = hwinfo::ResolveDeviceId(topology, tree, "example.com/gpu", text);
  Check(device);
  if (device != hwinfo::ResolveDeviceId(topology, tree, "example.com/gpu", text)) std::abort();
  for (const char* driver : {"gpu.nvidia.com", "gpu.amd.com", "gpu.intel.com", "other"}) {
    Check(hwinfo::ResolveDraDevice(topology, tree, driver, text));
  }
  hwinfo::ParseNvidiaInformation(text);
  hwinfo::ParseKfdNode(text);
  return 0;
}
