#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "base/diagnostic.h"
#include "kube/pod.h"
#include "placement/node_resource_topology.h"
#include "scheduler/admission/state.h"

namespace scheduler::admission {

// What the Node object adds, where it is at hand.
struct NodeFacts {
  std::optional<kube::Resources> allocatable;  // status.allocatable
  std::string kubelet_version;  // status.nodeInfo.kubeletVersion; "": the rules of v1.37 are taken
};

struct CoarseState {
  NodeState state;                // its machine is of grade kCoarse
  base::Diagnostics assumptions;  // what was filled in, left out or corrected; sorted
};

// The state of a node by its NodeResourceTopology alone, whoever published it. That object has
// counts per NUMA node: ids of CPUs and devices are invented here, as many as are counted, each CPU
// a core of its own. docs/admission.md has the rules and all codes of assumptions.
//
// What the object lacks is never a reason to refuse a pod: a resource that no zone lists is not
// aligned. NotFound if the object says too little for any verdict (no zone of a NUMA node, no
// policy of the topology manager), InvalidArgument if it contradicts itself beyond repair (a zone
// or a resource twice, more CPUs or devices than a node can have). Pure.
absl::StatusOr<CoarseState> CoarseStateFrom(const placement::NodeResourceTopology& nrt,
                                            const NodeFacts& node = {});

}  // namespace scheduler::admission
