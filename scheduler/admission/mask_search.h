#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "absl/container/inlined_vector.h"
#include "scheduler/admission/hints.h"

namespace scheduler::admission {

// Goes through the masks of `size` nodes out of `candidates` that hold all of `required`, lowest
// numeric value first, leaving out those that cannot be feasible for one of the resources by what
// their nodes supply together. Ends when `visit(mask)` returns false.
template <class Visit>
class MaskSearch {
 public:
  MaskSearch(Mask candidates, Mask required, const absl::InlinedVector<const Hints*, 4>& resources,
             Visit visit)
      : required_(required), visit_(visit) {
    for (Mask rest = candidates; rest != 0; rest &= rest - 1) {
      nodes_.push_back(std::countr_zero(rest));
    }
    for (const Hints* hints : resources) AddBound(*hints);
  }

  void Run(int size) {
    if ((required_ & ~All()) != 0) return;
    if (size < std::popcount(required_)) return;
    if (size >= 1) Descend(size, static_cast<int>(nodes_.size()), 0);
  }

 private:
  struct Bound {
    std::int64_t missing;                              // still needed by the nodes not yet chosen
    absl::InlinedVector<std::int64_t, 8> supply;       // by index in nodes_
    absl::InlinedVector<std::int64_t, 9> most_before;  // the largest supply of nodes_[0..i)
  };

  void AddBound(const Hints& hints) {
    Bound bound{.missing = hints.Need(), .supply = {}, .most_before = {0}};
    for (const int node : nodes_) {
      bound.supply.push_back(hints.Supply(node));
      bound.most_before.push_back(std::max(bound.most_before.back(), bound.supply.back()));
    }
    bounds_.push_back(std::move(bound));
  }
  Mask All() const {
    Mask all = 0;
    for (const int node : nodes_) all |= Mask{1} << node;
    return all;
  }
  bool Reachable(int size, int end) const {
    for (const Bound& bound : bounds_) {
      const std::int64_t most = bound.most_before[static_cast<std::size_t>(end)];
      if (bound.missing <= 0) continue;
      if (size == 0 || (bound.missing - 1) / size >= most) return false;
    }
    return true;
  }
  // Chooses `size` more nodes from nodes_[0..end); the highest of them in ascending order.
  bool Descend(int size, int end, Mask chosen) {
    if (!Reachable(size, end)) return true;
    if (size == 0) return (chosen & required_) != required_ || visit_(chosen);
    for (int top = size - 1; top < end; ++top) {
      const auto at = static_cast<std::size_t>(top);
      const Mask bit = Mask{1} << nodes_[at];
      const Mask above = ~(bit | (bit - 1));
      if ((required_ & above & ~chosen) != 0) continue;  // a required node would be passed over
      for (Bound& bound : bounds_) bound.missing -= bound.supply[at];
      const bool more = Descend(size - 1, top, chosen | bit);
      for (Bound& bound : bounds_) bound.missing += bound.supply[at];
      if (!more) return false;
    }
    return true;
  }

  Mask required_;
  Visit visit_;
  absl::InlinedVector<int, 8> nodes_;
  absl::InlinedVector<Bound, 4> bounds_;
};

// The lowest mask of `size` nodes that `accept` takes; 0 if there is none.
template <class Accept>
Mask LowestMask(Mask candidates, Mask required, int size,
                const absl::InlinedVector<const Hints*, 4>& resources, Accept accept) {
  Mask found = 0;
  const auto visit = [&](Mask mask) {
    if (accept(mask)) found = mask;
    return found == 0;
  };
  MaskSearch search(candidates, required, resources, visit);
  search.Run(size);
  return found;
}

}  // namespace scheduler::admission
