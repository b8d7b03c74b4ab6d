#include <string>
#include <vector>

#include "podresources/decode.h"
#include "podresources/replay.h"
#include "test/podresources/print.h"
#include "test/support/status.h"

// What old kubelets list that nobody holds any more, or that nobody ever held alone.
namespace podresources {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

Assignments Read(const std::string& json) {
  absl::StatusOr<Assignments> decoded = ParseRecording(json);
  EXPECT_OK(decoded);
  return decoded.ok() ? *decoded : Assignments();
}

std::vector<std::string> CpusOf(const Assignments& assignments) {
  std::vector<std::string> cpus;
  for (const Pod& pod : assignments.pods) {
    for (const Container& container : pod.containers) cpus.push_back(container.cpus.ToString());
  }
  return cpus;
}

std::vector<std::string> Codes(const Assignments& assignments) {
  std::vector<std::string> codes;
  for (const base::Diagnostic& diagnostic : assignments.diagnostics) {
    codes.push_back(diagnostic.code);
  }
  return codes;
}

TEST(SharedPool, IsWhatThreePodsListAlikeWhereNothingIsSaidOfAllocatable) {
  const Assignments read = Read(R"({"list": {"podResources": [
      {"namespace": "a", "name": "1", "containers": [{"cpuIds": [0,1,2,3,4,5,6,7]}]},
      {"namespace": "a", "name": "2", "containers": [{"cpuIds": [0,1,2,3,4,5,6,7]}]},
      {"namespace": "a", "name": "3", "containers": [{"cpuIds": [7,6,5,4,3,2,1,0]}]}]}})");
  EXPECT_THAT(CpusOf(read), ElementsAre("", "", ""));
  EXPECT_THAT(Codes(read), ElementsAre("AllocatableUnavailable", "SharedPoolListed"));
  EXPECT_THAT(read.diagnostics[1].message, HasSubstr("CPUs 0-7 are listed for 3 containers"));
}

TEST(SharedPool, LeavesTheExclusiveCpusBesideItAlone) {
  const Assignments read = Read(R"({"list": {"podResources": [
      {"namespace": "a", "name": "1", "containers": [{"cpuIds": [0,1,4,5]}]},
      {"namespace": "a", "name": "2", "containers": [{"cpuIds": [0,1,4,5]}]},
      {"namespace": "a", "name": "3", "containers": [{"cpuIds": [0,1,4,5]}]},
      {"namespace": "a", "name": "4", "containers": [{"cpuIds": [2,3]}]}]}})");
  EXPECT_THAT(CpusOf(read), ElementsAre("", "", "", "2-3"));
}

TEST(SharedPool, IsKnownByTheReservedCpusInItWhereAllocatableOnesAreTold) {
  const Assignments read = Read(R"({"list": {"podResources": [
      {"namespace": "a", "name": "1", "containers": [{"cpuIds": [0,1,2,3]}]},
      {"namespace": "a", "name": "2", "containers": [{"cpuIds": [0,1,2,3]}]}]},
      "allocatable": {"cpuIds": [1,2,3]}})");
  EXPECT_THAT(CpusOf(read), ElementsAre("", ""));
  EXPECT_THAT(Codes(read), ElementsAre("SharedPoolListed"));
}

// Jobs that take the whole node come one after the other, and kubelets before 1.34 list them all.
TEST(SharedPool, IsNotWhatWholeNodeJobsHeldOneAfterTheOther) {
  const Assignments read = Read(R"({"list": {"podResources": [
      {"namespace": "a", "name": "1", "containers": [{"cpuIds": [1,2,3]}]},
      {"namespace": "a", "name": "2", "containers": [{"cpuIds": [1,2,3]}]},
      {"namespace": "a", "name": "3", "containers": [{"cpuIds": [1,2,3]}]}]},
      "allocatable": {"cpuIds": [1,2,3]}})");
  EXPECT_THAT(CpusOf(read), ElementsAre("1-3", "1-3", "1-3"));
  EXPECT_THAT(Codes(read), ElementsAre("HeldTwice", "HeldTwice"));
}

TEST(SharedPool, IsNeverOfOnePodAlone) {
  const Assignments read = Read(R"({"list": {"podResources": [
      {"namespace": "a", "name": "1", "containers": [{"name": "x", "cpuIds": [2,3]},
        {"name": "y", "cpuIds": [2,3]}, {"name": "z", "cpuIds": [2,3]}]}]}})");
  EXPECT_THAT(CpusOf(read), ElementsAre("2-3", "2-3", "2-3"));
}

