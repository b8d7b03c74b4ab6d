#include "test/reference/naive_merge.h"

#include <algorithm>
#include <bit>
#include <set>
#include <utility>

namespace reference {
namespace {

using scheduler::admission::Machine;
using scheduler::admission::Mask;
using scheduler::admission::TopologyPolicy;

struct Candidate {
  Mask mask = 0;
  bool preferred = false;
};

int Count(Mask mask) { return std::popcount(mask); }

double Distance(const Machine& machine, Mask mask) {
  double sum = 0;
  int pairs = 0;
  for (int a = 0; a < machine.numa_count(); ++a) {
    for (int b = 0; b < machine.numa_count(); ++b) {
      if (((mask >> a) & 1) == 0 || ((mask >> b) & 1) == 0) continue;
      sum += machine.distances[static_cast<std::size_t>(a)][static_cast<std::size_t>(b)];
      ++pairs;
    }
  }
  return sum / pairs;
}

// Whether the candidate takes the place of the current one where nothing but the masks counts.
bool MaskWins(const Machine& machine, Mask current, Mask candidate) {
  if (candidate == current) return false;
  if (Count(candidate) != Count(current)) return Count(candidate) < Count(current);
  const bool closest = machine.settings.prefer_closest_numa_nodes &&
                       machine.settings.topology_policy != TopologyPolicy::kSingleNumaNode;
  if (closest && Distance(machine, candidate) != Distance(machine, current)) {
    return Distance(machine, candidate) < Distance(machine, current);
  }
  return candidate < current;
}

bool Wins(const Machine& machine, int target, const std::optional<Candidate>& current,
          const Candidate& candidate) {
  if (candidate.mask == 0) return false;
  if (!current) return true;
  if (candidate.preferred != current->preferred) return candidate.preferred;
  if (candidate.preferred) return MaskWins(machine, current->mask, candidate.mask);
  const int now = Count(current->mask);
  const int then = Count(candidate.mask);
  if (now > target) return MaskWins(machine, current->mask, candidate.mask);
  if (now == target) return then == target && MaskWins(machine, current->mask, candidate.mask);
  if (then > target) return false;
  if (then != now) return then > now;
  return MaskWins(machine, current->mask, candidate.mask);
}

// What a combination of hints of the first few resources comes to. Combinations that come to the
// same are kept once: the resources that follow cannot tell them apart.
struct Partial {
  Mask mask = 0;
  bool preferred = true;      // all of them are, and all their masks are equal
  std::optional<Mask> first;  // the first mask, as long as they are
  auto operator<=>(const Partial&) const = default;
};

Partial Combine(Partial so_far, const NaiveHint& hint) {
  so_far.preferred = so_far.preferred && hint.preferred;
  if (hint.mask) {
    so_far.preferred = so_far.preferred && *hint.mask == so_far.first.value_or(*hint.mask);
    so_far.first = hint.mask;
    so_far.mask &= *hint.mask;
  }
  if (!so_far.preferred) so_far.first.reset();
  return so_far;
}

int Target(const std::vector<std::vector<NaiveHint>>& resources) {
  int target = 0;
  for (const std::vector<NaiveHint>& hints : resources) {
    std::optional<int> narrowest;
    for (const NaiveHint& hint : hints) {
      if (hint.mask) narrowest = std::min(narrowest.value_or(64), Count(*hint.mask));
    }
    target = std::max(target, narrowest.value_or(0));
  }
  return target;
}

std::vector<std::vector<NaiveHint>> OnlySingle(
    const std::vector<std::vector<NaiveHint>>& resources) {
  std::vector<std::vector<NaiveHint>> filtered;
  for (const std::vector<NaiveHint>& hints : resources) {
    std::vector<NaiveHint>& kept = filtered.emplace_back();
    for (const NaiveHint& hint : hints) {
      if (hint.preferred && (!hint.mask || Count(*hint.mask) == 1)) kept.push_back(hint);
    }
  }
  return filtered;
}

Candidate Best(const Machine& machine, const std::vector<std::vector<NaiveHint>>& resources) {
  const int target = Target(resources);
  std::set<Partial> combinations = {{machine.all_nodes, true, std::nullopt}};
  for (const std::vector<NaiveHint>& hints : resources) {
    std::set<Partial> longer;
    for (const Partial& combination : combinations) {
      for (const NaiveHint& hint : hints) longer.insert(Combine(combination, hint));
    }
    combinations = std::move(longer);
  }
  std::optional<Candidate> best;
  for (const Partial& combination : combinations) {
    const Candidate candidate{combination.mask, combination.preferred};
    if (Wins(machine, target, best, candidate)) best = candidate;
  }
  return best.value_or(Candidate{machine.all_nodes, false});
}

}  // namespace

NaiveMerged NaiveMerge(const Machine& machine,
                       const std::vector<std::vector<NaiveHint>>& resources) {
  const bool single = machine.settings.topology_policy == TopologyPolicy::kSingleNumaNode;
  const Candidate best = Best(machine, single ? OnlySingle(resources) : resources);
  NaiveMerged merged{best.mask, best.preferred, false};
  if (single && best.mask == machine.all_nodes) merged.affinity.reset();
  merged.admitted =
      machine.settings.topology_policy == TopologyPolicy::kBestEffort || best.preferred;
  return merged;
}

}  // namespace reference
