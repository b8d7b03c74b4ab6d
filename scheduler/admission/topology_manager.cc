#include "scheduler/admission/topology_manager.h"

#include <algorithm>
#include <bit>
#include <tuple>
#include <vector>

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

// Whether `a` beats `b` where both are preferred or both are not: fewer nodes, then (where asked
// for) closer ones, then the lower number.
bool Fitter(const Machine& machine, Mask a, Mask b) {
  const int count_a = std::popcount(a);
  const int count_b = std::popcount(b);
  if (count_a != count_b || !ByDistance(machine))
    return std::tuple(count_a, a) < std::tuple(count_b, b);
  return std::tuple(AverageDistance(machine, a), a) < std::tuple(AverageDistance(machine, b), b);
}

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

// All intersections of one feasible mask of each resource, as a table over all masks.
class Intersections {
 public:
  explicit Intersections(int nodes) : nodes_(nodes), size_(std::size_t{1} << nodes) {}

  void Add(const Hints& hints, Mask& narrowest) {
    std::vector<double> own(size_, 0);
    for (Mask mask = 1; mask < size_; ++mask) {
      if ((mask & ~hints.nodes()) != 0 || !hints.Feasible(mask)) continue;
      own[mask] = 1;
      if (narrowest == 0 || std::popcount(mask) < std::popcount(narrowest)) narrowest = mask;
    }
    // Number of hints that hold a mask; their product is the number of combinations that do.
    for (int node = 0; node < nodes_; ++node) {
      for (std::size_t mask = 0; mask < size_; ++mask) {
        if (((mask >> node) & 1) == 0) own[mask] += own[mask | (std::size_t{1} << node)];
      }
    }
    if (table_.empty()) table_.assign(size_, 1);
    for (std::size_t mask = 0; mask < size_; ++mask) table_[mask] *= own[mask];
  }

  // Calls visit(mask) for every non-empty intersection.
  template <class Visit>
  void ForEach(Visit visit) && {
    for (int node = 0; node < nodes_; ++node) {
      for (std::size_t mask = 0; mask < size_; ++mask) {
        if (((mask >> node) & 1) == 0) table_[mask] -= table_[mask | (std::size_t{1} << node)];
      }
    }
    for (Mask mask = 1; mask < size_; ++mask) {
      if (table_[mask] > 0.5) visit(mask);
    }
  }

 private:
  int nodes_;
  std::size_t size_;
  std::vector<double> table_;  // exact: counts stay far below 2^53
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
  if (machine.numa_count() > kMaxEnumeratedNodes) {
    merged.affinity = 0;
    merged.computed = false;
    return merged;
  }
  Intersections intersections(machine.numa_count());
  int target = 0;
  for (const Hints* hints : resources) {
    Mask narrowest = 0;
    intersections.Add(*hints, narrowest);
    target = std::max(target, std::popcount(narrowest));
  }
  Mask best = 0;
  std::move(intersections).ForEach([&](Mask mask) {
    if (best == 0 || Rank(mask, target) < Rank(best, target) ||
        (Rank(mask, target) == Rank(best, target) && Fitter(machine, mask, best))) {
      best = mask;
    }
  });
  if (best != 0) merged.affinity = best;
  return merged;
}

}  // namespace

Merged Merge(const Machine& machine, const Opinions& opinions) {
  const TopologyPolicy policy = machine.settings.topology_policy;
  if (policy == TopologyPolicy::kSingleNumaNode) return MergeSingle(machine, opinions);
  const HintList resources = WithHints(opinions);
  const bool impossible = AnyImpossible(opinions);
  if (!impossible) {
    const Mask best = resources.empty() ? machine.all_nodes : BestPreferred(machine, resources);
    if (best != 0) return {.affinity = best, .preferred = true, .admitted = true};
  }
  return MergeNotPreferred(machine, resources, policy == TopologyPolicy::kBestEffort);
}

}  // namespace scheduler::admission
