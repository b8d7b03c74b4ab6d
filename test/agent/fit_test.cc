#include "agent/fit.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "placement/decode.h"
#include "test/support/status.h"

namespace agent {
namespace {

using placement::Alignment;
using placement::NodePlacement;
using placement::PlacedPod;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr char kResident[] = "pods.containers.kernel.residentBytes";

PlacedPod Pod(int number, Alignment alignment) {
  placement::PlacedContainer container;
  container.name = "main";
  container.cpus = {number};
  container.kernel = placement::KernelFacts{.cpus = base::CpuSet{number},
                                            .memory_nodes = base::NumaMask{0},
                                            .resident_bytes = {{0, 1000}}};
  PlacedPod pod;
  pod.namespace_name = "ml";
  pod.name = fmt::format("llm-{}", number);
  pod.uid = fmt::format("uid-{}", number);
  pod.alignment = alignment;
  pod.message = "CPUs are on NUMA node 0.";
  pod.containers = {container};
  return pod;
}

NodePlacement Ten() {
  NodePlacement placement;
  placement.node_name = "gpu-7";
  for (int i = 0; i < 10; ++i) {
    placement.pods.push_back(Pod(i, i == 0 ? Alignment::kDrifted : Alignment::kAligned));
  }
  return placement;
}

NodePlacement Read(const Fitted& fitted) {
  return placement::ParseNodePlacement(fitted.json).value();
}

TEST(Fit, LeavesOutNothingThatFits) {
  const Fitted fitted = Fit(Ten());
  EXPECT_EQ(Read(fitted), Ten());
  EXPECT_THAT(fitted.left_out, IsEmpty());
}

TEST(Fit, LeavesOutResidentMemoryFirst) {
  const std::size_t whole = Fit(Ten()).json.size();
  const Fitted fitted = Fit(Ten(), whole - 1);
  EXPECT_THAT(fitted.left_out, ElementsAre(kResident));
  EXPECT_TRUE(fitted.fits);
  EXPECT_THAT(Read(fitted).pods[3].containers[0].kernel->resident_bytes, IsEmpty());
  EXPECT_EQ(Read(fitted).pods[3].message, "CPUs are on NUMA node 0.");
}

TEST(Fit, LeavesOutMessagesNext) {
  const std::size_t without_resident = Fit(Ten(), Fit(Ten()).json.size() - 1).json.size();
  const Fitted fitted = Fit(Ten(), without_resident - 1);
  EXPECT_THAT(fitted.left_out, ElementsAre(kResident, "pods.message"));
  EXPECT_EQ(Read(fitted).pods[3].message, "");
  EXPECT_TRUE(Read(fitted).pods[3].containers[0].kernel);
}

TEST(Fit, KeepsWhatASchedulerPredictsByAndWhereTheKernelDiffers) {
  const Fitted fitted = Fit(Ten(), 10);
  EXPECT_FALSE(fitted.fits);
  EXPECT_THAT(fitted.left_out, ElementsAre(kResident, "pods.message", "pods.containers.kernel"));
  const NodePlacement read = Read(fitted);
  EXPECT_TRUE(read.pods[0].containers[0].kernel);
  EXPECT_FALSE(read.pods[1].containers[0].kernel);
  EXPECT_EQ(read.pods[1].containers[0].cpus, base::CpuSet{1});
  EXPECT_EQ(read.pods.size(), 10U);
}

}  // namespace
}  // namespace agent
