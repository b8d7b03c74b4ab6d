#pragma once

#include "scheduler/admission/request.h"
#include "scheduler/admission/state.h"
#include "scheduler/admission/verdict.h"

namespace scheduler::admission {

// What the kubelet of this node would answer to this pod now, and what the pod would get. Pure. The
// topology manager comes first in the kubelet's chain of admission handlers, then the check of the
// node's sums, which is separate (node_sums.h).
Verdict Admit(const NodeState& state, const Request& request);

// Enters the verdict into the accounts: what an admitted pod holds, or what a rejected one changed.
void Commit(const std::string& uid, Verdict verdict, NodeState& state);

}  // namespace scheduler::admission
