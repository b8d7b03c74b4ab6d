#pragma once

#include <string>
#include <vector>

#include "scheduler/admission/request.h"
#include "scheduler/admission/state.h"
#include "scheduler/ledger/pod.h"

// Charging pods to a node's accounts without asking the kubelet's algorithm, or though it says no.
namespace scheduler::reconcile {

// The NUMA nodes on which something is held.
admission::Mask NodesOf(const admission::Machine& machine,
                        const std::vector<admission::Holding>& holdings);

// The pod holds this again, as far as nobody else does by now.
void HoldAgain(const std::string& uid, std::vector<admission::Holding> holdings,
               admission::NodeState& state);

// Lets the kubelet's algorithm place the pod; false, and no change, if it would refuse it.
bool HoldAsPredicted(const std::string& uid, const ledger::Shape& shape, bool started,
                     admission::NodeState& state);

// The pod runs here though it does not fit as we predict others to lie: it takes what is free, from
// the lowest NUMA node on, so that the sums are right.
void HoldAnywhere(const std::string& uid, const ledger::Shape& shape, admission::NodeState& state);

// What is taken and given out of everything together, wherever it is: equal for two states of one
// machine in which the same pods hold the same amounts.
std::vector<std::int64_t> Sums(const admission::Pool& pool);

}  // namespace scheduler::reconcile
