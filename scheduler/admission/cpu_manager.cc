#include "scheduler/admission/cpu_manager.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "scheduler/admission/cpu_take.h"

namespace scheduler::admission {
namespace {

int SocketsOf(const CpuTopology& cpu, Mask mask) {
  int sockets = 0;
  for (const Bits& socket : cpu.in_socket) {
    for (Mask rest = mask; rest != 0; rest &= rest - 1) {
      if (!socket.Intersects(cpu.in_numa[At(std::countr_zero(rest))])) continue;
      ++sockets;
      break;
    }
  }
  return sockets;
}

// full-pcpus-only (enforceSMTAlignment): the request must be whole cores, and the free CPUs of the
// whole machine, without cores that hold a reserved thread, must be as many.
bool BreaksSmtAlignment(const Machine& machine, const Pool& pool, std::int64_t need) {
  if (!machine.settings.full_pcpus_only) return false;
  if (machine.cpu.cpus_per_core > 0 && need % machine.cpu.cpus_per_core != 0) return true;
  return need > (pool.cpus - machine.reserved_physical_cpus).Count();
}

// The CPUs that an affinity stands for: those of its nodes, or of their whole sockets with
// align-by-socket (getAlignedCPUs).
Bits AlignedCpus(const Machine& machine, Mask affinity, const Bits& from) {
  const CpuTopology& cpu = machine.cpu;
  Bits aligned(cpu.cpu_slots);
  for (Mask rest = affinity; rest != 0; rest &= rest - 1) {
    aligned |= cpu.in_numa[At(std::countr_zero(rest))];
  }
  if (machine.settings.align_by_socket) {
    Bits sockets(cpu.cpu_slots);
    for (const Bits& socket : cpu.in_socket) {
      if (socket.Intersects(aligned)) sockets |= socket;
    }
    aligned = sockets;
  }
  return aligned & from;
}

CpuError ErrorOf(TakenCpus::Outcome outcome) {
  switch (outcome) {
    case TakenCpus::Outcome::kTaken:
      return CpuError::kNone;
    case TakenCpus::Outcome::kNotEnough:
      return CpuError::kNotEnough;
    case TakenCpus::Outcome::kEndless:
      return CpuError::kEndless;
  }
  return CpuError::kNotEnough;
}

}  // namespace

CpuHints::CpuHints(const Machine& machine, const Bits& available, const Bits& reusable,
                   std::int64_t need)
    : machine_(machine), need_(need) {
  const CpuTopology& cpu = machine.cpu;
  const bool reuse = !reusable.None();
  supply_.resize(At(machine.numa_count()), 0);
  for (Mask rest = cpu.nodes_with_cpus; rest != 0; rest &= rest - 1) {
    const std::size_t node = At(std::countr_zero(rest));
    supply_[node] = cpu.in_numa[node].CountCommon(available);
    if (!reuse) continue;
    const int reused = cpu.in_numa[node].CountCommon(reusable);
    if (reused > 0) required_ |= Mask{1} << node;
    supply_[node] += reused;
  }
  width_ = cpu.reach.Width(need, std::popcount(cpu.nodes_with_cpus));
}

bool CpuHints::Feasible(Mask mask) const {
  if ((mask & required_) != required_) return false;
  std::int64_t supply = 0;
  for (Mask rest = mask; rest != 0; rest &= rest - 1) supply += supply_[At(std::countr_zero(rest))];
  return supply >= need_;
}

bool CpuHints::Preferred(Mask mask) const {
  if (std::popcount(mask) == width_) return true;
  if (!machine_.settings.align_by_socket) return false;
  // isHintSocketAligned: the mask is on as few sockets as the width needs.
  const int nodes_per_socket =
      machine_.cpu.sockets() == 0 ? 0 : machine_.cpu.numa_nodes / machine_.cpu.sockets();
  if (nodes_per_socket == 0) return false;
  return SocketsOf(machine_.cpu, mask) == (width_ + nodes_per_socket - 1) / nodes_per_socket;
}

CpuError CanAllocateCpus(const Machine& machine, std::int64_t need, Mask affinity,
                         const Bits& reusable, const Pool& pool) {
  if (machine.settings.distribute_cpus_across_numa) {
    Pool trial = pool;
    return AllocateCpus(machine, need, affinity, reusable, trial).error;
  }
  if (BreaksSmtAlignment(machine, pool, need)) return CpuError::kSmtAlignment;
  return need > (pool.cpus | reusable).Count() ? CpuError::kNotEnough : CpuError::kNone;
}

CpuGrant AllocateCpus(const Machine& machine, std::int64_t need, Mask affinity,
                      const Bits& reusable, Pool& pool) {
  if (BreaksSmtAlignment(machine, pool, need))
    return {.error = CpuError::kSmtAlignment, .cpus = {}};
  Bits allocatable = pool.cpus | reusable;
  if (need > allocatable.Count()) return {.error = CpuError::kNotEnough, .cpus = {}};
  const int wanted = static_cast<int>(need);
  Bits taken(machine.cpu.cpu_slots);
  if (affinity != 0) {
    const Bits aligned = AlignedCpus(machine, affinity, allocatable);
    TakenCpus first =
        TakeCpus(machine, aligned, std::min(wanted, aligned.Count()), std::popcount(affinity));
    const CpuError error = ErrorOf(first.outcome);
    if (error != CpuError::kNone) return {.error = error, .cpus = {}};
    taken = std::move(first.cpus);
    allocatable -= taken;
  }
  const int missing = wanted - taken.Count();
  if (missing > 0) {
    const TakenCpus rest = TakeCpus(machine, allocatable, missing, 0);
    const CpuError error = ErrorOf(rest.outcome);
    if (error != CpuError::kNone) return {.error = error, .cpus = {}};
    taken |= rest.cpus;
  }
  pool.cpus -= taken;
  return {.error = CpuError::kNone, .cpus = std::move(taken)};
}

}  // namespace scheduler::admission
