#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/cpu_set.h"
#include "base/file_tree.h"
#include "hwinfo/topology.h"

namespace hwinfo {

// What hwloc says of a machine, as plain values with the kernel's ids.
struct HwlocView {
  struct Pci {
    PciDevice device;           // only what hwloc knows: ids, class, bridges, names
    base::NumaMask numa_nodes;  // of the nearest object that is no I/O object; may be all nodes
  };
  std::vector<Cpu> cpus;        // online, ascending; numa_node is not filled
  base::CpuSet online;          // their ids
  base::CpuSet complete;        // and those that hwloc knows to exist besides
  std::vector<NumaNode> nodes;  // ascending; cpus stays empty, nearest_cpus is hwloc's cpuset
  std::map<int, base::CpuSet> complete_cpus;  // by NUMA node: with CPUs that are not shown
  std::map<PciAddress, Pci> pci;
  std::string architecture;  // "x86_64"; "" if hwloc was not told
};

// Loads hwloc with the whole machine, not only the part that our own cgroup leaves us. Sets
// process-wide environment variables: not while other threads run.
absl::StatusOr<HwlocView> ViewRoot(const base::FileTree& root);
absl::StatusOr<HwlocView> ViewXml(const std::string& path);

}  // namespace hwinfo
