#include <gtest/gtest.h>

#include <string>

#include "cli/recording.h"
#include "cli/replay.h"
#include "test/support/shared.h"
#include "test/support/status.h"

// Verdicts of the kubelet's real code (release 1.37.2), replayed. They are read in place.
namespace scheduler::admission {
namespace {

cli::Agreement ReplayFile(const std::string& name, bool live) {
  cli::Agreement agreement;
  const std::string path = *test::SharedFolder() + "/admission/" + name;
  EXPECT_OK(cli::ForEachLine(path, [&](int, const std::string& line) -> absl::Status {
    const absl::StatusOr<cli::Recording> recording = cli::ParseRecording(line);
    if (!recording.ok()) return recording.status();
    return cli::Replay(*recording, {.live = live}, agreement);
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
  ExpectAgreement(ReplayFile("public.jsonl.gz", false), 27120);
}

TEST(RecordedAdmissions, CheckedByHandAreAllPredicted) {
  SKIP_WITHOUT_SHARED();
  ExpectAgreement(ReplayFile("named.jsonl.gz", false), 74);
}

TEST(RecordedAdmissions, OfRunningKubeletsAreAllPredictedWithTheNodesSums) {
  SKIP_WITHOUT_SHARED();
  ExpectAgreement(ReplayFile("live.jsonl.gz", true), 1295);
}

}  // namespace
}  // namespace scheduler::admission
