#include "scheduler/admission/topology_manager.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <utility>

#include "scheduler/admission/mask_search.h"

namespace scheduler::admission {
namespace {

using HintList = absl::InlinedVector<const Hints*, 4>;

HintList WithHints(const Opinions& opinions) {
  HintList list;
  for (const Opinion& opinion : opinions) {
    if (opinion.kind == Opinion::Kind::kHints) list.push_back(opinion.hints);
  }
  return list;
}

bool AnyImpossible(const Opinions& opinions) {
  return std::any_of(opinions.begin(), opinions.end(), [](const Opinion& opinion) {
    return opinion.kind == Opinion::Kind::kImpossible;
  });
}

// CalculateAverageFor: over all pairs, each node with itself included.
double AverageDistance(const Machine& machine, Mask mask) {
  double sum = 0;
  for (Mask a = mask; a != 0; a &= a - 1) {
    for (Mask b = mask; b != 0; b &= b - 1) {
      sum += machine.distances[At(std::countr_zero(a))][At(std::countr_zero(b))];
    }
  }
  const double nodes = std::popcount(mask);
  return sum / (nodes * nodes);
}

bool ByDistance(const Machine& machine) {
  return machine.settings.prefer_closest_numa_nodes && !machine.distances.empty() &&
         machine.settings.topology_policy != TopologyPolicy::kSingleNumaNode;
}

}  // namespace

bool Fitter(const Machine& machine, Mask a, Mask b) {
  const int count_a = std::popcount(a);
  const int count_b = std::popcount(b);
  if (count_a != count_b || !ByDistance(machine))
    return std::tuple(count_a, a) < std::tuple(count_b, b);
  return std::tuple(AverageDistance(machine, a), a) < std::tuple(AverageDistance(machine, b), b);
}

namespace {

// single-numa-node looks only at one-node hints that are preferred, and at resources without a
// preference. What is the whole machine has no mask.
Merged MergeSingle(const Machine& machine, const Opinions& opinions) {
  if (AnyImpossible(opinions)) return {};
  const HintList resources = WithHints(opinions);
  if (resources.empty()) return {.affinity = 0, .preferred = true, .admitted = true};
  Mask candidates = machine.all_nodes;
  for (const Hints* hints : resources) {
    if (hints->width() != 1) return {};
    candidates &= hints->nodes();
  }
  for (Mask rest = candidates; rest != 0; rest &= rest - 1) {
    const Mask node = rest & (~rest + 1);
    const bool fits = std::all_of(resources.begin(), resources.end(),
                                  [node](const Hints* hints) { return hints->Feasible(node); });
    if (!fits) continue;
    return {.affinity = node == machine.all_nodes ? 0 : node, .preferred = true, .admitted = true};
  }
  return {};
}

// The best mask that every resource has as a preferred hint; 0 if there is none. Masks must be
// equal for that, so widths must be, too.
Mask BestPreferred(const Machine& machine, const HintList& resources) {
  Mask candidates = machine.all_nodes;
  int least = 1;
  int most = machine.numa_count();
  for (const Hints* hints : resources) {
    candidates &= hints->nodes();
    least = std::max(least, hints->width());
    if (hints->OnlyWidthIsPreferred()) most = std::min(most, hints->width());
  }
  Mask best = 0;
  const auto visit = [&](Mask mask) {
    const bool preferred = std::all_of(
        resources.begin(), resources.end(),
        [mask](const Hints* hints) { return hints->Preferred(mask) && hints->Feasible(mask); });
    if (preferred && (best == 0 || Fitter(machine, mask, best))) best = mask;
    return best == 0 || ByDistance(machine);  // masks come lowest first: the first is the best
  };
  for (int size = least; size <= most && best == 0; ++size) {
    MaskSearch search(candidates, 0, resources, visit);
    search.Run(size);
  }
  return best;
}

// All non-empty intersections of one feasible mask of each resource, as a table over the masks of
// some NUMA nodes: 1 where there is such an intersection. A mask's index has a bit for each of
// these. No heap up to 8 NUMA nodes.
class Intersections {
 public:
  // `nodes` are all that any of the resources has in its masks, at most kMaxEnumeratedNodes.
  explicit Intersections(Mask nodes) : nodes_(nodes), masks_(std::size_t{1} << Count(), 0) {
    Mask* masks = masks_.data();
    std::size_t bit = 1;
    for (Mask rest = nodes; rest != 0; rest &= rest - 1, bit *= 2) {
      for (std::size_t at = bit; at < 2 * bit; ++at) masks[at] = masks[at ^ bit] | (rest & -rest);
    }
    table_.assign(masks_.size(), 0);
  }

