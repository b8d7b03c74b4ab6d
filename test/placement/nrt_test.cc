#include "placement/nrt.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "test/placement/scene.h"

namespace placement {
namespace {

using podresources::Container;
using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;

Container Of(const std::string& cpus, const std::vector<podresources::MemoryBlock>& memory = {},
             const std::vector<podresources::Device>& devices = {}) {
  return {.name = "main", .cpus = Cpus(cpus), .memory = memory, .devices = devices, .claims = {}};
}

std::vector<std::string> ZoneNames(const Observation& seen) {
  std::vector<std::string> names;
  for (const NrtZone& zone : seen.nrt->zones) names.push_back(zone.name);
  return names;
}

std::string Attribute(const std::vector<NrtAttribute>& attributes, const std::string& name) {
  const auto found = std::ranges::find(attributes, name, &NrtAttribute::name);
  return found == attributes.end() ? "(absent)" : found->value;
}

TEST(Nrt, CountsCapacityAllocatableAndAvailablePerZone) {
  Scene scene(TwoNodes(), "0,16");
  scene.AddDevice(Gpu("GPU-a", {0}));
  scene.AddDevice(Gpu("GPU-b", {0}));
  scene.Add("llm-0", "u", {Of("1-4", {Block(10 * kGiB, {0})}, {Gpu("GPU-a", {0})})});
  const Observation seen = scene.Look();
  EXPECT_THAT(FindZone(seen, "node-0")->resources,
              ElementsAre(NrtResource{"cpu", 16, 15, 11},
                          NrtResource{"memory", 64 * kGiB, 64 * kGiB, 54 * kGiB},
                          NrtResource{"nvidia.com/gpu", 2, 2, 1}));
  EXPECT_THAT(FindZone(seen, "node-1")->resources,
              ElementsAre(NrtResource{"cpu", 16, 15, 15},
                          NrtResource{"memory", 64 * kGiB, 64 * kGiB, 64 * kGiB}));
}

TEST(Nrt, NamesZonesByIdThoughIdsHaveHoles) {
  Scene scene(Machine(
      {{.id = 0, .cpus = "0-3", .memory = kGiB}, {.id = 2, .cpus = "4-7", .memory = kGiB}}));
  scene.Add("llm-0", "u", {Of("4-5")});
  const Observation seen = scene.Look();
  EXPECT_THAT(ZoneNames(seen), ElementsAre("node-0", "node-2"));
  EXPECT_EQ(FindResource(seen, "node-2", "cpu")->available, 2);
  EXPECT_THAT(FindZone(seen, "node-2")->costs,
              ElementsAre(NrtCost{"node-0", 21}, NrtCost{"node-2", 10}));
}

TEST(Nrt, GivesNumaNodesAbove63AnotherZoneType) {
  Scene scene(Machine(
      {{.id = 63, .cpus = "0-3", .memory = kGiB}, {.id = 64, .cpus = "4-7", .memory = kGiB}}));
  const Observation seen = scene.Look();
  EXPECT_EQ(FindZone(seen, "node-63")->type, "Node");
  EXPECT_EQ(FindZone(seen, "node-64")->type, "NodeAbove63");
  EXPECT_THAT(FindZone(seen, "node-63")->costs, ElementsAre(NrtCost{"node-63", 10}));
}

TEST(Nrt, DrainsAMemoryBlockOnTwoNumaNodesOnceAndInAscendingOrder) {
  Scene scene(TwoNodes());
  scene.Add("wide", "u", {Of("", {Block(100 * kGiB, {0, 1})})});
  for (const bool state_file : {true, false}) {
    if (!state_file) scene.facts.state.memory.reset();
    const Observation seen = scene.Look();
    EXPECT_EQ(FindResource(seen, "node-0", "memory")->available, 0);
    EXPECT_EQ(FindResource(seen, "node-1", "memory")->available, 28 * kGiB);
  }
}

TEST(Nrt, CountsAndSubtractsADeviceOfTwoNumaNodesInEachZone) {
  Scene scene(TwoNodes());
  scene.AddDevice(Gpu("GPU-a", {0, 1}));
  scene.AddDevice(Gpu("GPU-b", {0, 1}));
  scene.Add("llm-0", "u", {Of("1-2", {}, {Gpu("GPU-a", {0, 1})})});
  const Observation seen = scene.Look();
  for (const char* zone : {"node-0", "node-1"}) {
    EXPECT_EQ(*FindResource(seen, zone, "nvidia.com/gpu"),
              (NrtResource{"nvidia.com/gpu", 2, 2, 1}));
  }
}

TEST(Nrt, ListsAnExcludedResourceInNoZoneThoughItIsInUse) {
  Scene scene(TwoNodes());
  scene.AddDevice(Gpu("GPU-a", {0}));
  scene.AddDevice(Gpu("GPU-b", {1}));
  scene.Add("llm-0", "u", {Of("1-4", {}, {Gpu("GPU-a", {0})})});
  scene.Add("gpu-alone", "v", {Of("", {}, {Gpu("GPU-b", {1})})});
  const Observation all = scene.Look();
  scene.facts.excluded_resources = {"nvidia.com/gpu", "memory", "example.com/none"};
  const Observation seen = scene.Look();
  EXPECT_THAT(FindZone(seen, "node-0")->resources, ElementsAre(NrtResource{"cpu", 16, 15, 11}));
  EXPECT_THAT(FindZone(seen, "node-1")->resources, ElementsAre(NrtResource{"cpu", 16, 16, 16}));
  EXPECT_EQ(seen.placement, all.placement) << "which tells what the kubelet aligns by";
  EXPECT_EQ(seen.placement.pods[1].alignment, Alignment::kAligned);

  scene.facts.assignments->pods.pop_back();
  EXPECT_EQ(Attribute(seen.nrt->attributes, "nodeTopologyPodsFingerprint"),
            Attribute(scene.Look().nrt->attributes, "nodeTopologyPodsFingerprint"))
      << "who compares it does not know of the other pod's device";
}

TEST(Nrt, ListsCpuAndMemoryInNoZoneWithoutTheirManagers) {
  Scene scene(TwoNodes());
  scene.facts.config.cpu_policy.value = "none";
  scene.facts.config.memory_policy.value = "None";
  scene.facts.state.cpu->policy = "none";
  scene.facts.state.memory->policy = "None";
  scene.AddDevice(Gpu("GPU-a", {0}));
  const Observation seen = scene.Look();
  EXPECT_THAT(FindZone(seen, "node-0")->resources,
              ElementsAre(NrtResource{"nvidia.com/gpu", 1, 1, 1}));
  EXPECT_THAT(FindZone(seen, "node-1")->resources, IsEmpty());
  EXPECT_EQ(Attribute(seen.nrt->attributes, "cpuManagerPolicy"), "none");
}

TEST(Nrt, KeepsZonesOfNumaNodesWithoutCpus) {
  Scene scene(Machine({{.id = 0, .cpus = "0-3", .memory = 8 * kGiB},
                       {.id = 1, .cpus = "", .memory = 5983LL << 20},
                       {.id = 2, .cpus = "", .memory = 0},
                       {.id = 6, .cpus = "", .memory = 0}}));
  scene.AddDevice(Gpu("GPU-a", {6}));
  const Observation seen = scene.Look();
  EXPECT_THAT(ZoneNames(seen), ElementsAre("node-0", "node-1", "node-6"));  // node 2 has nothing
  EXPECT_EQ(*FindResource(seen, "node-1", "cpu"), (NrtResource{"cpu", 0, 0, 0}));
  EXPECT_EQ(FindResource(seen, "node-1", "memory")->capacity, 5983LL << 20);
  EXPECT_EQ(FindResource(seen, "node-6", "nvidia.com/gpu")->available, 1);
  EXPECT_EQ(seen.placement.numa_nodes.size(), 4U);
}

TEST(Nrt, HasOneZonePerNumaNodeAndTheSocketAsAnAttribute) {
  std::vector<NodeSpec> nodes;
  for (int id = 0; id < 8; ++id) {
    nodes.push_back({.id = id,
                     .cpus = std::to_string(4 * id) + "-" + std::to_string(4 * id + 3),
                     .memory = kGiB,
                     .socket = id / 4});
  }
  const Observation seen = Scene(Machine(nodes)).Look();
  ASSERT_EQ(seen.nrt->zones.size(), 8U);
  EXPECT_EQ(Attribute(FindZone(seen, "node-3")->attributes, "socket"), "0");
  EXPECT_EQ(Attribute(FindZone(seen, "node-4")->attributes, "socket"), "1");
}

TEST(Nrt, CountsTheCpusOfADramNodeNotAgainForItsHighBandwidthMemory) {
  Scene scene(Machine({{.id = 0, .cpus = "0-15", .memory = 64 * kGiB},
                       {.id = 8, .cpus = "", .memory = 16 * kGiB}}));
  scene.facts.topology.numa_nodes[1].nearest_cpus = Cpus("0-15");
  const Observation seen = scene.Look();
  EXPECT_EQ(FindResource(seen, "node-0", "cpu")->capacity, 16);
  EXPECT_EQ(FindResource(seen, "node-8", "cpu")->capacity, 0);
}

TEST(Nrt, HasZoneNode0OnAMachineThatShowsNoNumaNodes) {
  Scene scene(Machine({{.id = 0, .cpus = "0-3", .memory = kGiB}}));
  scene.facts.topology.numa_visible = false;
  EXPECT_THAT(ZoneNames(scene.Look()), ElementsAre("node-0"));
}

TEST(Nrt, ListsHugePagesOnlyWhereANodeHasThem) {
  Scene scene(TwoNodes());
  scene.facts.topology.numa_nodes[0].huge_pages = {{.page_bytes = kGiB, .total = 4, .free = 4}};
  scene.facts.state.memory->nodes[0].memory["hugepages-1Gi"] = {
      .total = 4 * kGiB, .allocatable = 4 * kGiB, .free = 4 * kGiB};
  const Observation seen = scene.Look();
  EXPECT_EQ(FindResource(seen, "node-0", "hugepages-1Gi")->capacity, 4 * kGiB);  // bytes
  EXPECT_EQ(FindResource(seen, "node-1", "hugepages-1Gi"), nullptr);
}

TEST(Nrt, KeepsUnhealthyDevicesAsCapacityThatCannotBeHad) {
  Scene scene(TwoNodes());
  scene.AddDevice(Gpu("GPU-a", {0}));
  scene.facts.known_devices = {KnownGpu("GPU-a"), KnownGpu("GPU-b")};
  const Observation seen = scene.Look();
  EXPECT_EQ(*FindResource(seen, "node-0", "nvidia.com/gpu"),
            (NrtResource{"nvidia.com/gpu", 2, 1, 1}));
  EXPECT_FALSE(seen.placement.devices[1].healthy);
}

TEST(Nrt, IsUnaffectedByAPluginThatClaimsANumaNodeThatIsNotThere) {
  Scene scene(Machine({{.id = 0, .cpus = "0-3", .memory = kGiB}}));
  scene.AddDevice(Gpu("GPU-a", {1}));
  const Observation seen = scene.Look();
  EXPECT_THAT(ZoneNames(seen), ElementsAre("node-0"));
  EXPECT_EQ(FindResource(seen, "node-0", "nvidia.com/gpu"), nullptr);
  ASSERT_EQ(seen.placement.devices.size(), 1U);
  EXPECT_EQ(seen.placement.devices[0].numa_nodes, base::NumaMask{1});
  EXPECT_THAT(Codes(seen), Contains("DeviceClaimsUnknownNumaNode"));
}

TEST(Nrt, SaysPolicyScopeAndWhatElseDecidesPlacement) {
  Scene scene(TwoNodes(), "0,16");
  scene.facts.config.topology_options.value = podresources::Options{
      {"max-allowable-numa-nodes", "16"}, {"prefer-closest-numa-nodes", "true"}};
  scene.facts.config.cpu_options.value = podresources::Options{{"full-pcpus-only", "true"}};
  const Observation seen = scene.Look();
  const auto& attributes = seen.nrt->attributes;
  EXPECT_EQ(Attribute(attributes, "topologyManagerPolicy"), "single-numa-node");
  EXPECT_EQ(Attribute(attributes, "topologyManagerScope"), "container");
  EXPECT_EQ(Attribute(attributes, "topologyManagerMaxNUMANodes"), "16");
  EXPECT_EQ(Attribute(attributes, "topologyManagerPolicyOptions"),
            "max-allowable-numa-nodes=16,prefer-closest-numa-nodes=true");
  EXPECT_EQ(Attribute(attributes, "cpuManagerPolicyOptions"), "full-pcpus-only=true");
  EXPECT_EQ(Attribute(attributes, "reservedCPUs"), "0,16");
  EXPECT_EQ(Attribute(attributes, "memoryManagerPolicy"), "Static");
  EXPECT_THAT(seen.nrt->topology_policies, ElementsAre("SingleNUMANodeContainerLevel"));
  EXPECT_TRUE(std::ranges::is_sorted(attributes));
}

TEST(Nrt, SaysWhatIsFreeInOneLine) {
  Scene scene(TwoNodes(), "0,16");
  const Observation seen = scene.Look();
  EXPECT_EQ(Attribute(seen.nrt->attributes, "free"), "0: 15 cpu · 1: 15 cpu");
  EXPECT_EQ(seen.placement.summary.free, "0: 15 cpu · 1: 15 cpu");
}

TEST(Nrt, LeavesOutAttributesThatAreNotKnown) {
  Scene scene(TwoNodes());
  scene.facts.config.topology_policy.value.reset();
  scene.facts.config.topology_scope.value.reset();
  scene.facts.config.topology_options.value.reset();
  const Observation seen = scene.Look();
  EXPECT_EQ(Attribute(seen.nrt->attributes, "topologyManagerPolicy"), "(absent)");
  EXPECT_EQ(Attribute(seen.nrt->attributes, "topologyManagerMaxNUMANodes"), "(absent)");
  EXPECT_THAT(seen.nrt->topology_policies, IsEmpty());
  EXPECT_EQ(ConditionOf(seen, "ConfigKnown"), "False PartlyUnknown");
}

TEST(Nrt, FingerprintsThePodsThatHoldSomethingWithAPlace) {
  Scene scene(TwoNodes());
  scene.facts.assignments->pods = {PodOf("shared", {Of("")})};
  EXPECT_EQ(Attribute(scene.Look().nrt->attributes, "nodeTopologyPodsFingerprint"),
            "pfp0v001ef46db3751d8e999");  // of no pods
  podresources::Pod pod = PodOf("pod-0", {Of("1-2")});
  pod.namespace_name = "default";
  scene.facts.assignments->pods.push_back(pod);
  const Observation seen = scene.Look();
  EXPECT_EQ(Attribute(seen.nrt->attributes, "nodeTopologyPodsFingerprint"),
            "pfp0v0014b86611ae68e2f40");
  EXPECT_EQ(Attribute(seen.nrt->attributes, "nodeTopologyPodsFingerprintMethod"),
            "with-exclusive-resources");
  EXPECT_EQ(Attribute(seen.nrt->annotations, "topology.node.k8s.io/fingerprint"),
            "pfp0v0014b86611ae68e2f40");
}

TEST(Nrt, IsAbsentIfTheKubeletCouldNotBeAsked) {
  Scene scene(TwoNodes());
  scene.facts.assignments = absl::UnavailableError("connection refused");
  EXPECT_EQ(scene.Look().nrt, std::nullopt);
}

}  // namespace
}  // namespace placement
