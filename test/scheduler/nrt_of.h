#pragma once

#include "placement/node_placement.h"
#include "placement/node_resource_topology.h"
#include "scheduler/admission/state.h"

namespace scheduler::admission {

// What the agent would publish as NodeResourceTopology of a node in this state. `node` describes
// the hardware and the kubelet that the state was built from.
placement::NodeResourceTopology NrtOf(placement::NodePlacement node, const NodeState& state);

}  // namespace scheduler::admission
