#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "placement/decode.h"
#include "placement/encode.h"
#include "scheduler/admission/admit.h"
#include "scheduler/admission/request.h"
#include "scheduler/admission/state.h"
#include "test/scheduler/any_node.h"
#include "test/scheduler/scene.h"

namespace scheduler::admission {
namespace {

constexpr int kCases = 300;

NodeState Read(const placement::NodePlacement& node, const DeviceOrder& order) {
  absl::StatusOr<NodeState> state = StateFrom(node, order);
  RC_ASSERT(state.ok());
  return *std::move(state);
}

placement::NodePlacement Published(const NodeState& state, placement::NodePlacement node) {
  WriteState(state, node);
  return node;
}

// A node on which pods have come, started and gone.
struct UsedNode {
  placement::NodePlacement node;
  DeviceOrder order;
  NodeState state;
  std::vector<kube::Pod> pods;
};

Verdict Add(const kube::Pod& pod, NodeState& state) {
  Verdict verdict = Admit(state, MakeRequest(pod));
  Commit(pod.uid, verdict, state);
  return verdict;
}

UsedNode AnyUsedNode(const AnyNodeOptions& options = {}) {
  UsedNode used;
  used.node = AnyNode(options);
  used.order = AnyDeviceOrder(used.node);
  used.state = Read(used.node, used.order);
  const int events = *rc::gen::resize(rc::kNominalSize, rc::gen::inRange(0, 10));
  for (int i = 0; i < events; ++i) {
    const int kind = *rc::gen::inRange(0, 5);
    if (kind == 0 && !used.pods.empty()) {
      Remove(used.state, used.pods.front().uid);
      used.pods.erase(used.pods.begin());
      continue;
    }
    const kube::Pod pod = AnyPod(used.node, fmt::format("p{}", i), options);
    if (!Add(pod, used.state).admitted()) continue;
    if (kind != 1) Started(used.state, pod);
    used.pods.push_back(pod);
  }
  RC_LOG() << placement::ToJson(Published(used.state, used.node)) << '\n';
  return used;
}

// Blocks of memory that share a NUMA node without being of the same group. The kubelet's accounts
// of them go astray when they are released.
bool BlocksOverlap(const placement::NodePlacement& node) {
  std::vector<base::NumaMask> masks;
  for (const placement::PlacedPod& pod : node.pods) {
    for (const placement::PlacedContainer& container : pod.containers) {
      for (const placement::PlacedMemory& block : container.memory) {
        masks.push_back(block.numa_nodes);
      }
    }
  }
  for (const base::NumaMask& a : masks) {
    for (const base::NumaMask& b : masks) {
      if (a != b && a.Intersects(b)) return true;
    }
  }
  return false;
}

template <class List>
void Shuffle(List& list, unsigned seed) {
  std::shuffle(list.begin(), list.end(), std::mt19937(seed));
}

TEST(AdmitProperty, DoesNotDependOnTheOrderOfTheObjectsLists) {
  EXPECT_TRUE(CheckCases(kCases, [] {
    const placement::NodePlacement node = AnyNode();
    DeviceOrder order;  // without one it is that of the ids
    placement::NodePlacement shuffled = node;
    const unsigned seed = *rc::gen::arbitrary<unsigned>();
    Shuffle(shuffled.numa_nodes, seed);
    Shuffle(shuffled.devices, seed);
    for (placement::NumaNodePlacement& numa : shuffled.numa_nodes) {
      Shuffle(numa.core_groups, seed);
      Shuffle(numa.memory, seed);
      for (placement::CoreGroup& group : numa.core_groups) Shuffle(group.cores, seed);
    }
    if (*rc::gen::arbitrary<bool>()) {
      for (const placement::PlacedDevice& device : node.devices) {
        order[device.resource].push_back(device.id);
      }
    }
    NodeState a = Read(node, order);
    NodeState b = Read(shuffled, order);
    for (int i = 0; i < 6; ++i) {
      const kube::Pod pod = AnyPod(node, fmt::format("p{}", i));
      const Verdict verdict = Add(pod, a);
      RC_ASSERT(InWords(*a.machine, verdict) == InWords(*b.machine, Add(pod, b)));
      RC_ASSERT(Published(a, node) == Published(b, node));
    }
  }));
}

TEST(AdmitProperty, GivesEverythingBackWhenThePodsAreGone) {
  EXPECT_TRUE(CheckCases(kCases, [] {
    const placement::NodePlacement node = AnyNode();
    NodeState state = Read(node, {});
    const NodeState empty = state;
    std::vector<std::string> uids;
    for (int i = 0; i < 8; ++i) {
      const kube::Pod pod = AnyPod(node, fmt::format("p{}", i));
      const Verdict verdict = Add(pod, state);
      if (BlocksOverlap(Published(state, node))) return;
      if (verdict.admitted() && *rc::gen::arbitrary<bool>()) Started(state, pod);
      uids.push_back(pod.uid);
    }
    Shuffle(uids, *rc::gen::arbitrary<unsigned>());
    for (const std::string& uid : uids) Remove(state, uid);
    RC_ASSERT(Published(state, node) == Published(empty, node));
    RC_ASSERT(state.pods.empty());
  }));
}

TEST(AdmitProperty, NeverAnswersTopologyAffinityErrorUnderBestEffortOrNone) {
  EXPECT_TRUE(CheckCases(kCases, [] {
    UsedNode used = AnyUsedNode();
    used.node.kubelet.topology_policy = *rc::gen::element("best-effort", "none");
    const NodeState state = Read(Published(used.state, used.node), used.order);
    const Verdict verdict = Admit(state, MakeRequest(AnyPod(used.node, "asked")));
    RC_ASSERT(verdict.reason != Reason::kTopologyAffinity);
  }));
}

TEST(AdmitProperty, AdmitsAPodOfOneContainerToASingleNumaNodeWithMoreFreeToo) {
  EXPECT_TRUE(CheckCases(kCases, [] {
    UsedNode used = AnyUsedNode({.pods_of_one_container = true});
    used.node.kubelet.topology_policy = "single-numa-node";
    used.node.kubelet.cpu_options.erase("align-by-socket");
    NodeState state = Read(Published(used.state, used.node), used.order);
    const Request request =
        MakeRequest(AnyPod(used.node, "asked", {.pods_of_one_container = true}));
    if (used.pods.empty() || !Admit(state, request).admitted()) return;
    for (const kube::Pod& pod : used.pods) {
      Remove(state, pod.uid);
      RC_ASSERT(InWords(*state.machine, Admit(state, request)).starts_with("admitted"));
    }
  }));
}

// Container by container the lowest NUMA node that fits is taken: with one more CPU free on node 0
// container a goes there, and b, whose GPU is on node 0, finds no CPUs beside it.
TEST(Admit, MayRejectAPodOfSeveralContainersWhereMoreIsFree) {
  const std::string pod = "4 CPU 1Gi; 2 CPU 1Gi 1 GPU";
  EXPECT_EQ(Scene({.numa = {{.id = 0, .gpus = 1, .taken_cpus = 13}, {.id = 1}}}).Ask(pod),
            "admitted on 1; 0");
  EXPECT_EQ(Scene({.numa = {{.id = 0, .gpus = 1, .taken_cpus = 12}, {.id = 1}}}).Ask(pod),
            "TopologyAffinityError");
}

TEST(AdmitProperty, IsTheSameAfterAnyEventWithAStateThatWasPublishedAndReadBack) {
  EXPECT_TRUE(CheckCases(kCases, [] {
    const UsedNode used = AnyUsedNode();
    const placement::NodePlacement now = Published(used.state, used.node);
    const absl::StatusOr<placement::NodePlacement> read =
        placement::ParseNodePlacement(placement::ToJson(now));
    RC_ASSERT(read.ok());
    const NodeState back = Read(*read, used.order);
    RC_ASSERT(back.pool == used.state.pool);
    RC_ASSERT(back.pods == used.state.pods);
    RC_ASSERT(Published(back, used.node) == now);
  }));
}

}  // namespace
}  // namespace scheduler::admission