  // Adds a resource; the number of nodes of its narrowest feasible mask.
  int Add(const Hints& hints) {
    Table own(table_.size(), 0);
    const int narrowest = Fill(hints, own);
    if (std::exchange(first_, false)) {
      table_ = std::move(own);
      return narrowest;
    }
    // For each mask the number of pairs of masks that both hold it, then of those whose
    // intersection it is. There are less than 2^32 pairs, so the arithmetic is exact.
    const std::size_t size = table_.size();
    std::uint32_t* pairs = table_.data();
    const std::uint32_t* other = own.data();
    SumOverSupersets(pairs, size);
    SumOverSupersets(own.data(), size);
    for (std::size_t mask = 0; mask < size; ++mask) pairs[mask] *= other[mask];
    ForEachPair(pairs, size, [](std::uint32_t& without, std::uint32_t with) { without -= with; });
    for (std::size_t mask = 0; mask < size; ++mask) pairs[mask] = pairs[mask] != 0 ? 1 : 0;
    return narrowest;
  }

  // Calls visit(mask) for every intersection.
  template <class Visit>
  void ForEach(Visit visit) const {
    for (std::size_t at = 1; at < table_.size(); ++at) {
      if (table_[at] != 0) visit(masks_[at]);
    }
  }

 private:
  static_assert(kMaxEnumeratedNodes <= 16);
  using Table = absl::InlinedVector<std::uint32_t, 256>;

  // Calls change(table[mask], table[mask | bit]) for all bits and all masks without the bit.
  template <class Change>
  static void ForEachPair(std::uint32_t* table, std::size_t size, Change change) {
    for (std::size_t bit = 1; bit < size; bit *= 2) {
      for (std::size_t block = 0; block < size; block += 2 * bit) {
        for (std::size_t mask = block; mask < block + bit; ++mask) {
          change(table[mask], table[mask + bit]);
        }
      }
    }
  }
  static void SumOverSupersets(std::uint32_t* table, std::size_t size) {
    ForEachPair(table, size, [](std::uint32_t& without, std::uint32_t with) { without += with; });
  }

  // Marks the feasible masks; the number of nodes of the narrowest.
  int Fill(const Hints& hints, Table& own) const {
    const Mask nodes = hints.nodes();
    const Mask required = hints.Required();
    const std::int64_t need = hints.Need();
    const bool decided = hints.SuppliesDecide();
    absl::InlinedVector<std::int64_t, 256> supplies(own.size(), 0);
    std::int64_t* supply = supplies.data();
    std::uint32_t* feasible = own.data();
    const Mask* masks = masks_.data();
    int narrowest = Count();
    std::size_t bit = 1;
    for (Mask rest = nodes_; rest != 0; rest &= rest - 1, bit *= 2) {
      const int node = std::countr_zero(rest);
      const std::int64_t more = ((nodes >> node) & 1) != 0 ? hints.Supply(node) : 0;
      for (std::size_t at = bit; at < 2 * bit; ++at) {
        const Mask mask = masks[at];
        supply[at] = supply[at ^ bit] + more;
        if (supply[at] < need || (mask & ~nodes) != 0 || (required & ~mask) != 0) continue;
        if (!decided && !hints.Feasible(mask)) continue;
        feasible[at] = 1;
        narrowest = std::min(narrowest, std::popcount(mask));
      }
    }
    return narrowest;
  }

  int Count() const { return std::popcount(nodes_); }

  Mask nodes_;
  absl::InlinedVector<Mask, 256> masks_;  // by index, ascending
  bool first_ = true;
  Table table_;  // by index
};

// HintMerger.compare among masks that are not preferred: those of the target width first, then
// narrower ones, the widest of them first, then wider ones, the narrowest first.
int Rank(Mask mask, int target) {
  const int count = std::popcount(mask);
  if (count == target) return 0;
  return count < target ? target - count : 64 + count;
}

Merged MergeNotPreferred(const Machine& machine, const HintList& resources, bool admitted) {
  Merged merged{.affinity = machine.all_nodes, .preferred = false, .admitted = admitted};
  if (resources.empty()) return merged;
  Mask nodes = 0;
  for (const Hints* hints : resources) nodes |= hints->nodes();
  if (std::popcount(nodes) > kMaxEnumeratedNodes) {
    merged.affinity = 0;
    merged.computed = false;
    return merged;
  }
  Intersections intersections(nodes);
  int target = 0;
  for (const Hints* hints : resources) target = std::max(target, intersections.Add(*hints));
  Mask best = 0;
  intersections.ForEach([&](Mask mask) {
    if (best == 0 || Rank(mask, target) < Rank(best, target) ||
        (Rank(mask, target) == Rank(best, target) && Fitter(machine, mask, best))) {
      best = mask;
    }
  });
  if (best != 0) merged.affinity = best;
  return merged;
}

}  // namespace

Merged Merge(const Machine& machine, const Opinions& opinions, bool explain) {
  const TopologyPolicy policy = machine.settings.topology_policy;
  if (policy == TopologyPolicy::kSingleNumaNode) return MergeSingle(machine, opinions);
  const HintList resources = WithHints(opinions);
  const bool impossible = AnyImpossible(opinions);
  if (!impossible) {
    const Mask best = resources.empty() ? machine.all_nodes : BestPreferred(machine, resources);
    if (best != 0) return {.affinity = best, .preferred = true, .admitted = true};
  }
  const bool admitted = policy == TopologyPolicy::kBestEffort;
  if (!admitted && !explain) return {.affinity = 0, .computed = false};
  return MergeNotPreferred(machine, resources, admitted);
}

}  // namespace scheduler::admission
