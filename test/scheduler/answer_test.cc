#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "scheduler/admission/admit.h"
#include "scheduler/admission/filter.h"
#include "scheduler/admission/request.h"
#include "scheduler/admission/state.h"
#include "test/scheduler/any_node.h"
#include "test/scheduler/heap.h"
#include "test/scheduler/scene.h"

// The answer alone, the answers of many nodes, and all answers.
namespace scheduler::admission {
namespace {

// What Answer says of an admission; the mask of a rejection is not always worked out.
Outcome Told(Outcome outcome) {
  outcome.ambiguous_devices = false;
  if (outcome.admitted()) return outcome;
  if (outcome.stage == Stage::kMerge) {
    outcome.has_affinity = false;
    outcome.affinity = 0;
    outcome.preferred = false;
    outcome.affinity_computed = false;
  }
  return outcome;
}

NodeState AnyState() {
  const placement::NodePlacement node = AnyNode();
  NodeState state = *StateFrom(node, AnyDeviceOrder(node));
  const int pods = *rc::gen::inRange(0, 6);
  for (int i = 0; i < pods; ++i) {
    const kube::Pod pod = AnyPod(node, std::to_string(i));
    Commit(pod.uid, Admit(state, MakeRequest(pod)), state);
  }
  return state;
}

Request AnyRequest() { return MakeRequest(AnyPod(AnyNode(), "asked")); }

TEST(Answer, EqualsTheFullAdmission) {
  EXPECT_TRUE(CheckCases(500, [] {
    const placement::NodePlacement node = AnyNode();
    NodeState state = *StateFrom(node, AnyDeviceOrder(node));
    for (int i = 0; i < 6; ++i) {
      const kube::Pod pod = AnyPod(node, std::to_string(i));
      const Request request = MakeRequest(pod);
      Verdict verdict = Admit(state, request);
      RC_ASSERT(Told(Answer(state, request)) == Told(verdict));
      Commit(pod.uid, std::move(verdict), state);
    }
  }));
}

TEST(Answer, TakesNothingFromTheHeapOnEightNumaNodesAnd256Cpus) {
  for (const char* policy : {"none", "best-effort", "restricted", "single-numa-node"}) {
    Scene scene({.numa = Alike(8, {.cpus = 32, .gpus = 2}), .policy = policy});
    scene.Add("other", "4 CPU 8Gi 1 GPU");
    const Request request = MakeRequest(PodOf("asked", "20 CPU 40Gi 2 GPU"));
    const std::size_t before = test::TakenFromHeap();
    const Outcome outcome = Answer(scene.state, request);
    EXPECT_EQ(test::TakenFromHeap() - before, 0U) << policy;
    EXPECT_TRUE(outcome.admitted()) << policy;
  }
}

TEST(Answer, RejectsWithoutTheHeapToo) {
  Scene scene({.numa = Alike(8, {.cpus = 32, .gpus = 2}), .policy = "restricted"});
  const Request request = MakeRequest(PodOf("asked", "20 CPU 40Gi 3 GPU"));
  const std::size_t before = test::TakenFromHeap();
  const Outcome outcome = Answer(scene.state, request);
  EXPECT_EQ(test::TakenFromHeap() - before, 0U);
  EXPECT_STREQ(KubeletReason(outcome), "TopologyAffinityError");
}

TEST(NodeState, OfA256CpuMachineTakesLessThan4KiBWithoutItsMachine) {
  const NodeState state =
      Scene({.numa = Alike(2, {.cpus = 128, .gpus = 4}), .policy = "restricted"}).state;
  const std::size_t before = test::TakenFromHeap();
  const auto copy = std::make_unique<NodeState>(state);
  EXPECT_EQ(test::TakenFromHeap() - before, 1U);  // all of it is in one piece
  EXPECT_LT(sizeof(*copy), 4096U);
}

TEST(Machines, AreSharedByNodesThatDifferInTheIdsOfTheirDevicesAlone) {
  placement::NodePlacement node = NodeOf({.numa = Alike(2, {.gpus = 1})});
  const auto built = [&] { return BuildMachine(node).value().machine; };
  Machines machines;
  const std::shared_ptr<const Machine> first = machines.Share(built());
  node.devices.front().id = "another-0";
  EXPECT_EQ(machines.Share(built()), first);
  node.kubelet.topology_policy = "restricted";
  EXPECT_NE(machines.Share(built()), first);
}

TEST(Filter, AnswersAsEachNodeDoesAlsoAfterNodesWereReplaced) {
  EXPECT_TRUE(CheckCases(100, [] {
    std::vector<std::shared_ptr<const NodeState>> nodes;
    const int count = *rc::gen::inRange(0, 6);
    for (int i = 0; i < count; ++i) nodes.push_back(std::make_shared<NodeState>(AnyState()));
    Filter filter(AnyRequest());
    for (int round = 0; round < 3; ++round) {
      std::vector<Outcome> expected;
      for (const auto& node : nodes) expected.push_back(Answer(*node, filter.request()));
      RC_ASSERT(filter.Ask(nodes) == expected);
      for (auto& node : nodes) {
        if (*rc::gen::arbitrary<bool>()) node = std::make_shared<NodeState>(AnyState());
      }
      if (!nodes.empty() && *rc::gen::arbitrary<bool>()) nodes.pop_back();
    }
  }));
}

// Devices of a verdict's first container by NUMA node: "1+2" is one on node 0 and two on node 1.
std::string Split(const NodeState& state, const Verdict& verdict) {
  int on[2] = {0, 0};
  verdict.containers.front().holding.devices.front().second.ForEach([&](int device) {
    on[state.machine->devices.front().devices[At(device)].nodes == 1 ? 0 : 1] += 1;
  });
  return std::to_string(on[0]) + "+" + std::to_string(on[1]);
}

TEST(AdmitAll, ListsEveryWayToSpreadDevicesOverTheNodesOfAMask) {
  // No policy, no mask: the plugin may give any 3 of 4 + 4.
  Scene scene({.numa = Alike(2, {.gpus = 4}), .policy = "none"});
  const Alternatives all = AdmitAll(scene.state, MakeRequest(PodOf("asked", "3 GPU")));
  std::set<std::string> splits;
  for (const Verdict& verdict : all.verdicts) splits.insert(Split(scene.state, verdict));
  EXPECT_TRUE(all.complete);
  EXPECT_EQ(all.verdicts.size(), 4U);
  EXPECT_EQ(splits, (std::set<std::string>{"0+3", "1+2", "2+1", "3+0"}));
}

TEST(AdmitAll, TellsADeviceOfAnUnknownNumaNodeFromOneOfNone) {
  // Under one NUMA node the plugin may give any. What an init container had of a NUMA node that the
  // machine lacks is in no mask for the next container.
  placement::NodePlacement node = NodeOf({.numa = {{.id = 0, .gpus = 1}}});
  AddDevice(node, "nvidia.com/gpu", "gpu-none", {});
  AddDevice(node, "nvidia.com/gpu", "gpu-60", base::NumaMask{60});
  Scene scene(node);
  const Alternatives all = AdmitAll(scene.state, MakeRequest(PodOf("asked", "init 1 GPU; 1 GPU")));
  const auto refused = std::ranges::count_if(
      all.verdicts, [](const Verdict& verdict) { return verdict.rejected(); });
  EXPECT_GE(refused, 1);
  EXPECT_LT(refused, static_cast<std::ptrdiff_t>(all.verdicts.size()));
}

TEST(AdmitAll, HasOneAnswerWhereThePluginHasNoChoiceThatMatters) {
  Scene scene({.numa = Alike(2, {.gpus = 4})});
  const Alternatives all = AdmitAll(scene.state, MakeRequest(PodOf("asked", "2 CPU 1Gi 3 GPU")));
  EXPECT_EQ(all.verdicts.size(), 1U);
}

TEST(AdmitAll, StopsAtTheLimitAndSaysSo) {
  Scene scene({.numa = Alike(2, {.gpus = 4}), .policy = "none"});
  const Alternatives all = AdmitAll(scene.state, MakeRequest(PodOf("asked", "3 GPU")), 2);
  EXPECT_FALSE(all.complete);
  EXPECT_EQ(all.verdicts.size(), 2U);
}

TEST(AdmitAll, StartsWithTheAnswerByThePluginsOrder) {
  EXPECT_TRUE(CheckCases(200, [] {
    const NodeState state = AnyState();
    const Request request = AnyRequest();
    const Verdict verdict = Admit(state, request);
    const Alternatives all = AdmitAll(state, request, 1);
    RC_ASSERT(static_cast<const Outcome&>(all.verdicts.front()) ==
              static_cast<const Outcome&>(verdict));
    RC_ASSERT(all.verdicts.front().containers == verdict.containers);
    RC_ASSERT(all.verdicts.front().after == verdict.after);
  }));
}

// The kubelet would list the sets of more than these for ever.
TEST(Admit, ServesTwentyFourNumaNodesUnderTheStrictPolicies) {
  for (const char* policy : {"restricted", "single-numa-node"}) {
    Scene scene({.numa = Alike(24, {.cpus = 8, .gpus = 1}),
                 .policy = policy,
                 .topology_options = {{"max-allowable-numa-nodes", "24"}}});
    EXPECT_EQ(scene.Add("first", "2 CPU 1Gi 1 GPU"), "admitted on 0") << policy;
    EXPECT_EQ(scene.Add("second", "2 CPU 1Gi 1 GPU"), "admitted on 1") << policy;
  }
}

}  // namespace
}  // namespace scheduler::admission
