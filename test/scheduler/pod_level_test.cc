#include <gtest/gtest.h>

#include <string>

#include "scheduler/admission/admit.h"
#include "test/scheduler/scene.h"
#include "test/support/status.h"

// Pods with resources of their own (spec.resources).
namespace scheduler::admission {
namespace {

// 6 CPUs and 6 GiB for the pod, of which a container has 2 CPUs and 1 GiB for itself.
kube::Pod SixCpus() {
  kube::Pod pod = PodOf("p", "2 CPU 1Gi; nothing");
  pod.pod_limits = kube::Resources{{"cpu", 6000}, {"memory", std::int64_t{6} << 30}};
  pod.pod_requests = pod.pod_limits;
  pod.qos = kube::Qos::kGuaranteed;
  return pod;
}

placement::NodePlacement Node(const std::string& gate) {
  placement::NodePlacement node = NodeOf({.policy = "restricted", .scope = "pod"});
  node.kubelet.feature_gates["PodLevelResourceManagers"] = gate;
  return node;
}

std::string Cpus(const Holding& holding) {
  base::CpuSet cpus;
  holding.cpus.ForEach([&](int id) { cpus.Insert(id); });
  return cpus.ToString();
}

TEST(PodLevel, IsLeftAloneUnlessTheKubeletManagesSuchPods) {
  ASSERT_OK_AND_ASSIGN(const NodeState state, StateFrom(Node("false")));
  const Verdict verdict = Admit(state, MakeRequest(SixCpus()));
  EXPECT_TRUE(verdict.admitted());
  EXPECT_FALSE(verdict.pod.has_value());
  EXPECT_EQ(verdict.after, state.pool);
}

TEST(PodLevel, HoldsItsCpusOnceAndItsContainersHaveParts) {
  ASSERT_OK_AND_ASSIGN(const NodeState before, StateFrom(Node("true")));
  NodeState state = before;
  Verdict verdict = Admit(state, MakeRequest(SixCpus()));
  ASSERT_TRUE(verdict.admitted() && verdict.pod.has_value());
  EXPECT_EQ(Cpus(*verdict.pod), "0-2,16-18");
  EXPECT_EQ(Cpus(verdict.containers[0].holding), "0,16");
  EXPECT_EQ(Cpus(verdict.containers[1].holding), "1-2,17-18");
  Commit("p", verdict, state);
  Started(state, SixCpus());

  placement::NodePlacement node = Node("true");
  WriteState(state, node);
  ASSERT_OK_AND_ASSIGN(NodeState read, StateFrom(node));
  Remove(read, "p");
  EXPECT_EQ(read.pool, before.pool);
}

TEST(PodLevel, IsRefusedWhereItsContainersLeaveNothingToShare) {
  ASSERT_OK_AND_ASSIGN(const NodeState state, StateFrom(Node("true")));
  kube::Pod pod = SixCpus();
  pod.containers[0].requests["cpu"] = pod.containers[0].limits["cpu"] = 6000;
  EXPECT_STREQ(KubeletReason(Admit(state, MakeRequest(pod))), "TopologyAffinityError");
}

}  // namespace
}  // namespace scheduler::admission
