#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/diagnostic.h"
#include "placement/node_placement.h"
#include "scheduler/admission/request.h"
#include "scheduler/admission/state.h"
#include "scheduler/ledger/view.h"

namespace scheduler::reconcile {

// What an agent says of its node, made ready for the accounts.
struct Observed {
  // Pods by UID; one whose UID could not be told by "namespace/name", which is no UID.
  std::shared_ptr<const admission::NodeState> state;
  std::vector<std::string> known;  // UIDs of all pods that the kubelet lists; sorted
  bool current = true;  // false: the agent says itself that it could not look, and shows its last
  std::string boot_id;
  placement::KubeletFacts kubelet;  // compared with the next one's
  base::Diagnostics gaps;           // what the object lacks; sorted
  ledger::Roughly roughly;          // for which pods that matters

  bool Lists(const std::string& uid) const;
};

// NotFound if the object says that there is no data, or lacks what every verdict needs, policy and
// NUMA nodes; InvalidArgument if it contradicts itself. What else is missing, in an object of an
// older agent, is filled in and named, and lowers the grade for pods that it matters to.
absl::StatusOr<Observed> Observe(placement::NodePlacement placement, admission::Machines& machines);

// Whether everything that must hold something does. The kubelet lists a pod before it admits it,
// and under scope container admits its containers one by one. Plain init containers do not count:
// the kubelet does not list them.
bool IsComplete(const admission::Machine& machine, const admission::Request& request,
                const std::vector<admission::Holding>& held);

// Whether the pod would hold anything on this machine.
bool WantsSomething(const admission::Machine& machine, const admission::Request& request);

}  // namespace scheduler::reconcile
