#include <gtest/gtest.h>

#include <string>

#include "test/scheduler/scene.h"

// What other NUMA-aware schedulers are known to mispredict, and the kubelet's answer. Nodes are
// single-numa-node with both static managers unless they say otherwise; "4 and 8 free" are 16 CPUs
// each with the others taken.
namespace scheduler::admission {
namespace {

NodeSpec Free(int first, int second, const std::string& scope = "container") {
  return {.numa = {{.id = 0, .taken_cpus = 16 - first}, {.id = 1, .taken_cpus = 16 - second}},
          .scope = scope};
}

// ---- The NodeResourceTopologyMatch plugin, rows 1 to 20

TEST(PeerMisprediction, Row01TheAppMustHoldTheNumaNodeOfItsInitContainersCpus) {
  EXPECT_EQ(Scene(Free(4, 8)).Ask("init 2 CPU 1Gi; 6 CPU 1Gi"), "TopologyAffinityError");
}

TEST(PeerMisprediction, Row02ASidecarAddsToTheAppsOfItsPod) {
  EXPECT_EQ(Scene(Free(4, 4, "pod")).Ask("sidecar 2 CPU 1Gi; 4 CPU 1Gi"), "TopologyAffinityError");
}

TEST(PeerMisprediction, Row03ASidecarTakesItsCpusBeforeTheApps) {
  EXPECT_EQ(Scene(Free(4, 4)).Ask("sidecar 4 CPU 1Gi; 4 CPU 1Gi; 4 CPU 1Gi"),
            "TopologyAffinityError");
  EXPECT_EQ(Scene(Free(4, 4)).Ask("sidecar 4 CPU 1Gi; 4 CPU 1Gi"), "admitted on 0; 1");
}

TEST(PeerMisprediction, Row04AFractionOfACpuNeedsNoFreeExclusiveCpu) {
  EXPECT_EQ(Scene(Free(0, 0)).Ask("500m CPU 1Gi"), "admitted on 0");
}

TEST(PeerMisprediction, Row05FractionsDoNotCountInThePodsSum) {
  EXPECT_EQ(Scene(Free(2, 2, "pod")).Ask("2 CPU 1Gi; 500m CPU 1Gi"), "admitted on 0");
}

TEST(PeerMisprediction, Row06MemoryIsNoConstraintWithoutTheMemoryManager) {
  NodeSpec node = Free(4, 4);
  node.memory_policy = "None";
  for (NumaSpec& numa : node.numa) numa.memory = "0";
  EXPECT_EQ(Scene(node).Ask("2 CPU 1Gi"), "admitted on 0");
  EXPECT_EQ(Scene(node).Ask("1Gi limit 2Gi"), "admitted");
}

TEST(PeerMisprediction, Row07OverheadOfTheRuntimeIsNotAlignedAlong) {
  kube::Pod pod = PodOf("p", "4 CPU 1Gi");
  pod.overhead["cpu"] = 250;
  EXPECT_EQ(Scene(Free(4, 4, "pod")).Ask(pod), "admitted on 0");
}

TEST(PeerMisprediction, Row08CpusAreNoConstraintWithoutTheStaticCpuManager) {
  NodeSpec node = Free(0, 0);
  node.cpu_policy = "none";
  node.memory_policy = "None";
  EXPECT_EQ(Scene(node).Ask("4 CPU 1Gi"), "admitted");
}

TEST(PeerMisprediction, Row09RestrictedRejectsFourGpusOnThreeAndThree) {
  EXPECT_EQ(Scene({.numa = Alike(2, {.gpus = 4, .taken_gpus = 1}), .policy = "restricted"})
                .Ask("1 CPU limit 2 CPU 4 GPU"),
            "TopologyAffinityError");
}

TEST(PeerMisprediction, Row10WholeCoresOnlyCountsNoLoneThreads) {
  const std::map<std::string, std::string> whole = {{"full-pcpus-only", "true"}};
  EXPECT_EQ(Scene({.cpu_options = whole}).Ask("3 CPU 1Gi"), "SMTAlignmentError");
  // Cores 0,3 1,4 2,5 with 1 and 2 reserved: four CPUs are free, but only one whole core.
  const NodeSpec lone{.numa = {{.id = 0, .cpus = 6}}, .cpu_options = whole, .reserved_cpus = "1,2"};
  EXPECT_EQ(Scene(lone).Ask("4 CPU 1Gi"), "SMTAlignmentError");
  EXPECT_EQ(Scene(lone).Ask("2 CPU 1Gi"), "admitted");
}

TEST(PeerMisprediction, Row11FreeMemoryOfAGroupServesNoSingleNumaNode) {
  placement::NodePlacement node = NodeOf({});
  for (placement::NumaNodePlacement& numa : node.numa_nodes) {
    numa.memory_group = base::NumaMask{0, 1};
    numa.memory_assignments = 1;
  }
  EXPECT_EQ(Scene(node).Ask("1 CPU 1Gi"), "TopologyAffinityError");
}

TEST(PeerMisprediction, Row12ADeviceOnTwoNumaNodesIsThereOnce) {
  placement::NodePlacement node = NodeOf({});
  AddDevice(node, "nvidia.com/gpu", "both", {0, 1});
  Scene scene(node);
  EXPECT_EQ(scene.Add("p1", "1 CPU 1Gi 1 GPU"), "admitted on 0");
  EXPECT_EQ(scene.Add("p2", "1 CPU 1Gi 1 GPU"), "TopologyAffinityError");
}

TEST(PeerMisprediction, Row13PodLevelResourcesAreNotPinnedWithoutTheGate) {
  kube::Pod pod = PodOf("p", "nothing");
  pod.pod_limits = kube::Resources{{"cpu", 8000}, {"memory", 1 << 30}};
  kube::ApplyDefaults(pod);
  pod.qos = kube::ComputeQos(pod);
  EXPECT_EQ(pod.qos, kube::Qos::kGuaranteed);
  Scene scene(Free(2, 2, "pod"));
  EXPECT_EQ(scene.Add(pod), "admitted");
  EXPECT_EQ(scene.Cpus("p"), "");
}

TEST(PeerMisprediction, Row14ABurstablePodLeavesAllExclusiveCpusToOthers) {
  Scene scene(Free(8, 8));
  EXPECT_EQ(scene.Add("burstable", "8 CPU 1Gi limit 8 CPU 2Gi"), "admitted");
  EXPECT_EQ(scene.Add("p1", "8 CPU 1Gi"), "admitted on 0");
  EXPECT_EQ(scene.Add("p2", "8 CPU 1Gi"), "admitted on 1");
}

TEST(PeerMisprediction, Row15ABurstIsChargedWhereEachPodGoes) {
  Scene scene({.numa = Alike(8, {})});
  for (int pod = 0; pod < 16; ++pod) {
    EXPECT_EQ(scene.Add("p" + std::to_string(pod), "8 CPU 1Gi"),
              "admitted on " + std::to_string(pod / 2));
  }
}

TEST(PeerMisprediction, Row17NumaIdsNeedNotBeDense) {
  Scene scene({.numa = {{.id = 0, .taken_cpus = 14}, {.id = 8, .cpus = 0}, {.id = 63}}});
  EXPECT_EQ(scene.Add("p", "4 CPU 1Gi"), "admitted on 63");
  EXPECT_EQ(Scene({.numa = {{.id = 0}, {.id = 64}}}).Ask("4 CPU 1Gi"), "KubeletCannot");
}

TEST(PeerMisprediction, Row19AVictimsSidecarGivesItsDeviceBack) {
  Scene scene({.numa = {{.id = 0, .gpus = 1}, {.id = 1}}});
  EXPECT_EQ(scene.Add("victim", "sidecar 1 CPU 1Gi 1 GPU; 1 CPU 1Gi"), "admitted on 0");
  EXPECT_EQ(scene.Ask("1 CPU 1Gi 1 GPU"), "TopologyAffinityError");
  scene.Remove("victim");
  EXPECT_EQ(scene.Ask("1 CPU 1Gi 1 GPU"), "admitted on 0");
}

TEST(PeerMisprediction, Row20HeldDevicesThatAreUnhealthyTakeNothingFromTheOthers) {
  Scene scene({.numa = {{.id = 0, .gpus = 3}, {.id = 1}}});
  EXPECT_EQ(scene.Add("p", "1 CPU 1Gi 2 GPU"), "admitted on 0");
  SetDevices(scene.state, "nvidia.com/gpu", {"gpu-0-0", "gpu-0-1"});
  EXPECT_EQ(scene.Ask("1 CPU 1Gi 1 GPU"), "admitted on 0");
  EXPECT_EQ(scene.Ask("1 CPU 1Gi 2 GPU"), "TopologyAffinityError");
}

// ---- KAI's plugin, rows K1 to K7

TEST(PeerMisprediction, RowK1TheWidthCountsReservedCpus) {
  EXPECT_EQ(Scene({.numa = Alike(2, {.cpus = 32}),
                   .policy = "restricted",
                   .reserved_cpus = "0,16,32,48",
                   .memory_policy = "None"})
                .Ask("31 CPU 1Gi"),
            "TopologyAffinityError");
}

TEST(PeerMisprediction, RowK2MemoryAndHugePagesAreHintedJointly) {
  EXPECT_EQ(Scene({.numa = Alike(2, {.cpus = 32, .hugepages = {{"hugepages-1Gi", "24Gi"}}}),
                   .policy = "restricted"})
                .Ask("40 CPU 10Gi 40Gi hugepages-1Gi"),
            "admitted on 0-1");
}

TEST(PeerMisprediction, RowK3TheWidthCountsUnhealthyDevices) {
  Scene scene({.numa = Alike(2, {.gpus = 4}), .policy = "restricted"});
  SetDevices(scene.state, "nvidia.com/gpu", {"gpu-0-0", "gpu-1-0"});
  EXPECT_EQ(scene.Ask("1 CPU limit 2 CPU 4 GPU"), "TopologyAffinityError");
}

TEST(PeerMisprediction, RowK5AGroupOutlivesThePodThatMadeItAndASingleBlockForbidsOne) {
  Scene grouped({.policy = "best-effort"});
  EXPECT_EQ(grouped.Add("wide", "2 CPU 80Gi"), "admitted on 0-1, not preferred");
  EXPECT_EQ(grouped.Add("p1", "2 CPU 1Gi"), "admitted on 0-1, not preferred");
  grouped.Remove("wide");
  EXPECT_EQ(grouped.Add("p2", "2 CPU 1Gi"), "admitted on 0-1, not preferred");
  Scene single({.policy = "best-effort"});
  EXPECT_EQ(single.Add("p1", "2 CPU 1Gi"), "admitted on 0");
  EXPECT_EQ(single.Add("wide", "2 CPU 80Gi"), "UnexpectedAdmissionError");
}

TEST(PeerMisprediction, RowK6MemoryOnTwoNumaNodesIsTaken) {
  Scene scene({.numa = Alike(2, {.memory = "96Gi"}), .policy = "restricted"});
  EXPECT_EQ(scene.Add("wide", "20 CPU 128Gi"), "admitted on 0-1");
  EXPECT_EQ(scene.Add("p", "1 CPU 90Gi"), "UnexpectedAdmissionError");
}

TEST(PeerMisprediction, RowK7ADeviceOnTwoNumaNodesIsCharged) {
  placement::NodePlacement node = NodeOf({.policy = "restricted"});
  AddDevice(node, "vendor.com/nic", "both", {0, 1});
  Scene scene(node);
  EXPECT_EQ(scene.Add("p1", "1 CPU 1Gi 1 vendor.com/nic"), "admitted on 0");
  EXPECT_EQ(scene.Add("p2", "1 CPU 1Gi 1 vendor.com/nic"), "TopologyAffinityError");
}

}  // namespace
}  // namespace scheduler::admission
