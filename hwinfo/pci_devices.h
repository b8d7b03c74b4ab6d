#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/cpu_set.h"
#include "base/diagnostic.h"
#include "base/file_tree.h"
#include "hwinfo/topology.h"

namespace hwinfo {

// The GPUs, accelerators, NICs and NVSwitches below sys/bus/pci, their virtual functions, and
// whatever else is bound to vfio-pci; ascending by address. From sysfs and procfs alone, so that
// PCI domains above ffff are there, which hwloc may be built without.
//
// Fills all but hwloc_numa_nodes. numa_node is the device's own if that is one of `online_nodes`,
// else that of the nearest upstream bridge that has one; otherwise it stays unknown. A gap or a
// value that cannot be becomes a diagnostic.
std::vector<PciDevice> ReadPciDevices(const base::FileTree& root,
                                      const base::NumaMask& online_nodes,
                                      base::Diagnostics& diagnostics);

// The kind of a PCI function, by class and vendor; nothing if it is none that placement cares for.
// Display controllers of class 0300 count only where they compute (NVIDIA, AMD, Intel's discrete
// ones): the others are the screens of management controllers and virtual machines.
std::optional<DeviceKind> KindOf(std::uint32_t device_class, std::uint32_t vendor,
                                 const PciAddress& address);

}  // namespace hwinfo
