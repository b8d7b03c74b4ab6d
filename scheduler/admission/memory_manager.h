#pragma once

#include <cstdint>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "scheduler/admission/hints.h"
#include "scheduler/admission/state.h"

namespace scheduler::admission {

// Bytes by memory type (a position in Machine::memory_types), for the types that are asked for.
using MemoryDemand = absl::InlinedVector<std::pair<int, std::int64_t>, 3>;

// Memory of the pod's init containers that the next container may take over. The kubelet keeps it
// by the exact set of NUMA nodes: another set takes over nothing.
class ReusableMemory {
 public:
  std::int64_t Of(Mask nodes, int type) const;
  void Offer(Mask nodes, int type, std::int64_t bytes);  // an init container's: the largest counts
  void TakeOver(Mask nodes, int type, std::int64_t bytes);
  bool empty() const { return entries_.empty(); }

 private:
  struct Entry {
    Mask nodes;
    int type;
    std::int64_t bytes;
  };
  absl::InlinedVector<Entry, 4> entries_;
};

// The static memory manager's hints (kubelet 1.37, policy_static.go, calculateHints). All types of
// a request have the same masks. The width goes by allocatable memory, of all types jointly, and is
// lowered also by masks that the group rules forbid: a node in a group of several cannot take
// blocks of its own, a node with blocks of its own cannot join a group, a group is used again as it
// is.
class MemoryHints : public Hints {
 public:
  MemoryHints(const Machine& machine, const Pool& pool, const MemoryDemand& demand,
              const ReusableMemory& reusable);

  Mask nodes() const override { return machine_.all_nodes; }
  bool Feasible(Mask mask) const override;
  int width() const override { return width_; }
  std::int64_t Supply(int node) const override;
  std::int64_t Need() const override { return reusable_.empty() ? demand_.front().second : 0; }

  // Whether any mask at all is feasible: without one the manager has no opinion.
  bool Any() const;
  // The feasible mask that holds `within` and is best: preferred first, then narrowest, then
  // lowest. 0 if there is none.
  Mask Best(Mask within) const;

 private:
  bool AllowedByGroups(Mask mask) const;
  bool Allocatable(Mask mask) const;
  int FindWidth() const;

  const Machine& machine_;
  const Pool& pool_;
  const MemoryDemand& demand_;
  const ReusableMemory& reusable_;
  int width_ = 1;
};

// Whether the mask's nodes have as much free of each type (isAffinitySatisfyRequest). What init
// containers leave does not count here.
bool Satisfies(const Pool& pool, Mask mask, const MemoryDemand& demand);

// The NUMA nodes that AllocateMemory takes the memory from; 0 where the kubelet answers
// UnexpectedAdmissionError. `affinity` 0 is "none", `preferred` the merged hint's word.
Mask ChooseMemoryNodes(const Machine& machine, const MemoryDemand& demand, Mask affinity,
                       bool preferred, const ReusableMemory& reusable, const Pool& pool);

// Takes memory for one container off the pool; the blocks, none if it is refused.
MemoryBlocks AllocateMemory(const Machine& machine, const MemoryDemand& demand, Mask affinity,
                            bool preferred, const ReusableMemory& reusable, Pool& pool);

}  // namespace scheduler::admission
