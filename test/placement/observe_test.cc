#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "placement/observation.h"
#include "test/placement/scene.h"

namespace placement {
namespace {

using podresources::Container;
using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;

Container Of(const std::string& cpus, const std::vector<podresources::Device>& devices = {}) {
  return {.name = "main", .cpus = Cpus(cpus), .memory = {}, .devices = devices, .claims = {}};
}

TEST(Observe, ShowsTheHardwareAndNoTruthAboutPodsIfTheKubeletCannotBeAsked) {
  Scene scene(TwoNodes());
  scene.Add("llm-0", "u", {Of("1-2")});
  scene.facts.known_devices = {KnownGpu("GPU-a")};
  scene.facts.assignments = absl::NotFoundError("no socket at /x/kubelet.sock");
  const Observation seen = scene.Look();
  EXPECT_EQ(seen.placement.observed_at, std::nullopt);
  EXPECT_EQ(seen.placement.numa_nodes.size(), 2U);
  EXPECT_EQ(seen.placement.numa_nodes[0].free_cpus, std::nullopt);
  EXPECT_EQ(seen.placement.numa_nodes[0].memory[0].free, std::nullopt);
  EXPECT_EQ(seen.placement.devices.size(), 1U);
  EXPECT_EQ(seen.placement.summary.free, "");
  EXPECT_EQ(ConditionOf(seen, "PodResourcesReachable"), "False SocketMissing");
  EXPECT_EQ(ConditionOf(seen, "KernelAgrees"), "Unknown NoAnswer");
}

TEST(Observe, SumsUpWhatIsFree) {
  Scene scene(TwoNodes());
  for (const char* id : {"a", "b"}) scene.AddDevice(Gpu(id, {0}));
  scene.AddDevice(Gpu("c", {1}));
  scene.Add("llm-0", "u", {Of("16-19", {Gpu("c", {1})})});
  const Observation seen = scene.Look();
  EXPECT_EQ(seen.placement.summary.free, "0: 2 gpu 15 cpu · 1: 0 gpu 12 cpu");
  EXPECT_EQ(seen.placement.summary.pods, 1);
  EXPECT_EQ(seen.placement.summary.aligned, 1);
}

TEST(Observe, CountsNoPodThatTheKubeletDoesNotList) {
  Scene scene(TwoNodes());
  for (int i = 0; i < 200; ++i) {  // rejected ones: only their folders are there
    scene.facts.state.pod_logs->push_back({"ml", "job-" + std::to_string(i), std::to_string(i)});
  }
  const Observation seen = scene.Look();
  EXPECT_THAT(seen.placement.pods, IsEmpty());
  EXPECT_THAT(seen.placement.known_pods, IsEmpty());
  EXPECT_EQ(FindResource(seen, "node-0", "cpu")->available, 15);
}

TEST(Observe, KeepsTheDevicesOfAResourceWhosePluginHasNotRegisteredYet) {
  Scene scene(TwoNodes());
  scene.facts.state.devices->registered["nvidia.com/gpu"] = {"GPU-a"};
  scene.facts.known_devices = {KnownGpu("GPU-a")};
  const Observation seen = scene.Look();
  ASSERT_EQ(seen.placement.devices.size(), 1U);
  EXPECT_FALSE(seen.placement.devices[0].healthy);
  EXPECT_EQ(ConditionOf(seen, "DevicesRegistered"), "False Settling");
  EXPECT_THAT(Codes(seen), Contains("DevicePluginNotRegistered"));
  EXPECT_EQ(seen.placement.summary.free, "0: 15 cpu · 1: 16 cpu");  // not "0 gpu"
}

TEST(Observe, ForgetsTheDevicesOfAResourceThatTheKubeletHasForgotten) {
  Scene scene(TwoNodes());
  scene.facts.known_devices = {KnownGpu("GPU-a")};
  EXPECT_THAT(scene.Look().placement.devices, IsEmpty());
}

TEST(Observe, CountsADeviceThatAFinishedInitContainerKeeps) {
  Scene scene(TwoNodes());
  scene.AddDevice(Gpu("GPU-a", {0}));
  scene.AddDevice(Gpu("GPU-b", {0}));
  scene.Add("llm-0", "u", {Of("1-2", {Gpu("GPU-a", {0})})});
  scene.facts.state.devices->entries["u"]["init"] = {Gpu("GPU-a", {0}), Gpu("GPU-b", {0})};
  const Observation seen = scene.Look();
  EXPECT_EQ(FindResource(seen, "node-0", "nvidia.com/gpu")->available, 0);
  const PlacedPod* pod = FindPod(seen, "llm-0");
  ASSERT_EQ(pod->containers.size(), 2U);
  EXPECT_THAT(pod->containers[1].devices.at(0).ids, ElementsAre("GPU-b"));
  scene.ForgetInList("llm-0");
  EXPECT_EQ(FindResource(scene.Look(), "node-0", "nvidia.com/gpu")->available, 2);
}

TEST(Observe, DoesNotTrustTheCheckpointAboutPodsThatAreGone) {
  Scene scene(TwoNodes());
  scene.AddDevice(Gpu("GPU-a", {0}));
  scene.facts.state.devices->entries["dead"]["main"] = {Gpu("GPU-a", {0})};
  EXPECT_EQ(FindResource(scene.Look(), "node-0", "nvidia.com/gpu")->available, 1);
}

TEST(Observe, SaysThatTheConfiguredPolicyIsNotTheOneInTheStateFile) {
  Scene scene(TwoNodes());
  scene.facts.state.cpu->policy = "none";
  const Observation seen = scene.Look();
  EXPECT_EQ(seen.placement.kubelet.cpu_policy, "none");  // it answers, so this one is in force
  EXPECT_THAT(Codes(seen), Contains("PolicyDiffersFromState"));
}

TEST(Observe, InfersThePoliciesFromWhatTheKubeletCouldHandOut) {
  Scene scene(TwoNodes());
  scene.facts.config = {};
  scene.facts.state.cpu.reset();
  scene.facts.state.memory.reset();
  EXPECT_EQ(scene.Look().placement.kubelet.cpu_policy, "static");
  EXPECT_EQ(scene.Look().placement.kubelet.memory_policy, "Static");
  EXPECT_EQ(scene.Look().placement.kubelet.config_source, "unknown");
  EXPECT_EQ(scene.Look().placement.kubelet.reserved_cpus, Cpus("0"));
}

TEST(Observe, PassesOnAllDiagnosticsSortedAndOnce) {
  Scene scene(TwoNodes());
  scene.facts.topology.diagnostics = {{"B", "x", "b"}, {"A", "x", "a"}};
  scene.facts.config.diagnostics = {{"C", "x", "c"}, {"B", "x", "b"}};
  EXPECT_THAT(Codes(scene.Look()), ElementsAre("A", "B", "C"));
}

TEST(Observe, SaysThatTheFilesKeptChanging) {
  Scene scene(TwoNodes());
  EXPECT_EQ(ConditionOf(scene.Look(), "Settled"), "True FilesUnchanged");
  scene.facts.settled = false;
  EXPECT_EQ(ConditionOf(scene.Look(), "Settled"), "False FilesChanging");
}

TEST(Observe, GroupsCoresBySocketAndCache) {
  hwinfo::Topology topology = Machine({{.id = 0, .cpus = "0-7", .memory = kGiB}});
  for (hwinfo::Cpu& cpu : topology.cpus) {
    cpu.siblings = {cpu.id % 4, cpu.id % 4 + 4};
    cpu.l3 = cpu.id % 4 < 2 ? 0 : 2;
  }
  const Observation seen = Scene(topology).Look();
  EXPECT_THAT(seen.placement.numa_nodes[0].core_groups,
              ElementsAre(CoreGroup{.socket = 0, .l3 = 0, .cores = {Cpus("0,4"), Cpus("1,5")}},
                          CoreGroup{.socket = 0, .l3 = 2, .cores = {Cpus("2,6"), Cpus("3,7")}}));
}

// Four NUMA nodes of four CPUs, two to a socket; one L3 for `width` CPUs each, with ids from 100.
std::vector<int> PublishedL3s(int width) {
  hwinfo::Topology topology = Machine({{.id = 0, .cpus = "0-3", .memory = kGiB, .socket = 0},
                                       {.id = 1, .cpus = "4-7", .memory = kGiB, .socket = 0},
                                       {.id = 2, .cpus = "8-11", .memory = kGiB, .socket = 1},
                                       {.id = 3, .cpus = "12-15", .memory = kGiB, .socket = 1}});
  for (hwinfo::Cpu& cpu : topology.cpus) {
    cpu.siblings = {cpu.id / 2 * 2, cpu.id / 2 * 2 + 1};
    cpu.l3 = width > 0 ? 100 + cpu.id / width : -1;
  }
  std::vector<int> l3s;
  for (const NumaNodePlacement& node : Scene(topology).Look().placement.numa_nodes) {
    for (const CoreGroup& group : node.core_groups) l3s.push_back(group.l3);
  }
  return l3s;
}

TEST(Observe, KnowsAnL3ByTheIdThatTheKubeletOrdersItBy) {
  EXPECT_THAT(PublishedL3s(2), ElementsAre(100, 101, 102, 103, 104, 105, 106, 107));
  EXPECT_THAT(PublishedL3s(4), ElementsAre(0, 0, 1, 1));          // a whole node's: the socket's
  EXPECT_THAT(PublishedL3s(8), ElementsAre(100, 100, 101, 101));  // wider than a node: its own
  EXPECT_THAT(PublishedL3s(0), ElementsAre(0, 0, 1, 1));          // none: the socket's
}

}  // namespace
}  // namespace placement
