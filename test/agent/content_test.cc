#include "agent/content.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace agent {
namespace {

constexpr std::int64_t kMiB = std::int64_t{1} << 20;

placement::Observation With(std::int64_t on_node_0, std::int64_t on_node_1) {
  placement::PlacedContainer container;
  container.name = "main";
  container.cpus = {1, 2};
  container.kernel =
      placement::KernelFacts{.cpus = base::CpuSet{1, 2},
                             .memory_nodes = base::NumaMask{0, 1},
                             .resident_bytes = {{0, on_node_0 * kMiB}, {1, on_node_1 * kMiB}}};
  placement::PlacedPod pod;
  pod.namespace_name = "ml";
  pod.name = "llm-0";
  pod.message = "CPUs are on NUMA node 0.";
  pod.containers = {container};
  placement::Observation observation;
  observation.placement.observed_at = base::Time(std::chrono::seconds(1));
  observation.placement.revision = 7;
  observation.placement.pods = {pod};
  observation.nrt = placement::NodeResourceTopology{
      .name = "gpu-7", .annotations = {}, .topology_policies = {}, .attributes = {}, .zones = {}};
  return observation;
}

TEST(Compare, HoldsTimeAndRevisionForNoContent) {
  placement::Observation later = With(1000, 0);
  later.placement.observed_at = base::Time(std::chrono::seconds(2));
  later.placement.revision = 0;
  const Difference difference = Compare(With(1000, 0), later);
  EXPECT_FALSE(difference.content());
  EXPECT_FALSE(difference.resident);
}

TEST(Compare, TellsWhichObjectDiffers) {
  placement::Observation other = With(1000, 0);
  other.nrt->zones.push_back(
      {.name = "node-0", .type = "Node", .costs = {}, .attributes = {}, .resources = {}});
  EXPECT_TRUE(Compare(With(1000, 0), other).nrt);
  EXPECT_FALSE(Compare(With(1000, 0), other).placement);
  other = With(1000, 0);
  other.placement.conditions = {{"Settled", "False", "FilesChanging", ""}};
  EXPECT_FALSE(Compare(With(1000, 0), other).nrt);
  EXPECT_TRUE(Compare(With(1000, 0), other).placement);
}

TEST(Compare, OverlooksMemoryThatGrowsWhereItIs) {
  EXPECT_FALSE(Compare(With(1000, 0), With(9000, 0)).resident);
  EXPECT_FALSE(Compare(With(1000, 0), With(9000, 0)).content());
}

TEST(Compare, OverlooksAShareThatMovedByLessThanFivePercentOr64MiB) {
  EXPECT_FALSE(Compare(With(10'000, 0), With(9'600, 400)).resident) << "4 %";
  EXPECT_FALSE(Compare(With(100, 0), With(40, 60)).resident) << "60 MiB";
  EXPECT_TRUE(Compare(With(10'000, 0), With(9'500, 500)).resident);
  EXPECT_FALSE(Compare(With(10'000, 0), With(9'500, 500)).content());
}

TEST(Compare, SeesThatAPodCameToHaveMemoryElsewhere) {
  placement::Observation elsewhere = With(1000, 50);
  elsewhere.placement.pods[0].message += " 50 MiB of the 1050 MiB …";
  elsewhere.diagnostics = {{"MemoryElsewhere", "pod ml/llm-0", "50 MiB of the 1050 MiB …"}};
  EXPECT_TRUE(Compare(With(1000, 50), elsewhere).resident);
  EXPECT_TRUE(Compare(elsewhere, With(1000, 50)).resident) << "and that it no longer has";
  EXPECT_FALSE(Compare(With(1000, 50), elsewhere).content());

  placement::Observation more = elsewhere;
  more.placement.pods[0].message = "CPUs are on NUMA node 0. 51 MiB of the 1051 MiB …";
  EXPECT_FALSE(Compare(elsewhere, more).resident) << "but not each MiB of it";
}

TEST(Compare, HoldsWhatAPodHoldsForContentWhateverItsMemory) {
  placement::Observation other = With(9'500, 500);
  other.placement.pods[0].containers[0].cpus = {1, 2, 3};
  EXPECT_TRUE(Compare(With(10'000, 0), other).content());
}

}  // namespace
}  // namespace agent
