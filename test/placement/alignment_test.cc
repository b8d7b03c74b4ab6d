#include "placement/alignment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/placement/scene.h"

namespace placement {
namespace {

using podresources::Container;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

Container Of(const std::string& name, const std::string& cpus,
             const std::vector<podresources::MemoryBlock>& memory = {},
             const std::vector<podresources::Device>& devices = {}) {
  return {.name = name, .cpus = Cpus(cpus), .memory = memory, .devices = devices, .claims = {}};
}

// The pod's alignment, reason and message, as a person would see them.
PlacedPod Judge(const Scene& scene, const std::string& name = "llm-0") {
  const Observation seen = scene.Look();
  const PlacedPod* pod = FindPod(seen, name);
  return pod == nullptr ? PlacedPod() : *pod;
}

Scene GpuScene(int gpus_on_0, int gpus_on_1) {
  Scene scene(TwoNodes());
  for (int i = 0; i < gpus_on_0; ++i) scene.AddDevice(Gpu("GPU-0" + std::to_string(i), {0}));
  for (int i = 0; i < gpus_on_1; ++i) scene.AddDevice(Gpu("GPU-1" + std::to_string(i), {1}));
  return scene;
}

TEST(Alignment, AlignedIsAllOnOneNumaNode) {
  Scene scene = GpuScene(2, 2);
  scene.Add(
      "llm-0", "u",
      {Of("server", "4-11", {Block(32 * kGiB, {0})}, {Gpu("GPU-00", {0}), Gpu("GPU-01", {0})})});
  const PlacedPod pod = Judge(scene);
  EXPECT_EQ(pod.alignment, Alignment::kAligned);
  EXPECT_EQ(pod.reason, "AllOnOneNUMANode");
  EXPECT_EQ(pod.message, "8 CPUs, 32Gi of memory and 2 GPUs are on NUMA node 0.");
  EXPECT_EQ(pod.numa_nodes, base::NumaMask{0});
}

TEST(Alignment, MisalignedIsOnMoreNumaNodesThanTheHardwareNeeds) {
  Scene scene = GpuScene(2, 2);
  scene.Add("llm-0", "u", {Of("server", "16-23", {}, {Gpu("GPU-00", {0}), Gpu("GPU-01", {0})})});
  const PlacedPod pod = Judge(scene);
  EXPECT_EQ(pod.alignment, Alignment::kMisaligned);
  EXPECT_EQ(pod.reason, "MoreNUMANodesThanNeeded");
  EXPECT_EQ(pod.message,
            "2 GPUs are on NUMA node 0, 8 CPUs are on NUMA node 1; 1 NUMA node could hold all of "
            "it.");
}

TEST(Alignment, SpreadIsWhatNoFewerNumaNodesCouldHold) {
  Scene scene = GpuScene(4, 2);
  std::vector<podresources::Device> six;
  for (const podresources::Device& gpu : scene.facts.assignments->allocatable->devices) {
    six.push_back(gpu);
  }
  scene.Add("llm-0", "u", {Of("server", "1-4,16-19", {}, six)});
  const PlacedPod pod = Judge(scene);
  EXPECT_EQ(pod.alignment, Alignment::kSpread);
  EXPECT_EQ(pod.reason, "NeedsSeveralNUMANodes");
}

TEST(Alignment, UnpinnedIsADeviceWithoutCpus) {
  Scene scene = GpuScene(1, 0);
  scene.Add("llm-0", "u", {Of("server", "", {}, {Gpu("GPU-00", {0})})});
  const PlacedPod pod = Judge(scene);
  EXPECT_EQ(pod.alignment, Alignment::kUnpinned);
  EXPECT_EQ(pod.message, "1 GPU is on NUMA node 0, but it has no CPUs of its own.");
}

TEST(Alignment, MisalignedComesBeforeUnpinned) {
  Scene scene = GpuScene(1, 1);
  AddGpu(scene.facts.topology, 1, 0);
  scene.AddDevice(Gpu("GPU-01", {0}));
  scene.Add("llm-0", "u", {Of("server", "", {}, {Gpu("GPU-00", {0}), Gpu("GPU-10", {1})})});
  EXPECT_EQ(Judge(scene).alignment, Alignment::kMisaligned);
}

TEST(Alignment, ReportsACpusetThatSpansNodesUnderSingleNumaNodeWithTheNumbers) {
  Scene scene(Machine({{.id = 0, .cpus = "0-13", .memory = kGiB, .socket = 0},
                       {.id = 1, .cpus = "14-27", .memory = kGiB, .socket = 1}}));
  scene.Add("llm-0", "u", {Of("main", "13,20-27")});
  const PlacedPod pod = Judge(scene);
  EXPECT_EQ(pod.alignment, Alignment::kMisaligned);
  EXPECT_THAT(pod.message, HasSubstr("1 CPU is on NUMA node 0, 8 CPUs are on NUMA node 1"));
}

TEST(Alignment, JudgesEachContainerUnderScopeContainerAndShowsTheWorst) {
  Scene scene = GpuScene(1, 1);
  scene.Add("llm-0", "u",
            {Of("a", "1-2", {}, {Gpu("GPU-00", {0})}), Of("b", "16-17", {}, {Gpu("GPU-10", {1})})});
  EXPECT_EQ(Judge(scene).alignment, Alignment::kAligned);
  EXPECT_EQ(Judge(scene).numa_nodes, (base::NumaMask{0, 1}));
  scene.Policy("restricted", "pod");
  EXPECT_EQ(Judge(scene).alignment, Alignment::kSpread);  // no NUMA node has two GPUs
  scene.AddDevice(Gpu("GPU-01", {0}));
  EXPECT_EQ(Judge(scene).alignment, Alignment::kMisaligned);
  scene.Policy("restricted", "container");
  scene.Add("llm-1", "v", {Of("a", "3-4"), Of("b", "5,18")});
  EXPECT_EQ(Judge(scene, "llm-1").alignment, Alignment::kMisaligned);
  EXPECT_THAT(Judge(scene, "llm-1").message, HasSubstr("Container b: "));
}

TEST(Alignment, GoesByTheKernelsWordOnADeviceAndNotByThePluginsClaim) {
  Scene scene = GpuScene(1, 0);
  AddGpu(scene.facts.topology, 0x1b, 1);
  scene.Resolve("GPU-00", 0x1b);
  scene.Add("llm-0", "u", {Of("server", "1-2", {}, {Gpu("GPU-00", {0})})});
  EXPECT_EQ(Judge(scene).numa_nodes, (base::NumaMask{0, 1}));
  EXPECT_EQ(Judge(scene).alignment, Alignment::kMisaligned);
  EXPECT_THAT(Codes(scene.Look()), Contains("DeviceLocalityDisagrees"));
  EXPECT_EQ(FindResource(scene.Look(), "node-0", "nvidia.com/gpu")->capacity, 1);
}

TEST(Alignment, IsUnknownWhereNobodySaysWhereAPciDeviceIs) {
  Scene scene(TwoNodes());
  AddGpu(scene.facts.topology, 0x1b, -1);
  scene.AddDevice(Gpu("GPU-x", {}));
  scene.Resolve("GPU-x", 0x1b);
  scene.Add("llm-0", "u", {Of("server", "1-2", {}, {Gpu("GPU-x", {})})});
  EXPECT_EQ(Judge(scene).alignment, Alignment::kUnknown);
  EXPECT_EQ(Judge(scene).reason, "DeviceLocalityUnknown");
}

TEST(Alignment, IsUnknownForADeviceWithoutPlaceWhereOthersOfItsResourceHaveOne) {
  Scene scene = GpuScene(1, 0);
  scene.AddDevice(Gpu("GPU-x", {}));
  scene.Add("llm-0", "u", {Of("server", "1-2", {}, {Gpu("GPU-x", {})})});
  EXPECT_EQ(Judge(scene).alignment, Alignment::kUnknown);
}

TEST(Alignment, LeavesOutDevicesThatHaveNothingToDoWithNuma) {
  Scene scene(TwoNodes());
  const podresources::Device fuse{.resource = "example.com/fuse", .id = "fuse-0", .numa_nodes = {}};
  scene.AddDevice(fuse);
  scene.Add("llm-0", "u", {Of("server", "1-2", {}, {fuse})});
  EXPECT_EQ(Judge(scene).alignment, Alignment::kAligned);
  EXPECT_EQ(FindResource(scene.Look(), "node-0", "example.com/fuse"), nullptr);
}

TEST(Alignment, KnowsWhereADeviceIsOnAMachineWithOneNumaNode) {
  Scene scene(Machine({{.id = 0, .cpus = "0-7", .memory = kGiB}}));
  AddGpu(scene.facts.topology, 0x1b, -1);
  scene.AddDevice(Gpu("GPU-x", {}));
  scene.Resolve("GPU-x", 0x1b);
  scene.Add("llm-0", "u", {Of("server", "1-2", {}, {Gpu("GPU-x", {})})});
  EXPECT_EQ(Judge(scene).alignment, Alignment::kAligned);
}

TEST(Alignment, ADeviceNearTwoNumaNodesIsWhereTheRestIs) {
  Scene scene(TwoNodes());
  scene.AddDevice(Gpu("GPU-x", {0, 1}));
  scene.Add("llm-0", "u", {Of("server", "16-17", {}, {Gpu("GPU-x", {0, 1})})});
  EXPECT_EQ(Judge(scene).alignment, Alignment::kAligned);
  EXPECT_EQ(Judge(scene).numa_nodes, base::NumaMask{1});
}

TEST(Alignment, SeveralPodsMayShareOnePhysicalGpu) {
  Scene scene(TwoNodes());
  AddGpu(scene.facts.topology, 0x1b, 0);
  for (const char* id : {"GPU-a::0", "GPU-a::1", "GPU-a::2", "GPU-a::3"}) {
    scene.AddDevice(Gpu(id, {0}));
    scene.Resolve(id, 0x1b);
  }
  scene.Add("p1", "u1", {Of("main", "1-2", {}, {Gpu("GPU-a::0", {0})})});
  scene.Add("p2", "u2", {Of("main", "3-4", {}, {Gpu("GPU-a::1", {0})})});
  const Observation seen = scene.Look();
  EXPECT_EQ(FindPod(seen, "p1")->alignment, Alignment::kAligned);
  EXPECT_EQ(FindPod(seen, "p2")->alignment, Alignment::kAligned);
  EXPECT_EQ(seen.placement.devices[1].pci_address, "0000:1b:00.0");
  EXPECT_EQ(FindResource(seen, "node-0", "nvidia.com/gpu")->available, 2);
  EXPECT_TRUE(seen.diagnostics.empty());
}

TEST(Alignment, PlacesDevicesOfDraDriversByTheirHardware) {
  Scene scene(TwoNodes());
  AddGpu(scene.facts.topology, 0x1b, 1);
  hwinfo::ResolvedDevice resolved;
  resolved.address = hwinfo::PciAddress{.bus = 0x1b};
  scene.facts.device_hardware.push_back(
      {.resource = "gpu.example.com", .id = "pool-a/gpu-0", .resolved = resolved});
  Container container = Of("server", "1-2");
  podresources::ClaimDevice claim;
  claim.driver = "gpu.example.com";
  claim.pool = "pool-a";
  claim.device = "gpu-0";
  container.claims = {claim};
  scene.Add("llm-0", "u", {container});
  EXPECT_EQ(Judge(scene).alignment, Alignment::kMisaligned);
  EXPECT_EQ(FindResource(scene.Look(), "node-1", "gpu.example.com"), nullptr);
}

TEST(Alignment, GoesByADriversWordOnADeviceWhereTheKernelHasNone) {
  Scene scene(TwoNodes());
  scene.facts.device_hardware.push_back(
      {.resource = "dra.net", .id = "pool-a/eth1", .resolved = {}, .claimed_node = 1});
  Container container = Of("server", "1-2");
  podresources::ClaimDevice claim;
  claim.driver = "dra.net";
  claim.pool = "pool-a";
  claim.device = "eth1";
  container.claims = {claim};
  scene.Add("llm-0", "u", {container});
  EXPECT_EQ(Judge(scene).alignment, Alignment::kMisaligned);
  ASSERT_EQ(scene.Look().placement.devices.size(), 1U);
  EXPECT_EQ(scene.Look().placement.devices[0].numa_nodes, base::NumaMask{1});
}

TEST(Alignment, OfAPodOfWhichOnlyFinishedContainersHoldAnythingSaysSo) {
  Scene scene(TwoNodes());
  scene.Add("web-0", "uid-1", {Of("main", "")});
  scene.facts.state.cpu->entries["uid-1"]["init"] = Cpus("6-7");
  const Observation seen = scene.Look();
  ASSERT_NE(FindPod(seen, "web-0"), nullptr);
  EXPECT_EQ(FindPod(seen, "web-0")->alignment, Alignment::kAligned);
  EXPECT_EQ(FindPod(seen, "web-0")->reason, "NothingInUse");
  EXPECT_NE(FindPod(seen, "web-0")->message, "");
}

TEST(Drift, IsNoneWhereACgroupHasExactlyTheCpus) {
  Scene scene(TwoNodes());
  scene.Add("llm-0", "u", {Of("main", "8-15")});
  scene.Enforce("u", "aa", "8-15", "0-1");
  scene.Enforce("u", "sandbox", "0-31", "0-1");
  EXPECT_EQ(Judge(scene).alignment, Alignment::kAligned);
  EXPECT_EQ(ConditionOf(scene.Look(), "KernelAgrees"), "True AllAgree");
  EXPECT_EQ(Judge(scene).containers[0].kernel->cpus, Cpus("8-15"));
}

TEST(Drift, ShowsAPinningThatIsLost) {
  Scene scene(TwoNodes());
  scene.Add("llm-0", "u", {Of("main", "8-15")});
  scene.Enforce("u", "aa", "0-31", "0-1", 100 << 20);
  scene.Enforce("u", "sandbox", "0-31", "0-1");
  const PlacedPod pod = Judge(scene);
  EXPECT_EQ(pod.alignment, Alignment::kDrifted);
  EXPECT_EQ(pod.reason, "CPUsDiffer");
  EXPECT_EQ(pod.message,
            "The kubelet gave container main CPUs 8-15, but the kernel runs it on 0-31.");
  EXPECT_EQ(ConditionOf(scene.Look(), "KernelAgrees"), "False Drifted");
}

TEST(Drift, ShowsAMemorySetThatIsWiderThanTheBlocks) {
  Scene scene(TwoNodes());
  scene.Add("llm-0", "u", {Of("main", "8-15", {Block(kGiB, {0})})});
  scene.Enforce("u", "aa", "8-15", "0-1");
  const PlacedPod pod = Judge(scene);
  EXPECT_EQ(pod.alignment, Alignment::kDrifted);
  EXPECT_EQ(pod.reason, "MemoryNodesDiffer");
}

TEST(Drift, DoesNotMissNumaNodesWithoutMemory) {
  Scene scene(Machine(
      {{.id = 0, .cpus = "0-15", .memory = 64 * kGiB}, {.id = 1, .cpus = "16-31", .memory = 0}}));
  scene.Add("llm-0", "u", {Of("main", "8-15", {Block(kGiB, {0, 1})})});
  scene.Enforce("u", "aa", "8-15", "0");
  EXPECT_NE(Judge(scene).alignment, Alignment::kDrifted);
}

TEST(Drift, IsNotClaimedForAContainerThatMayNotRun) {
  Scene scene(TwoNodes());
  scene.Add("llm-0", "u", {Of("main", "8-15")});
  scene.Enforce("u", "sandbox", "0-31", "0-1");
  EXPECT_EQ(Judge(scene).alignment, Alignment::kAligned);
  EXPECT_THAT(Codes(scene.Look()), Contains("KernelFactsMissing"));
}

TEST(Drift, IsNotLookedForInInitContainersThatHaveFinished) {
  Scene scene(TwoNodes());
  scene.Add("llm-0", "uid-1", {Of("main", "4-5")});
  scene.facts.state.cpu->entries["uid-1"]["init"] = Cpus("6-7");
  scene.Enforce("uid-1", "c1", "4-5", "0-1");
  EXPECT_EQ(ConditionOf(scene.Look(), "KernelAgrees"), "True AllAgree");
}

TEST(Drift, IsNotClaimedOnCgroupsWithoutAName) {
  Scene scene(TwoNodes());
  scene.Add("llm-0", "u", {Of("main", "8-15")});
  scene.Enforce("u", "init", "0-3", "0-1", 100 << 20);  // not listed, and main does not run yet
  scene.Enforce("u", "sandbox", "0-31", "0-1");
  scene.facts.container_names.clear();
  EXPECT_EQ(Judge(scene).alignment, Alignment::kAligned);
  EXPECT_EQ(ConditionOf(scene.Look(), "KernelAgrees"), "Unknown PartlyCompared");
  scene.facts.enforced->containers[0].cpus = Cpus("8-15");
  EXPECT_EQ(ConditionOf(scene.Look(), "KernelAgrees"), "True AllAgree");
}

TEST(Drift, NamesCpusThatWentOffline) {
  Scene scene(TwoNodes());
  scene.Add("llm-0", "u", {Of("main", "14-15,40")});
  scene.facts.topology.offline_cpus = Cpus("40");
  scene.Enforce("u", "aa", "14-15", "0", 100 << 20);
  const PlacedPod pod = Judge(scene);
  EXPECT_EQ(pod.alignment, Alignment::kDrifted);
  EXPECT_THAT(pod.message, HasSubstr("CPU 40 is offline."));
}

TEST(Drift, IsNotWhereMemoryIsResidentThoughTheMessageSaysIt) {
  Scene scene(TwoNodes());
  scene.Add("llm-0", "u", {Of("main", "16-23", {Block(kGiB, {1})})});
  scene.Enforce("u", "aa", "16-23", "1", 200 << 20);  // all of it on node 0
  const PlacedPod pod = Judge(scene);
  EXPECT_EQ(pod.alignment, Alignment::kAligned);
  EXPECT_THAT(pod.message, HasSubstr("200 MiB of the 200 MiB"));
  EXPECT_THAT(Codes(scene.Look()), Contains("MemoryElsewhere"));
  scene.facts.enforced->containers[0].resident_bytes = {{0, 63 << 20}, {1, 10 << 20}};
  EXPECT_THAT(Codes(scene.Look()), Not(Contains("MemoryElsewhere")));
}

TEST(FewestNumaNodes, AsksForAllOfItTogether) {
  const std::vector<Installed> nodes = {{.id = 0, .cpus = 16, .memory = {}, .devices = {}},
                                        {.id = 1, .cpus = 0, .memory = {}, .devices = {{"g", 4}}}};
  EXPECT_EQ(FewestNumaNodes({.cpus = 1, .memory = {}, .devices = {{"g", 1}}}, nodes, 2), 2);
  EXPECT_EQ(FewestNumaNodes({.cpus = 1, .memory = {}, .devices = {}}, nodes, 2), 1);
}

TEST(FewestNumaNodes, EndsOnAMachineWithAThousandNumaNodes) {
  std::vector<Installed> nodes(1024);
  for (Installed& node : nodes) node.cpus = 1;
  EXPECT_EQ(FewestNumaNodes({.cpus = 500, .memory = {}, .devices = {}}, nodes, 501), 501);
  EXPECT_EQ(FewestNumaNodes({.cpus = 2, .memory = {}, .devices = {}}, nodes, 3), 2);
}

}  // namespace
}  // namespace placement
