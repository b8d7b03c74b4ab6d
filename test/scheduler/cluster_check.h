#pragma once

#include <map>
#include <string>

#include "placement/node_placement.h"
#include "placement/node_resource_topology.h"
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

// Of a node whose machine is known by counts: not less is taken than the running pods that were
// told have of CPUs and devices, as far as there is; "" if so.
std::string CheckSums(const scheduler::ledger::NodeView& view,
                      const std::map<std::string, scheduler::ledger::PodFacts>& told);

// Whether as much is free on each NUMA node as NodeResourceTopology says, if counts can tell all of
// this machine; "" if so.
std::string CheckCounts(const scheduler::ledger::NodeView& view,
                        const placement::NodeResourceTopology& truth,
                        const placement::NodePlacement& facts);

// Whether the accounts are what an observation of this moment says, and nobody waits; "" if so.
std::string CheckTruth(const scheduler::ledger::NodeView& view,
                       const placement::NodePlacement& truth);

}  // namespace test
