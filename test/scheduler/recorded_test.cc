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

cli::Agreement ReplayFile(const std::string& name, const cli::ReplayOptions& options,
                          int every = 1) {
  cli::Agreement agreement;
  const std::string path = *test::SharedFolder() + "/admission/" + name;
  EXPECT_OK(cli::ForEachLine(path, [&](int number, const std::string& line) -> absl::Status {
    if (number % every != 0) return absl::OkStatus();
    const absl::StatusOr<cli::Recording> recording = cli::ParseRecording(line);
    if (!recording.ok()) return recording.status();
    return cli::Replay(*recording, options, agreement);
  }));
  return agreement;
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

}  // namespace
}  // namespace scheduler::admission
