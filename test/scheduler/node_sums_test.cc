#include "scheduler/admission/node_sums.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <limits>

namespace scheduler::admission {
namespace {

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();

kube::Pod Asking(const std::string& uid, kube::Resources requests) {
  return {.uid = uid, .containers = {{.name = "c", .requests = std::move(requests)}}};
}

TEST(NodeSums, RefuseAPodThatDoesNotFitBesideTheOthers) {
  NodeSums sums({{"cpu", 4000}, {"memory", 10}});
  EXPECT_EQ(sums.Check(Asking("a", {{"cpu", 4000}, {"memory", 10}})), "");
  sums.Add(Asking("a", {{"cpu", 3000}, {"memory", 10}}));
  EXPECT_EQ(sums.Check(Asking("b", {{"cpu", 1000}})), "");
  EXPECT_EQ(sums.Check(Asking("b", {{"cpu", 1001}})), "OutOfcpu");
  EXPECT_EQ(sums.Check(Asking("b", {{"memory", 1}})), "OutOfmemory");
}

TEST(NodeSums, LookAtTheNumberOfPodsFirst) {
  NodeSums sums({{"cpu", 4000}, {"pods", 1}});
  EXPECT_EQ(sums.Check(Asking("a", {{"cpu", 9000}})), "OutOfcpu");
  sums.Add(Asking("a", {}));
  EXPECT_EQ(sums.Check(Asking("b", {})), "OutOfpods");
  EXPECT_EQ(sums.Check(Asking("b", {{"cpu", 9000}})), "OutOfpods");
}

TEST(NodeSums, LookAtCpuThenMemoryThenStorageThenTheOthers) {
  const NodeSums sums({{"example.com/gpu", 0}});
  kube::Resources all = {
      {"cpu", 1}, {"memory", 1}, {"ephemeral-storage", 1}, {"example.com/gpu", 1}};
  for (const char* name : {"cpu", "memory", "ephemeral-storage", "example.com/gpu"}) {
    EXPECT_EQ(sums.Check(Asking("a", all)), std::string("OutOf") + name);
    all.erase(name);
  }
}

TEST(NodeSums, LeaveAnExtendedResourceAloneThatTheNodeDoesNotName) {
  const NodeSums sums({{"cpu", 4000}});
  EXPECT_EQ(sums.Check(Asking("a", {{"example.com/gpu", 1}})), "");
  EXPECT_EQ(sums.Check(Asking("a", {{"hugepages-2Mi", 1}})), "OutOfhugepages-2Mi");
  EXPECT_EQ(sums.Check(Asking("a", {{"example.kubernetes.io/x", 1}})),
            "OutOfexample.kubernetes.io/x");
}

TEST(NodeSums, IgnoreResourcesThatKubernetesDoesNotKnow) {
  const NodeSums sums({{"cpu", 4000}, {"storage", 1}});
  EXPECT_EQ(sums.Check(Asking("a", {{"storage", 2}, {"bananas", 1}})), "");
}

TEST(NodeSums, AskNothingForAZero) {
  NodeSums sums({{"cpu", 1000}});
  sums.Add(Asking("a", {{"cpu", 5000}}));
  EXPECT_EQ(sums.Check(Asking("b", {{"cpu", 0}, {"memory", 0}})), "");
}

TEST(NodeSums, CountPodLevelResourcesAndOverhead) {
  const NodeSums sums({{"cpu", 4000}, {"memory", 10}});
  kube::Pod pod = Asking("a", {{"cpu", 9000}});
  pod.pod_requests = kube::Resources{{"cpu", 4000}};
  EXPECT_EQ(sums.Check(pod), "");
  pod.overhead = {{"cpu", 1}};
  EXPECT_EQ(sums.Check(pod), "OutOfcpu");
}

TEST(NodeSums, ForgetAPodWhoseAmountsWereBeyond64Bits) {
  NodeSums sums({{"cpu", 4000}, {"memory", 10}});
  sums.Add(Asking("a", {{"memory", 4}}));
  sums.Add(Asking("b", {{"memory", kMost}}));
  sums.Add(Asking("c", {{"memory", kMost}}));
  EXPECT_EQ(sums.Check(Asking("d", {{"memory", kMost}})), "OutOfmemory");
  sums.Remove(Asking("b", {}));
  sums.Remove(Asking("c", {}));
  EXPECT_EQ(sums.Check(Asking("d", {{"memory", 6}})), "");
  EXPECT_EQ(sums.Check(Asking("d", {{"memory", 7}})), "OutOfmemory");
}

TEST(NodeSums, CountAPodThatIsAddedAgainAsItIsNow) {
  NodeSums sums({{"cpu", 4000}});
  sums.Add(Asking("a", {{"cpu", 4000}}));
  sums.Add(Asking("a", {{"cpu", 1000}}));
  EXPECT_EQ(sums.Check(Asking("b", {{"cpu", 3000}})), "");
}

TEST(NodeSums, AreThoseOfThePodsThatAreLeft) {
  EXPECT_TRUE(rc::check([] {
    NodeSums sums({{"cpu", 20}, {"pods", 6}});
    std::map<std::string, std::int64_t> pods;
    for (int i = *rc::gen::inRange(0, 20); i > 0; --i) {
      const std::string uid = *rc::gen::element<std::string>("a", "b", "c", "d", "e", "f", "g");
      if (*rc::gen::arbitrary<bool>()) {
        pods[uid] = *rc::gen::inRange(0, 10);
        sums.Add(Asking(uid, {{"cpu", pods[uid]}}));
      } else {
        pods.erase(uid);
        sums.Remove(Asking(uid, {}));
      }
    }
    std::int64_t taken = 0;
    for (const auto& [uid, cpu] : pods) taken += cpu;
    const std::string expected = pods.size() >= 6 ? "OutOfpods" : taken + 5 > 20 ? "OutOfcpu" : "";
    RC_ASSERT(sums.Check(Asking("new", {{"cpu", 5}})) == expected);
  }));
}

}  // namespace
}  // namespace scheduler::admission
