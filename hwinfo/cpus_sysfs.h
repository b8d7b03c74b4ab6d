#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "base/cpu_set.h"
#include "base/diagnostic.h"
#include "base/file_tree.h"
#include "hwinfo/topology.h"

namespace hwinfo {

struct SysfsCpus {
  std::vector<Cpu> cpus;  // online, ascending; numa_node and kind are left to others
  base::CpuSet online;    // their ids
  base::CpuSet offline;   // present, not online
  base::CpuSet isolated;
};

// Reads sys/devices/system/cpu. An error if there is no CPU to be seen; whatever else is missing or
// unreadable leaves -1 and a diagnostic.
absl::StatusOr<SysfsCpus> ReadCpus(const base::FileTree& root, base::Diagnostics& diagnostics);

}  // namespace hwinfo
