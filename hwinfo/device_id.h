#pragma once

#include <optional>
#include <string>

#include "hwinfo/topology.h"

namespace base {
class FileTree;
}

namespace hwinfo {

// What a device id of the kubelet stands for on this machine.
struct ResolvedDevice {
  std::optional<PciAddress> address;     // nullopt: unresolved
  std::optional<int> replica;            // time-slicing, MPS, vGPU: the share's number
  std::optional<std::string> partition;  // "MIG-…", "gi3", "amdgpu_xcp_30"
  std::string reason;                    // why it is unresolved, one clause; "" otherwise
  bool operator==(const ResolvedDevice&) const = default;
};

// Resolves the id that a device plugin gave (podresources device_ids, checkpoint): NVIDIA UUIDs,
// MIG, replicas, GKE names, PCI addresses, AMD partitions, Intel card names, auxiliary devices.
// `root` is the tree the topology was read from; nullptr (an XML file) leaves names that need it
// unresolved.
ResolvedDevice ResolveDeviceId(const Topology& topology, const base::FileTree* root,
                               const std::string& resource, const std::string& id);

// What a DRA driver publishes about a device, as far as it tells where that is.
struct DraAttributes {
  std::optional<PciAddress> address = {};
  std::string gpu_uuid = {};          // of a partition: its GPU's; "" not said
  std::optional<int> numa_node = {};  // the driver's word
  bool operator==(const DraAttributes&) const = default;
};

// The same for a device of a DRA driver: driver and device name as podresources gives them, by what
// the driver published about it, else by its name.
ResolvedDevice ResolveDraDevice(const Topology& topology, const base::FileTree* root,
                                const std::string& driver, const std::string& device,
                                const DraAttributes& attributes = {});

}  // namespace hwinfo
