#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <string>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "cli/recording.h"
#include "cli/replay.h"
#include "test/scheduler/scene.h"
#include "test/support/shared.h"
#include "test/support/status.h"

// Single rules of the kubelet. First those recorded with its real code and checked by hand, each
// under its own name; then trouble from the field, with the right answer (the numbers are those of
// the case collection).
namespace scheduler::admission {
namespace {

std::vector<cli::Recording> NamedRecordings() {
  std::vector<cli::Recording> recordings;
  if (!test::SharedFolder()) return recordings;
  const std::string path = *test::SharedFolder() + "/admission/named.jsonl.gz";
  EXPECT_OK(cli::ForEachLine(path, [&](int, const std::string& line) -> absl::Status {
    ASSIGN_OR_RETURN(cli::Recording recording, cli::ParseRecording(line));
    recordings.push_back(std::move(recording));
    return absl::OkStatus();
  }));
  return recordings;
}

class RecordedCase : public testing::TestWithParam<cli::Recording> {};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(RecordedCase);  // where the recordings are absent

TEST_P(RecordedCase, IsPredicted) {
  cli::Agreement agreement;
  ASSERT_OK(cli::Replay(GetParam(), {}, agreement));
  EXPECT_GT(agreement.events, 0);
  EXPECT_EQ(agreement.differences, std::vector<std::string>());
}

INSTANTIATE_TEST_SUITE_P(Named, RecordedCase, testing::ValuesIn(NamedRecordings()),
                         [](const testing::TestParamInfo<cli::Recording>& named) {
                           std::string name = named.param.name;
                           std::ranges::replace_if(
                               name, [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
                           return name;
                         });

// C02: each init container is aligned first and takes the lowest NUMA node that fits; the app
// container must hold the node of its re-usable CPU.
TEST(FieldCase, C02AnInitContainersNumaNodeBindsTheAppUnderScopeContainerOnly) {
  const std::string pod = "init 1 CPU 1Gi; 26 CPU 32Gi";
  Scene by_container({.numa = Alike(2, {.cpus = 32})});
  EXPECT_EQ(by_container.Add("p1", pod), "admitted on 0");
  EXPECT_EQ(by_container.Add("p2", pod), "TopologyAffinityError");
  Scene by_pod({.numa = Alike(2, {.cpus = 32}), .scope = "pod"});
  EXPECT_EQ(by_pod.Add("p1", pod), "admitted on 0");
  EXPECT_EQ(by_pod.Add("p2", pod), "admitted on 1");
}

TEST(FieldCase, C04RestrictedAsksForTheWidthThatTheHardwareCouldGive) {
  NodeSpec node{.numa = Alike(3, {.cpus = 6, .taken_cpus = 4}), .policy = "restricted"};
  EXPECT_EQ(Scene(node).Ask("4 CPU 1Gi"), "TopologyAffinityError");
  node.policy = "single-numa-node";
  EXPECT_EQ(Scene(node).Ask("4 CPU 1Gi"), "TopologyAffinityError");
  node.policy = "best-effort";
  EXPECT_EQ(Scene(node).Ask("4 CPU 1Gi"), "admitted on 0-1, not preferred");
}

TEST(FieldCase, C05SixFreeGpusInTwoThreesAreNoFour) {
  const NumaSpec used{.cpus = 96, .gpus = 4, .taken_cpus = 16, .taken_gpus = 1};
  const std::string pod = "80 CPU 1Gi 4 GPU";
  NodeSpec node{.numa = Alike(2, used), .policy = "single-numa-node", .scope = "pod"};
  EXPECT_EQ(Scene(node).Ask(pod), "TopologyAffinityError");
  node.policy = "restricted";
  EXPECT_EQ(Scene(node).Ask(pod), "TopologyAffinityError");
  node.policy = "best-effort";
  EXPECT_EQ(Scene(node).Ask(pod), "admitted on 0-1, not preferred");
  node.policy = "single-numa-node";
  node.numa[0].taken_gpus = 0;
  node.numa[1].taken_gpus = 2;
  EXPECT_EQ(Scene(node).Ask(pod), "admitted on 0");
}

TEST(FieldCase, C06RestrictedNeedsOneMaskThatIsNarrowestForEveryResource) {
  NodeSpec node{.numa = Alike(2, {.gpus = 4}), .policy = "restricted"};
  EXPECT_EQ(Scene(node).Ask("10 CPU 1Gi 6 GPU"), "TopologyAffinityError");
  node.memory_policy = "None";
  EXPECT_EQ(Scene(node).Ask("24 CPU 1Gi 6 GPU"), "admitted on 0-1");
  node.policy = "best-effort";
  EXPECT_EQ(Scene(node).Ask("10 CPU 1Gi 6 GPU"), "admitted on 0-1, not preferred");
  NodeSpec wide{
      .numa = Alike(2, {.cpus = 32, .gpus = 2}), .policy = "restricted", .memory_policy = "None"};
  EXPECT_EQ(Scene(wide).Ask("1 CPU 1Gi 4 GPU"), "TopologyAffinityError");
  EXPECT_EQ(Scene(wide).Ask("33 CPU 1Gi 4 GPU"), "admitted on 0-1");
}

TEST(FieldCase, C08ANumaNodeInAMemoryGroupServesNoBlockOfItsOwn) {
  placement::NodePlacement node = NodeOf(NodeSpec());
  for (placement::NumaNodePlacement& numa : node.numa_nodes) {
    numa.memory_group = base::NumaMask{0, 1};
    numa.memory_assignments = 1;
  }
  placement::NodeMemory& full = node.numa_nodes[0].memory.front();
  full.allocatable = 78483636224;
  full.free = 268435456;
  placement::NodeMemory& roomy = node.numa_nodes[1].memory.front();
  roomy.allocatable = 87445463040;
  roomy.free = 74392608768;
  EXPECT_EQ(Scene(node).Ask("1 CPU 256Mi"), "TopologyAffinityError");
  node.kubelet.topology_policy = "restricted";
  EXPECT_EQ(Scene(node).Ask("1 CPU 256Mi"), "TopologyAffinityError");
  node.kubelet.topology_policy = "best-effort";
  Scene best_effort(node);
  EXPECT_EQ(best_effort.Add("p", "1 CPU 256Mi"), "admitted on 0-1, not preferred");
  EXPECT_EQ(best_effort.MemoryNodes("p"), "0-1");
}

TEST(FieldCase, C09TwoNodesTogetherDoNotServeWhereOneHoldsABlockOfItsOwn) {
  Scene node(
      {.numa = {{.id = 0, .cpus = 48, .memory = "84.9Gi"}, {.id = 1, .cpus = 48, .memory = "95Gi"}},
       .policy = "best-effort",
       .reserved_cpus = "0,48"});
  EXPECT_EQ(node.Add("p1", "4 CPU 85Gi"), "admitted on 1");
  EXPECT_EQ(node.Add("p2", "4 CPU 85Gi"), "UnexpectedAdmissionError");
}

TEST(FieldCase, C12PodsThatTakeNoCpusOfTheirOwnAreNeverRejectedForCpus) {
  Scene node({.numa = Alike(2, {.taken_cpus = 16}), .memory_policy = "None"});
  EXPECT_EQ(node.Add("besteffort", "nothing"), "admitted");
  EXPECT_EQ(node.Add("daemon", "100m CPU 50Mi"), "admitted");
}

TEST(FieldCase, C14OneContainerThatIsNotGuaranteedUnpinsAll) {
  Scene node(NodeSpec{});
  EXPECT_EQ(node.Add("p", "4 CPU 8Gi; 100m CPU limit 200m CPU"), "admitted");
  EXPECT_EQ(node.Cpus("p", "a"), "");
  EXPECT_EQ(node.Cpus("p", "b"), "");
}

TEST(FieldCase, C15WholeCoresOnlyIsSaidByAReasonOfItsOwn) {
  Scene smt({.cpu_options = {{"full-pcpus-only", "true"}}});
  EXPECT_EQ(smt.Ask("1 CPU 1Gi"), "SMTAlignmentError");
  EXPECT_EQ(smt.Ask("5 CPU 1Gi"), "SMTAlignmentError");
  EXPECT_EQ(smt.Ask("500m CPU 1Gi"), "admitted on 0");
  EXPECT_EQ(smt.Ask("6 CPU 1Gi"), "admitted on 0");
  Scene single_threaded({.cpu_options = {{"full-pcpus-only", "true"}}, .threads = 1});
  EXPECT_EQ(single_threaded.Ask("1 CPU 1Gi"), "admitted on 0");
}

TEST(FieldCase, C18RejectedPodsLeaveTheAccountsAsTheyWere) {
  Scene node({.numa = Alike(2, {.taken_cpus = 12})});
  const placement::NodePlacement before = node.Published();
  for (int i = 0; i < 200; ++i) {
    EXPECT_EQ(node.Add("p" + std::to_string(i), "2 CPU 1Gi; 8 CPU 1Gi"), "TopologyAffinityError");
  }
  EXPECT_EQ(node.Published(), before);
}

// The kubelet of the report took nodes 0, 1, 3 and 6, as 1.37 does: what it found best, 0 to 3, is
// written over while it goes on searching. 1.38 keeps a copy.
TEST(FieldCase, C22DistributionLeavesTheSocketUpTo137ThoughAlignedBySocket) {
  NodeSpec spec{
      .policy = "none",
      .cpu_options = {{"align-by-socket", "true"}, {"distribute-cpus-across-numa", "true"}}};
  spec.numa = Alike(8, {.cpus = 32});
  for (NumaSpec& numa : spec.numa) numa.socket = numa.id / 4;
  spec.numa[3].taken_cpus = 2;
  spec.numa[7].taken_cpus = 2;
  placement::NodePlacement node = NodeOf(spec);
  Scene old(node);
  EXPECT_EQ(old.Add("p", "120 CPU 1Gi"), "admitted");
  EXPECT_EQ(old.CpuNodes("p"), "0-1,3,6");
  node.kubelet.version = "v1.38.0";
  Scene fixed(node);
  EXPECT_EQ(fixed.Add("p", "120 CPU 1Gi"), "admitted");
  EXPECT_EQ(fixed.CpuNodes("p"), "0-3");
}

TEST(FieldCase, C24DevicesDrawThePodToTheirNumaNodeOrKeepItOut) {
  NodeSpec node{
      .numa = {{.id = 0, .cpus = 28, .gpus = 2, .taken_gpus = 2}, {.id = 1, .cpus = 28, .gpus = 2}},
      .policy = "best-effort",
      .reserved_cpus = "0"};
  EXPECT_EQ(Scene(node).Ask("8 CPU 1Gi 1 GPU"), "admitted on 1");
  node.policy = "restricted";
  node.numa[0] = {.id = 0, .cpus = 28, .gpus = 2, .taken_cpus = 23};
  node.numa[1].taken_gpus = 2;
  EXPECT_EQ(Scene(node).Ask("8 CPU 1Gi 1 GPU"), "TopologyAffinityError");
}

TEST(FieldCase, C32AResourceThatNoNumaNodeListsConstrainsNothing) {
  placement::NodePlacement node = NodeOf({.memory_policy = "None"});
  for (placement::NumaNodePlacement& numa : node.numa_nodes) numa.memory.clear();
  EXPECT_EQ(Scene(node).Ask("1 CPU 100Mi"), "admitted on 0");
}

}  // namespace
}  // namespace scheduler::admission
