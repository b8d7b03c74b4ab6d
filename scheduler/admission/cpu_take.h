#pragma once

#include <optional>

#include "scheduler/admission/bits.h"
#include "scheduler/admission/machine.h"

namespace scheduler::admission {

// What became of a wish for CPUs.
struct TakenCpus {
  enum class Outcome { kTaken, kNotEnough, kEndless };  // kEndless: the kubelet would never return
  Outcome outcome = Outcome::kNotEnough;
  Bits cpus;
};

// Which CPUs the static policy takes from those available (kubelet 1.35 to 1.38,
// cpu_assignment.go; release.h says what differs): packed onto whole NUMA nodes, sockets, L3 caches
// and cores, or evenly over NUMA nodes with distribute-cpus-across-numa. `hinted_nodes` is the
// number of nodes of the merged hint that the CPUs are taken for, 0 if there is none.
TakenCpus TakeCpus(const Machine& machine, const Bits& available, int need, int hinted_nodes);

// The packed way alone, with or without L3 caches (takeByTopologyNUMAPacked).
std::optional<Bits> TakePacked(const Machine& machine, const Bits& available, int need,
                               bool by_uncore);

// The even way alone (takeByTopologyNUMADistributed), in groups of `group` CPUs.
TakenCpus TakeDistributed(const Machine& machine, const Bits& available, int need, int group,
                          int hinted_nodes);

// A taken set, or none, as an outcome.
TakenCpus OutcomeOf(std::optional<Bits> cpus);

// The order in which the kubelet goes through NUMA nodes and sockets: those with the fewest
// available CPUs first, then by id; nodes within sockets or sockets within nodes, whichever is the
// larger unit.
using Order = absl::InlinedVector<int, 16>;
Order NumaOrder(const CpuTopology& cpu, const Bits& available);
Order SocketOrder(const CpuTopology& cpu, const Bits& available);

}  // namespace scheduler::admission
