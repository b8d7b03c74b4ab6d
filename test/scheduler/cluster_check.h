#pragma once

#include <string>

#include "placement/node_placement.h"
#include "scheduler/ledger/pod.h"
#include "scheduler/ledger/view.h"
#include "test/reference/naive_admit.h"

namespace test {

// The node as an agent that sees everything would publish it: the machine with what the kubelet has
// free and given out.
placement::NodePlacement Published(placement::NodePlacement node,
                                   const reference::NaiveKubelet& kubelet);

// What holds of a node's accounts at every moment; "" if it does. Free is never negative and never
// more than there is, whatever is not free is held by exactly one pod, and no pod is charged both
// as seen and as waiting.
std::string CheckAccounts(const scheduler::ledger::NodeView& view);

// Whether a pod of the node that is alive, as far as the ledger was told, is charged.
bool IsCharged(const scheduler::ledger::NodeView& view, const scheduler::ledger::PodFacts& facts);

// Whether the accounts are what an observation of this moment says, and nobody waits; "" if so.
std::string CheckTruth(const scheduler::ledger::NodeView& view,
                       const placement::NodePlacement& truth);

}  // namespace test
