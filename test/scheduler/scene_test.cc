#include "test/scheduler/scene.h"

#include <gtest/gtest.h>

namespace scheduler::admission {
namespace {

TEST(Scene, AdmitsAPodInALineToANodeInALine) {
  Scene node({.numa = Alike(2, {.gpus = 4}), .reserved_cpus = "0,16"});
  EXPECT_EQ(node.Add("p", "4 CPU 1Gi 1 GPU"), "admitted on 0");
  EXPECT_EQ(node.Cpus("p"), "1-2,17-18");
  EXPECT_EQ(node.MemoryNodes("p"), "0");
  EXPECT_EQ(node.DeviceNodes("p"), "0");
}

TEST(Scene, KeepsContainersApart) {
  const kube::Pod pod =
      PodOf("p", "init 2 CPU 1Gi; sidecar 500m CPU 1Gi; 1 CPU 1Gi limit 2 CPU 2Gi; nothing");
  ASSERT_EQ(pod.init_containers.size(), 2U);
  EXPECT_EQ(pod.init_containers[0].limits.at("cpu"), 2000);
  EXPECT_TRUE(pod.init_containers[1].sidecar);
  EXPECT_EQ(pod.init_containers[1].requests.at("cpu"), 500);
  ASSERT_EQ(pod.containers.size(), 2U);
  EXPECT_EQ(pod.containers[0].requests.at("memory"), std::int64_t{1} << 30);
  EXPECT_EQ(pod.containers[0].limits.at("memory"), std::int64_t{2} << 30);
  EXPECT_TRUE(pod.containers[1].limits.empty());
  EXPECT_EQ(pod.qos, kube::Qos::kBurstable);
}

TEST(Scene, LetsAnotherPodHoldSomeOfANode) {
  Scene node({.numa = {{.id = 0, .gpus = 2, .taken_cpus = 14, .taken_gpus = 1},
                       {.id = 8, .cpus = 0, .taken_memory = "63Gi"}}});
  EXPECT_EQ(node.Ask("4 CPU 1Gi"), "TopologyAffinityError");
  EXPECT_EQ(node.Ask("2 CPU 1Gi 2 GPU"), "TopologyAffinityError");
  EXPECT_EQ(node.Ask("2 CPU 1Gi 1 GPU"), "admitted on 0");
}

}  // namespace
}  // namespace scheduler::admission
