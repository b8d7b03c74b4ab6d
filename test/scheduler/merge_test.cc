#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <bit>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "scheduler/admission/topology_manager.h"
#include "test/reference/naive_merge.h"

namespace scheduler::admission {
namespace {

// Hints that are simply listed. More widths than one may be preferred, as with align-by-socket.
class ListedHints : public Hints {
 public:
  ListedHints(Mask nodes, std::set<Mask> feasible, int width, bool also_wider)
      : nodes_(nodes), feasible_(std::move(feasible)), width_(width), also_wider_(also_wider) {}
  Mask nodes() const override { return nodes_; }
  bool Feasible(Mask mask) const override { return feasible_.contains(mask); }
  int width() const override { return width_; }
  bool Preferred(Mask mask) const override {
    return std::popcount(mask) == width_ || (also_wider_ && std::popcount(mask) == width_ + 1);
  }
  bool OnlyWidthIsPreferred() const override { return !also_wider_; }
  std::int64_t Supply(int) const override { return 0; }
  std::int64_t Need() const override { return 0; }
  const std::set<Mask>& feasible() const { return feasible_; }

 private:
  Mask nodes_;
  std::set<Mask> feasible_;
  int width_;
  bool also_wider_;
};

Machine AnyMachine() {
  Machine machine;
  const int count = *rc::gen::inRange(1, 5);
  for (int id = 0; id < count; ++id) machine.numa_ids.push_back(id);
  machine.all_nodes = (Mask{1} << count) - 1;
  machine.settings.topology_policy = *rc::gen::element(
      TopologyPolicy::kBestEffort, TopologyPolicy::kRestricted, TopologyPolicy::kSingleNumaNode);
  machine.settings.prefer_closest_numa_nodes = *rc::gen::arbitrary<bool>();
  const auto size = static_cast<std::size_t>(count);
  machine.distances.assign(size, std::vector<double>(size, 10));
  for (std::size_t a = 0; a < size; ++a) {
    for (std::size_t b = 0; b < size; ++b) {
      if (a != b) machine.distances[a][b] = *rc::gen::element(12, 20, 21, 32);
    }
  }
  return machine;
}

std::unique_ptr<ListedHints> AnyHints(const Machine& machine) {
  const auto non_empty = [&] { return *rc::gen::inRange<Mask>(1, machine.all_nodes + 1); };
  const Mask nodes = *rc::gen::weightedElement<Mask>({{3, machine.all_nodes}, {1, non_empty()}});
  std::set<Mask> feasible;
  for (Mask mask = 1; mask <= machine.all_nodes; ++mask) {
    if ((mask & ~nodes) == 0 && *rc::gen::arbitrary<bool>()) feasible.insert(mask);
  }
  if (feasible.empty()) feasible.insert(nodes);
  const bool single = machine.settings.topology_policy == TopologyPolicy::kSingleNumaNode;
  return std::make_unique<ListedHints>(nodes, std::move(feasible),
                                       *rc::gen::inRange(1, machine.numa_count() + 1),
                                       !single && *rc::gen::arbitrary<bool>());
}

TEST(Merge, EqualsTheEnumerationOfAllCombinationsOfAllHints) {
  EXPECT_TRUE(rc::check([] {
    const Machine machine = AnyMachine();
    std::vector<std::unique_ptr<ListedHints>> hints;
    Opinions opinions;
    std::vector<std::vector<reference::NaiveHint>> naive;
    const int resources = *rc::gen::inRange(0, 4);
    for (int i = 0; i < resources; ++i) {
      const int kind = *rc::gen::weightedElement<int>({{6, 0}, {1, 1}, {1, 2}});
      if (kind == 1) {
        opinions.push_back({Opinion::Kind::kNoPreference, nullptr});
        naive.push_back({{std::nullopt, true}});
        continue;
      }
      if (kind == 2) {
        opinions.push_back({Opinion::Kind::kImpossible, nullptr});
        naive.push_back({{std::nullopt, false}});
        continue;
      }
      hints.push_back(AnyHints(machine));
      opinions.push_back({Opinion::Kind::kHints, hints.back().get()});
      std::vector<reference::NaiveHint>& list = naive.emplace_back();
      for (const Mask mask : hints.back()->feasible()) {
        list.push_back({mask, hints.back()->Preferred(mask)});
      }
    }
    const Merged fast = Merge(machine, opinions);
    const reference::NaiveMerged slow = reference::NaiveMerge(machine, naive);
    RC_ASSERT(fast.computed);
    RC_ASSERT(fast.admitted == slow.admitted);
    RC_ASSERT(fast.preferred == slow.preferred);
    RC_ASSERT(fast.affinity == slow.affinity.value_or(0));
  }));
}

}  // namespace
}  // namespace scheduler::admission
