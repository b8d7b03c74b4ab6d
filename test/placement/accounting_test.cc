#include "placement/accounting.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/placement/scene.h"

namespace placement {
namespace {

using podresources::Container;
using podresources::MemoryManagerState;
using testing::Contains;
using testing::IsEmpty;
using testing::Not;

Container Of(const std::string& cpus, const std::vector<podresources::MemoryBlock>& memory = {},
             const std::vector<podresources::Device>& devices = {}) {
  return {.name = "main", .cpus = Cpus(cpus), .memory = memory, .devices = devices, .claims = {}};
}

const NumaNodePlacement& Node(const Observation& seen, std::size_t index) {
  return seen.placement.numa_nodes.at(index);
}

std::int64_t FreeMemory(const Observation& seen, std::size_t index) {
  return Node(seen, index).memory.at(0).free.value_or(-1);
}

TEST(CpuAccounting, FreesTheCpusOfAPodThatTheStateFileStillShows) {
  Scene scene(TwoNodes());
  scene.Add("gone", "uid-1", {Of("4-7")});
  EXPECT_EQ(Node(scene.Look(), 0).free_cpus, Cpus("1-3,8-15"));
  scene.ForgetInList("gone");
  EXPECT_EQ(Node(scene.Look(), 0).free_cpus, Cpus("1-15"));
}

TEST(CpuAccounting, KeepsCpusOfAFinishedInitContainerHeldUntilThePodIsGone) {
  Scene scene(TwoNodes());
  scene.Add("llm-0", "uid-1", {Of("4-5")});
  scene.facts.state.cpu->entries["uid-1"]["init"] = Cpus("4-7");
  scene.facts.state.cpu->default_cpus -= Cpus("6-7");
  const Observation seen = scene.Look();
  EXPECT_EQ(Node(seen, 0).free_cpus, Cpus("1-3,8-15"));
  EXPECT_THAT(Codes(seen), Contains("CpusHeldButNotListed"));
  const PlacedPod* pod = FindPod(seen, "llm-0");
  ASSERT_NE(pod, nullptr);
  ASSERT_EQ(pod->containers.size(), 2U);
  EXPECT_EQ(pod->containers[1].name, "init");
  EXPECT_EQ(pod->containers[1].cpus, Cpus("6-7"));  // 4 and 5 are used on, and shown once
  scene.ForgetInList("llm-0");
  EXPECT_EQ(Node(scene.Look(), 0).free_cpus, Cpus("1-15"));
}

TEST(CpuAccounting, SaysHowManyCpusASidecarHoldsThatTheKubeletDoesNotList) {
  Scene scene(TwoNodes());
  scene.Add("web-0", "uid-1", {Of("4-7")});
  scene.facts.state.cpu->entries["uid-1"]["sidecar"] = Cpus("8-9");
  scene.facts.state.cpu->default_cpus -= Cpus("8-9");
  const Observation seen = scene.Look();
  EXPECT_EQ(Node(seen, 0).free_cpus, Cpus("1-3,10-15"));
  ASSERT_THAT(Codes(seen), Contains("CpusHeldButNotListed"));
  EXPECT_THAT(seen.diagnostics.front().message,
              testing::HasSubstr("2 CPUs (8-9) are held but not"));
}

TEST(CpuAccounting, DoesNotHandOutCpusThatTheKubeletHasLost) {
  Scene scene(TwoNodes());
  scene.facts.state.cpu->default_cpus -= Cpus("12-13");  // in no entry either
  const Observation seen = scene.Look();
  EXPECT_EQ(Node(seen, 0).free_cpus, Cpus("1-11,14-15"));
  EXPECT_THAT(Codes(seen), Contains("CpusUnusable"));
  EXPECT_EQ(ConditionOf(seen, "TopologyConsistent"), "False SourcesDisagree");
}

TEST(CpuAccounting, CountsHotAddedCpusAsUnusableByTheKubelet) {
  Scene scene(Machine({{.id = 0, .cpus = "0-3", .memory = kGiB}}));
  scene.facts.state.cpu->default_cpus = Cpus("0");
  scene.facts.assignments->allocatable->cpus = {};
  const Observation seen = scene.Look();
  EXPECT_EQ(Node(seen, 0).free_cpus, Cpus(""));
  ASSERT_THAT(Codes(seen), Contains("CpusUnusable"));
  EXPECT_THAT(seen.diagnostics.front().message, testing::HasSubstr("3 CPUs (1-3)"));
}

TEST(CpuAccounting, DoesNotTakeReservedCpusForLostOnesUnderStrictReservation) {
  Scene scene(TwoNodes(), "0,16");
  scene.facts.config.cpu_options.value = podresources::Options{{"strict-cpu-reservation", "true"}};
  scene.facts.config.reserved_cpus.value.reset();
  scene.facts.state.cpu->default_cpus -= Cpus("0,16");
  const Observation seen = scene.Look();
  EXPECT_THAT(Codes(seen), Not(Contains("CpusUnusable")));
  EXPECT_EQ(seen.placement.kubelet.reserved_cpus, Cpus("0,16"));
}

TEST(CpuAccounting, DoesNotCountAPodThatListsCpusTwice) {
  Scene scene(TwoNodes());
  scene.Add("web-1", "uid-2", {Of("2-3")});
  scene.facts.assignments->pods.push_back(PodOf("job-1", {Of("2-3")}));  // finished, still listed
  scene.facts.state.pod_logs->push_back({"ml", "job-1", "uid-1"});
  const Observation seen = scene.Look();
  EXPECT_EQ(Node(seen, 0).free_cpus, Cpus("1,4-15"));
  EXPECT_EQ(FindResource(seen, "node-0", "cpu")->available, 13);
}

TEST(CpuAccounting, GoesByTheAllocationAndNotByWhatAResizeAskedFor) {
  Scene scene(TwoNodes());
  scene.Add("web-1", "uid-1", {Of("2-9")});  // asks for 12 by now
  EXPECT_EQ(Node(scene.Look(), 0).free_cpus->size(), 15 - 8);
}

TEST(CpuAccounting, HasNoFreeCpusToTellWithoutTheStaticPolicy) {
  Scene scene(TwoNodes());
  scene.facts.config.cpu_policy.value = "none";
  scene.facts.state.cpu->policy = "none";
  const Observation seen = scene.Look();
  EXPECT_EQ(Node(seen, 0).free_cpus, std::nullopt);
  EXPECT_EQ(FindResource(seen, "node-0", "cpu"), nullptr);
}

TEST(CpuAccounting, GoesByTheListAloneWithoutAStateFileAndSaysSo) {
  Scene scene(TwoNodes());
  scene.Add("llm-0", "uid-1", {Of("4-7")});
  scene.facts.state.cpu.reset();
  const Observation seen = scene.Look();
  EXPECT_EQ(Node(seen, 0).free_cpus, Cpus("1-3,8-15"));
  EXPECT_THAT(Codes(seen), Contains("HiddenCpusUnknown"));
  EXPECT_EQ(ConditionOf(seen, "StateKnown"), "False FilesMissing");
}

// A disk that is full: what was given out since stands in the list alone.
TEST(CpuAccounting, SaysWhenTheStateFileIsOlderThanTheListAndCountsByTheList) {
  Scene scene(TwoNodes());
  scene.Add("llm-0", "uid-1", {Of("4-7")});
  EXPECT_EQ(ConditionOf(scene.Look(), "StateKnown"), "True AllRead");
  scene.facts.state.cpu->entries.clear();
  scene.facts.state.cpu->default_cpus |= Cpus("4-7");
  const Observation seen = scene.Look();
  EXPECT_EQ(Node(seen, 0).free_cpus, Cpus("1-3,8-15"));
  EXPECT_THAT(Codes(seen), Contains("StateFilesOld"));
  EXPECT_EQ(ConditionOf(seen, "StateKnown"), "False FilesOld");
  // The same where the CPUs were a dead pod's before.
  scene.facts.state.cpu->entries["uid-0"]["main"] = Cpus("4-9");
  scene.facts.state.cpu->default_cpus -= Cpus("4-9");
  EXPECT_EQ(ConditionOf(scene.Look(), "StateKnown"), "False FilesOld");
}

TEST(CpuAccounting, EstimatesWhatAnOldKubeletCannotSay) {
  Scene scene(TwoNodes());
  scene.facts.assignments->allocatable.reset();
  scene.facts.state.cpu.reset();
  scene.facts.config.reserved_cpus.value.reset();
  scene.facts.config.reserved_cpu_milli.value = 1500;
  const Observation seen = scene.Look();
  EXPECT_EQ(Node(seen, 0).free_cpus, Cpus("2-15"));  // 1.5 CPUs reserve two
  EXPECT_EQ(ConditionOf(seen, "AllocatableKnown"), "False Estimated");
}

MemoryManagerState Grouped() {
  MemoryManagerState state;
  state.policy = "Static";
  for (const int id : {0, 1}) {
    state.nodes[id].group = {0, 1};
    state.nodes[id].assignments = 1;
    state.nodes[id].memory["memory"] = {.total = 64, .allocatable = 64, .reserved = 50, .free = 14};
  }
  state.entries["uid-1"]["main"] = {Block(100, {0, 1})};
  return state;
}

TEST(MemoryAccounting, ReleaseMakesTheGroupOfTheOnlyPodSingleAgain) {
  const MemoryManagerState after = ReleaseInactive(Grouped(), {});
  EXPECT_THAT(after.entries, IsEmpty());
  for (const int id : {0, 1}) {
    EXPECT_EQ(after.nodes.at(id).group, base::NumaMask{id});
    EXPECT_EQ(after.nodes.at(id).assignments, 0);
    EXPECT_EQ(after.nodes.at(id).memory.at("memory").free, 64);
    EXPECT_EQ(after.nodes.at(id).memory.at("memory").reserved, 0);
  }
}

TEST(MemoryAccounting, ThePublishedGroupsAreSingleAgainThoughTheFileStillShowsTheDeadPod) {
  Scene scene(TwoNodes());
  scene.Add("wide", "uid-1", {Of("4-7", {Block(100 * kGiB, {0, 1})})});
  EXPECT_EQ(Node(scene.Look(), 0).memory_group, (base::NumaMask{0, 1}));
  scene.ForgetInList("wide");
  ASSERT_EQ(scene.facts.state.memory->nodes[0].group, (base::NumaMask{0, 1}));
  const Observation seen = scene.Look();
  for (const std::size_t i : {0U, 1U}) {
    EXPECT_EQ(Node(seen, i).memory_group, base::NumaMask{static_cast<int>(i)});
    EXPECT_EQ(Node(seen, i).memory_assignments, 0);
    EXPECT_EQ(FreeMemory(seen, i), 64 * kGiB);
  }
}

TEST(MemoryAccounting, ANodeForgetsItsGroupOnlyWithItsLastBlock) {
  MemoryManagerState state = Grouped();
  state.nodes[0].assignments = 2;
  state.nodes[1].assignments = 2;
  state.entries["uid-2"]["main"] = {Block(4, {0, 1})};
  const MemoryManagerState after = ReleaseInactive(state, {"uid-2"});
  EXPECT_EQ(after.nodes.at(0).group, (base::NumaMask{0, 1}));
  EXPECT_EQ(after.nodes.at(0).assignments, 1);
  EXPECT_THAT(after.entries, testing::ElementsAre(testing::Key("uid-2")));
}

TEST(MemoryAccounting, AssignmentsCountEachTypeOfMemory) {
  MemoryManagerState state = Grouped();
  for (const int id : {0, 1}) {
    state.nodes[id].assignments = 2;
    state.nodes[id].memory["hugepages-1Gi"] = {
        .total = 8, .allocatable = 8, .reserved = 1, .free = 7};
  }
  state.entries["uid-1"]["main"].push_back(
      {.type = "hugepages-1Gi", .bytes = 2, .numa_nodes = {0, 1}});
  const MemoryManagerState after = ReleaseInactive(state, {});
  EXPECT_EQ(after.nodes.at(1).assignments, 0);
  EXPECT_EQ(after.nodes.at(1).memory.at("hugepages-1Gi").free, 8);
}

TEST(MemoryAccounting, ReleasesInAscendingOrderAsMuchAsIsReservedThere) {
  MemoryManagerState state = Grouped();
  state.nodes[0].memory["memory"] = {.total = 64, .allocatable = 64, .reserved = 60, .free = 4};
  state.nodes[1].memory["memory"] = {.total = 64, .allocatable = 64, .reserved = 30, .free = 34};
  state.nodes[0].assignments = 2;
  state.nodes[1].assignments = 2;
  state.entries = {};
  state.entries["gone"]["main"] = {Block(40, {0, 1})};
  state.entries["stays"]["main"] = {Block(50, {0, 1})};
  const MemoryManagerState after = ReleaseInactive(state, {"stays"});
  EXPECT_EQ(after.nodes.at(0).memory.at("memory").free, 44);  // all 40 from node 0: numbers drift
  EXPECT_EQ(after.nodes.at(1).memory.at("memory").free, 34);
}

TEST(MemoryAccounting, ABlockThatWasEmptiedForReuseStillCountsAsAnAssignment) {
  MemoryManagerState state = Grouped();
  state.nodes[0].assignments = 2;
  state.nodes[1].assignments = 2;
  state.entries["uid-1"]["init"] = {Block(0, {0, 1})};
  EXPECT_EQ(ReleaseInactive(state, {}).nodes.at(0).assignments, 0);
}

TEST(MemoryAccounting, SurvivesAStateFileWhoseNumbersCannotBe) {
  MemoryManagerState state = Grouped();
  state.entries["uid-1"]["main"] = {Block(INT64_MAX, {0, 1, 7}),
                                    Block(-5, {0}),
                                    {.type = "no-such-type", .bytes = 3, .numa_nodes = {0}}};
  const MemoryManagerState after = ReleaseInactive(state, {});
  EXPECT_EQ(after.nodes.at(0).memory.at("memory").free, 64);
  EXPECT_EQ(after.nodes.at(0).assignments, 0);
}

TEST(MemoryAccounting, PublishesTheGroupThatKeepsSmallPodsOffAFreeNode) {
  Scene scene(Machine({{.id = 0, .cpus = "0-15", .memory = 99759243264},
                       {.id = 1, .cpus = "16-31", .memory = 99283886080}}));
  MemoryManagerState& state = *scene.facts.state.memory;
  state.nodes[0].memory["memory"] = {99759243264, 10538188800, 78483636224, 78215200768, 268435456};
  state.nodes[1].memory["memory"] = {99283886080, 1101004800, 87445463040, 13052854272,
                                     74392608768};
  for (const int id : {0, 1}) {
    state.nodes[id].group = {0, 1};
    state.nodes[id].assignments = 1;
  }
  const podresources::MemoryBlock block = Block(78215200768 + 13052854272, {0, 1});
  state.entries["uid-1"]["main"] = {block};
  scene.facts.assignments->pods.push_back(PodOf("wide", {Of("", {block})}));
  scene.facts.state.pod_logs->push_back({"ml", "wide", "uid-1"});
  const Observation seen = scene.Look();
  EXPECT_EQ(Node(seen, 1).memory_group, (base::NumaMask{0, 1}));
  EXPECT_EQ(FreeMemory(seen, 1), 74392608768);
  EXPECT_EQ(Node(seen, 0).memory[0].system_reserved, 10538188800);
}

TEST(MemoryAccounting, WithoutAStateFileSingleBlocksAreExactAndWideOnesFillAscending) {
  Scene scene(TwoNodes());
  scene.Add("wide", "uid-1", {Of("", {Block(70 * kGiB, {0, 1})})});
  scene.facts.state.memory.reset();
  const Observation seen = scene.Look();
  EXPECT_EQ(FreeMemory(seen, 0), 0);
  EXPECT_EQ(FreeMemory(seen, 1), 58 * kGiB);
  EXPECT_EQ(Node(seen, 0).memory_group, (base::NumaMask{0, 1}));
  EXPECT_EQ(Node(seen, 1).memory_assignments, 1);
  EXPECT_THAT(Codes(seen), Contains("HiddenMemoryUnknown"));
}

TEST(MemoryAccounting, HasNoFreeMemoryToTellWithoutTheStaticPolicy) {
  Scene scene(TwoNodes());
  scene.facts.config.memory_policy.value = "None";
  scene.facts.state.memory->policy = "None";
  const Observation seen = scene.Look();
  EXPECT_EQ(Node(seen, 0).memory[0].free, std::nullopt);
  EXPECT_EQ(Node(seen, 0).memory[0].capacity, 64 * kGiB);
  EXPECT_EQ(Node(seen, 0).memory_group, std::nullopt);
}

// A pod of kubelet 1.37's PodLevelResourceManagers, as a real one lists it and writes it down:
// "main" has CPUs and 8 GiB of its own, "side" and "helper" share the rest of the pod's 12 GiB and
// CPUs. The state files say so; the list has nothing for those two.
void AddPodLevelPod(Scene& scene, const std::string& name, const std::string& uid,
                    const std::string& main_cpus, const std::string& shared_cpus,
                    const base::NumaMask& nodes) {
  const auto container = [&](const std::string& called, const std::string& cpus,
                             std::int64_t bytes) {
    return Container{.name = called,
                     .cpus = Cpus(cpus),
                     .memory = {Block(bytes, nodes)},
                     .devices = {},
                     .claims = {}};
  };
  scene.Add(name, uid, {container("pod", "", 12 * kGiB)});  // fills the memory manager's table
  scene.facts.state.memory->entries.erase(uid);
  podresources::Pod& pod = scene.facts.assignments->pods.back();
  pod.containers = {container("main", main_cpus, 8 * kGiB),
                    container("side", shared_cpus, 4 * kGiB),
                    container("helper", shared_cpus, 4 * kGiB)};
  pod.cpus = Cpus(main_cpus) | Cpus(shared_cpus);
  pod.memory = {Block(12 * kGiB, nodes)};
  for (const Container& each : pod.containers) {
    scene.facts.state.cpu->entries[uid][each.name] = each.cpus;
    scene.facts.state.memory->entries[uid][each.name] = each.memory;
  }
  for (Container& each : pod.containers) {
    if (each.name != "main") {
      each = {.name = each.name, .cpus = {}, .memory = {}, .devices = {}, .claims = {}};
    }
  }
  scene.facts.state.cpu->pod_entries[uid] = pod.cpus;
  scene.facts.state.cpu->default_cpus -= pod.cpus;
  scene.facts.state.memory->pod_entries[uid] = pod.memory;
}

TEST(PodLevelAccounting, CountsWhatAnActivePodHoldsOnceThoughItsContainersOverlap) {
  Scene scene(TwoNodes());
  AddPodLevelPod(scene, "llm-0", "uid-1", "4-5", "6-7", {0});
  const Observation seen = scene.Look();
  EXPECT_EQ(Node(seen, 0).free_cpus, Cpus("1-3,8-15"));
  EXPECT_EQ(FreeMemory(seen, 0), 52 * kGiB);
  EXPECT_EQ(Node(seen, 0).memory_assignments, 1);
  EXPECT_EQ(FindPod(seen, "llm-0")->uid, "uid-1");
  EXPECT_THAT(Codes(seen), IsEmpty());
}

TEST(PodLevelAccounting, ShowsWhatThePodHasAsAContainerWithoutAName) {
  Scene scene(TwoNodes());
  scene.Policy("best-effort", "pod");
  AddPodLevelPod(scene, "llm-0", "uid-1", "4-5", "6-7", {0});
  const Observation seen = scene.Look();
  const PlacedPod& pod = *FindPod(seen, "llm-0");
  ASSERT_EQ(pod.containers.size(), 4U);
  EXPECT_EQ(pod.containers[0].name, "");
  EXPECT_EQ(pod.containers[0].cpus, Cpus("4-7"));
  EXPECT_EQ(pod.containers[0].memory, (std::vector<PlacedMemory>{{"memory", 12 * kGiB, {0}}}));
  EXPECT_EQ(pod.containers[1].cpus, Cpus("4-5"));
  EXPECT_EQ(pod.message, "4 CPUs and 12Gi of memory are on NUMA node 0.");
}

TEST(PodLevelAccounting, KnowsAPodOfWhichEveryContainerSharesWhatThePodHas) {
  Scene scene(TwoNodes());
  AddPodLevelPod(scene, "llm-0", "uid-1", "", "4-7", {0});
  scene.facts.assignments->pods.back().containers[0] = {
      .name = "main", .cpus = {}, .memory = {}, .devices = {}, .claims = {}};
  const Observation seen = scene.Look();
  EXPECT_EQ(FindPod(seen, "llm-0")->uid, "uid-1");
  EXPECT_EQ(FreeMemory(seen, 0), 52 * kGiB);
  EXPECT_EQ(Node(seen, 0).free_cpus, Cpus("1-3,8-15"));
}

TEST(PodLevelAccounting, GivesNoUidWhereAContainersEntryIsNoPartOfThePods) {
  Scene scene(TwoNodes());
  AddPodLevelPod(scene, "llm-0", "uid-1", "4-5", "6-7", {0});
  scene.facts.state.cpu->entries["uid-1"]["side"] = Cpus("6-8");
  EXPECT_EQ(FindPod(scene.Look(), "llm-0")->uid, "");
  scene.facts.state.cpu->entries["uid-1"]["side"] = Cpus("6-7");
  scene.facts.state.memory->entries["uid-1"]["side"] = {Block(13 * kGiB, {0})};
  EXPECT_EQ(FindPod(scene.Look(), "llm-0")->uid, "");
}

TEST(PodLevelAccounting, HoldsCpusOfThePodThatNoneOfItsContainersHas) {
  Scene scene(TwoNodes());
  AddPodLevelPod(scene, "llm-0", "uid-1", "4-5", "6-7", {0});
  scene.facts.assignments->pods.back().cpus |= Cpus("8");
  scene.facts.state.cpu->pod_entries["uid-1"] |= Cpus("8");
  scene.facts.state.cpu->default_cpus -= Cpus("8");
  EXPECT_EQ(Node(scene.Look(), 0).free_cpus, Cpus("1-3,9-15"));
  EXPECT_THAT(Codes(scene.Look()), IsEmpty());
}

TEST(PodLevelAccounting, ReleasesThePodsBlocksAndNotItsContainersToo) {
  Scene scene(TwoNodes());
  AddPodLevelPod(scene, "gone", "uid-1", "4-5", "6-7", {0, 1});
  scene.Add("stays", "uid-2", {Of("8-9", {Block(20 * kGiB, {0, 1})})});
  scene.ForgetInList("gone");
  const Observation seen = scene.Look();
  EXPECT_EQ(Node(seen, 0).free_cpus, Cpus("1-7,10-15"));
  EXPECT_EQ(FreeMemory(seen, 0) + FreeMemory(seen, 1), 108 * kGiB);
  EXPECT_EQ(Node(seen, 0).memory_assignments, 1);
  EXPECT_EQ(Node(seen, 0).memory_group, (base::NumaMask{0, 1}));
  scene.ForgetInList("stays");
  EXPECT_EQ(FreeMemory(scene.Look(), 0), 64 * kGiB);
  EXPECT_EQ(Node(scene.Look(), 0).memory_group, base::NumaMask{0});
}

TEST(PodLevelAccounting, WithoutStateFilesTakesThePodsBlocksFromTheListOnce) {
  Scene scene(TwoNodes());
  AddPodLevelPod(scene, "llm-0", "uid-1", "4-5", "6-7", {0});
  scene.facts.state.cpu.reset();
  scene.facts.state.memory.reset();
  const Observation seen = scene.Look();
  EXPECT_EQ(Node(seen, 0).free_cpus, Cpus("1-3,8-15"));
  EXPECT_EQ(FreeMemory(seen, 0), 52 * kGiB);
}

TEST(PodLevelAccounting, KnowsReservedCpusFromThoseThatNoEntryHas) {
  Scene scene(TwoNodes(), "0,16");
  AddPodLevelPod(scene, "llm-0", "uid-1", "4-5", "6-7", {0});
  scene.facts.config.reserved_cpus.value.reset();
  scene.facts.state.cpu->entries.clear();  // what only the pod's entry has is no hole either
  scene.facts.assignments->allocatable->cpus -= Cpus("6");
  EXPECT_EQ(scene.Look().placement.kubelet.reserved_cpus, Cpus("0,6,16"));
}

TEST(PodLevelAccounting, DoesNotShowAFinishedInitContainersPartOfThePodsMemory) {
  Scene scene(TwoNodes());
  AddPodLevelPod(scene, "llm-0", "uid-1", "4-5", "6-7", {0});
  scene.facts.state.cpu->entries["uid-1"]["init"] = Cpus("4-7");
  scene.facts.state.memory->entries["uid-1"]["init"] = {Block(12 * kGiB, {0})};
  const Observation seen = scene.Look();
  ASSERT_NE(FindPod(seen, "llm-0"), nullptr);
  EXPECT_EQ(FindPod(seen, "llm-0")->containers.size(), 4U);
}

TEST(PodLevelAccounting, GivesNoUidWhosePodLevelEntryDiffers) {
  Scene scene(TwoNodes());
  AddPodLevelPod(scene, "llm-0", "uid-1", "4-5", "6-7", {0});
  scene.facts.state.cpu->pod_entries["uid-1"] = Cpus("4-9");
  EXPECT_EQ(FindPod(scene.Look(), "llm-0")->uid, "");
}

TEST(PodLevelAccounting, WeighsThePodByWhatItHoldsOnceUnderScopePod) {
  Scene scene(TwoNodes());
  scene.Policy("best-effort", "pod");
  // 16 CPUs and 12 GiB over two nodes, either of which could hold them; the containers' sum could
  // not be held by one.
  AddPodLevelPod(scene, "llm-0", "uid-1", "4-5", "6-11,16-23", {0, 1});
  EXPECT_EQ(FindPod(scene.Look(), "llm-0")->alignment, Alignment::kMisaligned);
}

// A pod each, that holds the GPU at 0000:1b:00.0 by its plugin and by a DRA driver.
Scene HeldByPluginAndDriver(const std::optional<std::string>& plugins_partition,
                            const std::optional<std::string>& drivers_partition) {
  Scene scene(TwoNodes());
  AddGpu(scene.facts.topology, 0x1b, 0);
  hwinfo::ResolvedDevice resolved;
  resolved.address = hwinfo::PciAddress{.bus = 0x1b};
  resolved.partition = drivers_partition;
  scene.facts.device_hardware.push_back(
      {.resource = "gpu.nvidia.com", .id = "gpu-7/gpu-0", .resolved = resolved});
  resolved.partition = plugins_partition;
  scene.facts.device_hardware.push_back(
      {.resource = "nvidia.com/gpu", .id = "GPU-a", .resolved = resolved});
  scene.AddDevice(Gpu("GPU-a", {0}));
  podresources::ClaimDevice claim;
  claim.driver = "gpu.nvidia.com";
  claim.pool = "gpu-7";
  claim.device = "gpu-0";
  Container by_driver{.name = "main", .cpus = {}, .memory = {}, .devices = {}, .claims = {claim}};
  Container by_plugin = by_driver;
  by_plugin.claims = {};
  by_plugin.devices = {Gpu("GPU-a", {0})};
  scene.Add("by-driver", "uid-1", {by_driver});
  scene.Add("by-plugin", "uid-2", {by_plugin});
  return scene;
}

TEST(Devices, HeldByWayOfAPluginAndOfADriverAreAContradiction) {
  const Observation seen = HeldByPluginAndDriver(std::nullopt, std::nullopt).Look();
  EXPECT_THAT(Codes(seen), testing::Contains("DeviceHeldTwice"));
  EXPECT_EQ(ConditionOf(seen, "TopologyConsistent"), "False SourcesDisagree");
  EXPECT_THAT(Codes(HeldByPluginAndDriver("MIG-1", std::nullopt).Look()),
              testing::Contains("DeviceHeldTwice"));
}

TEST(Devices, OfWhichPluginAndDriverGaveAwayAPartitionEachAreNone) {
  const Observation seen = HeldByPluginAndDriver("MIG-1", "mig-1g5gb-19-0").Look();
  EXPECT_THAT(Codes(seen), testing::Not(testing::Contains("DeviceHeldTwice")));
}

}  // namespace
}  // namespace placement
