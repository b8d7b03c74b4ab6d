#pragma once

#include "absl/status/statusor.h"
#include "hwinfo/topology.h"

namespace base {
class FileTree;
}

namespace hwinfo {

// The GPU of a MIG instance that is known by its UUID alone. Neither sysfs nor procfs ties that
// UUID to a GPU, so the answer is certain only where a single GPU of the machine has MIG instances
// (proc/driver/nvidia/capabilities/gpuN/mig/giM, N being the minor). Otherwise NotFound, with the
// reason in one clause. `root` may be nullptr: nothing to look into.
absl::StatusOr<PciAddress> FindOnlyMigGpu(const Topology& topology, const base::FileTree* root);

}  // namespace hwinfo
