#pragma once

#include <cstddef>
#include <vector>

#include "scheduler/admission/request.h"
#include "scheduler/admission/state.h"
#include "scheduler/admission/verdict.h"

namespace scheduler::admission {

// What the kubelet of this node would answer to this pod now, and what the pod would get. Pure. The
// topology manager comes first in the kubelet's chain of admission handlers, then the check of the
// node's sums, which is separate (node_sums.h).
Verdict Admit(const NodeState& state, const Request& request);

// All answers that are possible where a plugin may choose among devices of different NUMA nodes,
// devices that name the same NUMA nodes being alike. Admit's, which goes by the plugin's order, is
// the first.
struct Alternatives {
  std::vector<Verdict> verdicts;
  bool complete = true;  // false: there are more than `limit`
};
Alternatives AdmitAll(const NodeState& state, const Request& request, std::size_t limit = 64);

// The answer alone, in a fraction of the time and, on machines of up to 8 NUMA nodes and 256 CPUs,
// without heap: nothing is allocated. Equals Admit's, but that the merged hint of a rejection under
// restricted is not computed.
Outcome Answer(const NodeState& state, const Request& request);

// Enters the verdict into the accounts: what an admitted pod holds, or what a rejected one changed.
void Commit(const std::string& uid, Verdict verdict, NodeState& state);

}  // namespace scheduler::admission
