#pragma once

#include "hwinfo/hwloc_view.h"
#include "hwinfo/topology.h"

namespace hwinfo {

// The whole topology by hwloc's word alone: for XML files, and for trees without a usable sysfs.
// hwloc gives NUMA nodes without CPUs those that are near, so which nodes have CPUs is inferred:
// a CPU is on one node only, so it is on the smallest (then the lowest) node that is no HBM, NVM or
// GPU memory.
Topology FromHwloc(const HwlocView& hwloc);

// NUMA nodes as FromHwloc infers them.
std::vector<NumaNode> NodesFromHwloc(const HwlocView& hwloc);

// Adds to a topology read from sysfs what only hwloc knows: kinds of cores, types of memory, the
// CPUs near a node without CPUs. Nothing that sysfs says is replaced; where the two differ there is
// a diagnostic.
void AddHwloc(const HwlocView& hwloc, Topology& topology);

// Adds hwloc's anchors to the devices: they settle a locality that sysfs leaves open, if they name
// one NUMA node with CPUs.
void AddAnchors(const HwlocView& hwloc, Topology& topology);

}  // namespace hwinfo