TEST(HeldTwice, KeepsAnEndedPodAndItsSuccessorAndNamesBoth) {
  const Assignments read = Read(R"({"list": {"podResources": [
      {"namespace": "ml", "name": "web-1", "containers": [{"cpuIds": [2,3]}]},
      {"namespace": "ml", "name": "job-1", "containers": [{"cpuIds": [2,3]}]}]},
      "allocatable": {"cpuIds": [1,2,3]}})");
  EXPECT_THAT(CpusOf(read), ElementsAre("2-3", "2-3"));
  EXPECT_THAT(
      read.diagnostics,
      ElementsAre(base::Diagnostic{
          "HeldTwice", "pod ml/web-1",
          "CPUs 2-3 are listed for pod ml/job-1 as well; kubelets before 1.34 go on listing "
          "pods that have ended; both are kept"}));
}

TEST(HeldTwice, SeesDevicesAndCpusThatOverlapInPart) {
  const Assignments read = Read(R"({"list": {"podResources": [
      {"namespace": "ml", "name": "a", "containers": [{"cpuIds": [1,2,3],
        "devices": [{"resourceName": "x/gpu", "deviceIds": ["g0", "g1"]}]}]},
      {"namespace": "ml", "name": "b", "containers": [{"cpuIds": [3,4],
        "devices": [{"resourceName": "x/gpu", "deviceIds": ["g1"]}]}]}]},
      "allocatable": {"cpuIds": [1,2,3,4]}})");
  ASSERT_THAT(read.diagnostics, SizeIs(1));
  EXPECT_THAT(read.diagnostics[0].message,
              HasSubstr("CPUs 3, x/gpu g1 are listed for pod ml/a as well"));
}

TEST(HeldTwice, IsNotSaidOfReplicasOfOneGpu) {
  const Assignments read = Read(R"({"list": {"podResources": [
      {"namespace": "ml", "name": "a", "containers": [
        {"devices": [{"resourceName": "nvidia.com/gpu", "deviceIds": ["GPU-a::0"]}]}]},
      {"namespace": "ml", "name": "b", "containers": [
        {"devices": [{"resourceName": "nvidia.com/gpu", "deviceIds": ["GPU-a::1"]}]}]}]},
      "allocatable": {}})");
  EXPECT_THAT(read.diagnostics, IsEmpty());
}

TEST(HeldTwice, IsNotSaidOfContainersOfOnePod) {
  const Assignments read = Read(R"({"list": {"podResources": [
      {"namespace": "ml", "name": "a", "cpuIds": [1,2], "containers": [
        {"name": "x", "cpuIds": [1,2]}, {"name": "y", "cpuIds": [1,2]}]}]}, "allocatable": {}})");
  EXPECT_THAT(read.diagnostics, IsEmpty());
}

TEST(PodListedTwice, IsOnePodThatHoldsAllOfItWhateverTheOrder) {
  const std::string one = R"({"namespace": "ml", "name": "db-0", "containers": [
      {"name": "db", "cpuIds": [2,3], "devices": [{"resourceName": "x/gpu", "deviceIds": ["g0"],
        "topology": {"nodes": [{}]}}]}]})";
  const std::string other = R"({"namespace": "ml", "name": "db-0", "containers": [
      {"name": "db", "cpuIds": [4,5], "devices": [{"resourceName": "x/gpu", "deviceIds": ["g0"],
        "topology": {"nodes": [{"ID": 1}]}}]}, {"name": "log"}]})";
  const Assignments read =
      Read(R"({"allocatable": {}, "list": {"podResources": [)" + one + "," + other + "]}}");
  ASSERT_THAT(read.pods, SizeIs(1));
  EXPECT_THAT(CpusOf(read), ElementsAre("2-5", ""));
  EXPECT_THAT(read.pods[0].containers[0].devices,
              ElementsAre(Device{"x/gpu", "g0", {0, 1}, false}));
  EXPECT_THAT(Codes(read), ElementsAre("PodListedTwice"));
  EXPECT_EQ(read,
            Read(R"({"allocatable": {}, "list": {"podResources": [)" + other + "," + one + "]}}"));
}

}  // namespace
}  // namespace podresources
