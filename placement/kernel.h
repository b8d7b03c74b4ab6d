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

// Gives the containers of a pod what the kernel enforces for them. Cgroups have the runtime's ids,
// which `names` turns into containers' names. One that has no name there is a container if it has
// exactly that one's exclusive CPUs (or, of one without, its memory nodes). It is never taken for a
// container that differs: it may be the pod's sandbox, or an init container that the kubelet does
// not list and that runs while the others do not.
void AttachKernelFacts(const std::vector<const hwinfo::ContainerCgroup*>& cgroups,
                       const std::map<std::string, std::string>& names, PlacedPod& pod,
                       base::Diagnostics& diagnostics);

}  // namespace placement
