#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/diagnostic.h"
#include "hwinfo/enforced.h"
#include "placement/node_placement.h"

namespace placement {

using CgroupsByUid = std::map<std::string, std::vector<const hwinfo::ContainerCgroup*>>;

CgroupsByUid GroupByUid(const hwinfo::Enforced& enforced);

// Gives the containers of a pod what the kernel enforces for them. Cgroups have the runtime's ids
// and no names, and the pod's sandbox is one of them, so containers are told by what they must look
// like: a cgroup with exactly a container's exclusive CPUs (or, for one without, with exactly its
// memory nodes) is that container. A container that no cgroup looks like has drifted if it is
// certain that it runs: the pod has a cgroup for each container and one more, or one that is not
// taken holds more memory than any sandbox does. Otherwise it may just not be running.
void AttachKernelFacts(const std::vector<const hwinfo::ContainerCgroup*>& cgroups, PlacedPod& pod,
                       base::Diagnostics& diagnostics);

}  // namespace placement
