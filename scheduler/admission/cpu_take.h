#pragma once

#include <optional>

#include "scheduler/admission/bits.h"
#include "scheduler/admission/machine.h"

namespace scheduler::admission {

// Which CPUs the static policy takes from those available (kubelet 1.37, cpu_assignment.go): packed
// onto whole NUMA nodes, sockets, L3 caches and cores, or evenly over NUMA nodes with
// distribute-cpus-across-numa. Nothing if they do not suffice. Exact for 1.37; see
// docs/admission.md for what differs in other releases.
std::optional<Bits> TakeCpus(const Machine& machine, const Bits& available, int need);

// The packed way alone, with or without L3 caches (takeByTopologyNUMAPacked).
std::optional<Bits> TakePacked(const Machine& machine, const Bits& available, int need,
                               bool by_uncore);

// The even way alone (takeByTopologyNUMADistributed), in groups of `group` CPUs.
std::optional<Bits> TakeDistributed(const Machine& machine, const Bits& available, int need,
                                    int group);

// The order in which the kubelet goes through NUMA nodes and sockets: those with the fewest
// available CPUs first, then by id; nodes within sockets or sockets within nodes, whichever is the
// larger unit.
using Order = absl::InlinedVector<int, 16>;
Order NumaOrder(const CpuTopology& cpu, const Bits& available);
Order SocketOrder(const CpuTopology& cpu, const Bits& available);

}  // namespace scheduler::admission
