#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "scheduler/admission/request.h"
#include "test/scheduler/scene.h"

// Inputs that no kubelet gives and that once did harm.
namespace scheduler::admission {
namespace {

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();

TEST(OddInput, TheLargestRequestOverflowsNoSum) {
  Scene node({.numa = Alike(2, {.gpus = 1}), .policy = "best-effort"});
  kube::Pod pod = PodOf("p", "1 CPU 1Gi");
  pod.containers.front().limits["nvidia.com/gpu"] = kMost;
  pod.containers.front().requests["memory"] = pod.containers.front().limits["memory"] = kMost;
  EXPECT_EQ(node.Ask(pod), "UnexpectedAdmissionError");
  pod.init_containers = pod.containers;
  EXPECT_EQ(node.Ask(pod), "UnexpectedAdmissionError");
}

TEST(OddInput, AmountsThatCannotBeAreAnErrorOfTheObject) {
  placement::NodePlacement node = NodeOf(NodeSpec());
  node.numa_nodes.front().memory.front().allocatable = kMost;
  EXPECT_EQ(StateFrom(node).status().code(), absl::StatusCode::kInvalidArgument);
  node = NodeOf(NodeSpec());
  node.numa_nodes.front().memory.front().free = -1;
  EXPECT_EQ(StateFrom(node).status().code(), absl::StatusCode::kInvalidArgument);
  node = NodeOf(NodeSpec());
  node.numa_nodes.front().memory_assignments = std::numeric_limits<int>::max();
  EXPECT_EQ(StateFrom(node).status().code(), absl::StatusCode::kInvalidArgument);
  node = NodeOf({.numa = {{.id = 0, .taken_memory = "1Gi"}}});
  node.pods.front().containers.front().memory.front().bytes = -1;
  EXPECT_EQ(StateFrom(node).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(OddInput, ACpuThatLinuxCannotHaveIsAnErrorOfTheObject) {
  placement::NodePlacement node = NodeOf(NodeSpec());
  node.numa_nodes.front().core_groups.front().cores.push_back({8192});
  EXPECT_EQ(StateFrom(node).status().code(), absl::StatusCode::kInvalidArgument);
  node.numa_nodes.front().core_groups.front().cores.back() = {8191};
  EXPECT_TRUE(StateFrom(node).ok());
}

TEST(OddInput, WhatPodsHoldIsNotFreeThoughNobodyTellsWhatIs) {
  placement::NodePlacement node = NodeOf({.numa = {{.id = 0, .cpus = 4, .memory = "4Gi"}}});
  node.numa_nodes.front().free_cpus.reset();
  node.numa_nodes.front().memory.front().free.reset();
  node.numa_nodes.front().memory_assignments.reset();
  node.numa_nodes.front().memory_group.reset();
  EXPECT_EQ(Scene(node).Ask("4 CPU 4Gi"), "admitted");
  placement::PlacedContainer holder;
  holder.name = "a";
  holder.cpus = {0, 1};
  holder.memory.push_back({.type = "memory", .bytes = std::int64_t{1} << 30, .numa_nodes = {0}});
  node.pods.emplace_back().uid = "there";
  node.pods.back().containers.push_back(holder);
  Scene scene(node);
  EXPECT_EQ(scene.Ask("3 CPU 1Gi"), "TopologyAffinityError");
  EXPECT_EQ(scene.Ask("2 CPU 4Gi"), "UnexpectedAdmissionError");
  EXPECT_EQ(scene.Ask("2 CPU 3Gi"), "admitted");
  scene.Remove("there");
  EXPECT_EQ(scene.Ask("4 CPU 4Gi"), "admitted");
}

// With the pod's sums in one pass this takes no time; name by name it took minutes.
TEST(OddInput, APodOfSixtyThousandResourcesIsSummedUp) {
  kube::Pod pod = PodOf("p", "sidecar 1 CPU 1Gi; 1 CPU 1Gi; 1 CPU 1Gi");
  for (int i = 0; i < 60'000; ++i) {
    const std::string name = "vendor.com/" + std::to_string(i);
    pod.init_containers[0].limits[name] = 1;
    pod.containers[0].limits[name] = 2;
  }
  const Request request = MakeRequest(pod);
  ASSERT_EQ(request.pod.devices.size(), 60'000U);
  for (const auto& [name, count] : request.pod.devices) ASSERT_EQ(count, 3) << name;
}

// The kubelet looks at every device for every set of NUMA nodes.
TEST(OddInput, ThousandsOfDevicesOfSeveralNumaNodesEachOn24NodesAreMoreThanTheKubeletCanList) {
  placement::NodePlacement node =
      NodeOf({.numa = Alike(24, {.cpus = 2, .memory = "1Gi"}),
              .policy = "restricted",
              .topology_options = {{"max-allowable-numa-nodes", "24"}}});
  for (int i = 0; i < 2000; ++i) {
    AddDevice(node, "vendor.com/nic", std::to_string(i), {i % 24, i * 5 % 24, i * 7 % 24});
  }
  Scene scene(node);
  EXPECT_EQ(scene.Ask("1500 vendor.com/nic"), "KubeletCannot");
  EXPECT_EQ(scene.Ask("1 CPU 1Gi"), "admitted on 0") << "nothing else is touched by it";
}

TEST(OddInput, SixtyFourNodesAreMoreThanDistributingCpusCanSearch) {
  const placement::NodePlacement node =
      NodeOf({.numa = Alike(64, {.cpus = 2}),
              .policy = "none",
              .cpu_options = {{"distribute-cpus-across-numa", "true"}},
              .memory_policy = "None"});
  EXPECT_EQ(Scene(node).Ask("33 CPU 1Gi"), "KubeletCannot");
}

// All orders of resources that are alike are one.
TEST(OddInput, ManyDeviceResourcesThatAreAlikeLeaveNoDoubtWhetherTheKubeletCrashes) {
  placement::NodePlacement node =
      NodeOf({.numa = {{.id = 0}, {.id = 1}, {.id = 2}, {.id = 9}},
              .policy = "best-effort",
              .topology_options = {{"prefer-closest-numa-nodes", "true"}}});
  std::string words = "5 vendor.com/f";
  for (const std::string name : {"a", "b", "c", "d", "e", "f"}) {
    for (int i = 0; i < 6; ++i) {
      AddDevice(node, "vendor.com/" + name, name + std::to_string(i), {i / 2});
    }
    if (name != "f") words += " 0 vendor.com/" + name;
  }
  EXPECT_EQ(Scene(node).Ask(words), "admitted on 0-2, not preferred");
}

}  // namespace
}  // namespace scheduler::admission
