#include <gtest/gtest.h>

#include <string>

#include "cli/recording.h"
#include "cli/replay.h"
#include "test/support/shared.h"
#include "test/support/status.h"

// Verdicts of the kubelet's real code (release 1.37.2), replayed. They are read in place.
namespace scheduler::admission {
namespace {

// Publishing and reading the object after each of 30,000 events takes two minutes under the
// sanitizers: there every 16th sequence is replayed through it. Without them it is all.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int kEveryThroughJson = 16;
#else
constexpr int kEveryThroughJson = 1;
#endif

cli::Agreement ReplayPath(const std::string& path, const cli::ReplayOptions& options,
                          int every = 1) {
  cli::Agreement agreement;
  EXPECT_OK(cli::ForEachLine(path, [&](int number, const std::string& line) -> absl::Status {
    if (number % every != 0) return absl::OkStatus();
    const absl::StatusOr<cli::Recording> recording = cli::ParseRecording(line);
    if (!recording.ok()) return recording.status();
    return cli::Replay(*recording, options, agreement);
  }));
  return agreement;
}

cli::Agreement ReplayFile(const std::string& name, const cli::ReplayOptions& options,
                          int every = 1) {
  return ReplayPath(*test::SharedFolder() + "/admission/" + name, options, every);
}

std::string First(const cli::Agreement& agreement) {
  return agreement.differences.empty() ? "" : agreement.differences.front();
}

void ExpectAgreement(const cli::Agreement& agreement, int events) {
  EXPECT_EQ(agreement.events, events);
  EXPECT_EQ(agreement.verdicts, events) << First(agreement);
  EXPECT_EQ(agreement.reasons, events) << First(agreement);
  EXPECT_EQ(agreement.affinities, events) << First(agreement);
  EXPECT_EQ(agreement.cpus, events) << First(agreement);
  EXPECT_EQ(agreement.memory, events) << First(agreement);
  EXPECT_EQ(agreement.devices, events) << First(agreement);
}

TEST(RecordedAdmissions, OfTheManagersAreAllPredicted) {
  SKIP_WITHOUT_SHARED();
  ExpectAgreement(ReplayFile("public.jsonl.gz", {}), 27120);
}

TEST(RecordedAdmissions, CheckedByHandAreAllPredicted) {
  SKIP_WITHOUT_SHARED();
  ExpectAgreement(ReplayFile("named.jsonl.gz", {}), 74);
}

TEST(RecordedAdmissions, OfRunningKubeletsAreAllPredictedWithTheNodesSums) {
  SKIP_WITHOUT_SHARED();
  ExpectAgreement(ReplayFile("live.jsonl.gz", {.live = true}), 1295);
}

TEST(RecordedAdmissions, OfTheManagersAreAllPredictedFromThePublishedObjectAlone) {
  SKIP_WITHOUT_SHARED();
  ExpectAgreement(ReplayFile("public.jsonl.gz", {.through_json = true}, kEveryThroughJson),
                  kEveryThroughJson == 1 ? 27120 : 1630);
}

TEST(RecordedAdmissions, CheckedByHandAreAllPredictedFromThePublishedObjectAlone) {
  SKIP_WITHOUT_SHARED();
  ExpectAgreement(ReplayFile("named.jsonl.gz", {.through_json = true}), 74);
}

TEST(RecordedAdmissions, OfRunningKubeletsAreAllPredictedFromThePublishedObjectAlone) {
  SKIP_WITHOUT_SHARED();
  ExpectAgreement(ReplayFile("live.jsonl.gz", {.live = true, .through_json = true}), 1295);
}

// Answers of the managers' real code of 1.35.4, 1.36.3, 1.37.2 and 1.38.0-beta.0 to the same pods
// on the same nodes, chosen where they differ; each line names its release.
TEST(RecordedAdmissions, OfFourReleasesAreEachPredicted) {
  ExpectAgreement(ReplayPath("test/scheduler/recorded/releases.jsonl.gz", {}), 192);
}

// The managers' real code of 1.37.2 with the gate PodLevelResourceManagers.
TEST(RecordedAdmissions, OfPodsWithResourcesOfTheirOwnAreAllPredicted) {
  ExpectAgreement(ReplayPath("test/scheduler/recorded/pod_level.jsonl.gz", {}), 123);
}

}  // namespace
}  // namespace scheduler::admission
