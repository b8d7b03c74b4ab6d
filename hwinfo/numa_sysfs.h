#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "base/cpu_set.h"
#include "base/diagnostic.h"
#include "base/file_tree.h"
#include "hwinfo/topology.h"

namespace hwinfo {

// Reads sys/devices/system/node: the online nodes, ascending, with their online CPUs, memory, huge
// pages and distances; the rest is left to others. NotFound if the kernel shows no NUMA nodes at
// all. What is missing or unreadable in parts leaves a diagnostic.
absl::StatusOr<std::vector<NumaNode>> ReadNumaNodes(const base::FileTree& root,
                                                    const base::CpuSet& online_cpus,
                                                    base::Diagnostics& diagnostics);

// Node 0 for a host whose kernel shows no NUMA nodes: all CPUs, the host's memory and huge pages.
NumaNode ReadHostAsOneNode(const base::FileTree& root, const base::CpuSet& online_cpus,
                           base::Diagnostics& diagnostics);

// Where several nodes claim a CPU, firmware is wrong and the kernel has settled on one: the one
// whose folder links to the CPU. The kubelet goes by these links, too. CPUs that have one such link
// get their numa_node here.
void SettleOverlaps(const base::FileTree& root, Topology& topology);

}  // namespace hwinfo
