#include "agent/verdict.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace agent {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr char kSocket[] = "/var/lib/kubelet/pod-resources/kubelet.sock";

TEST(Verdict, IsSilentWhenTheKubeletAnswered) {
  const Verdict verdict = JudgeAnswer(absl::OkStatus(), /*named=*/false, kSocket);
  EXPECT_EQ(verdict.exit_code, 0);
  EXPECT_TRUE(verdict.show);
  EXPECT_THAT(verdict.notes, IsEmpty());
}

TEST(Verdict, OfAHostWithoutKubeletIsNoFailureAndSaysHowToPointToOne) {
  const Verdict verdict = JudgeAnswer(absl::NotFoundError("no socket"), /*named=*/false, kSocket);
  EXPECT_EQ(verdict.exit_code, 0);
  EXPECT_TRUE(verdict.show);
  EXPECT_THAT(verdict.notes,
              ElementsAre(testing::AllOf(HasSubstr(kSocket), HasSubstr("--podresources"))));
}

TEST(Verdict, OfASocketThatWasNamedAndIsMissingIsWrongInput) {
  const Verdict verdict = JudgeAnswer(absl::NotFoundError("no socket"), /*named=*/true, "/x.sock");
  EXPECT_EQ(verdict.exit_code, 2);
  EXPECT_FALSE(verdict.show);
}

TEST(Verdict, OfAKubeletThatDoesNotAnswerIsAPassingFaultAndShowsTheHardware) {
  for (const absl::Status& answer :
       {absl::UnavailableError("stopped"), absl::PermissionDeniedError("mode 0600"),
        absl::ResourceExhaustedError("rate limit"), absl::OutOfRangeError("too large")}) {
    for (const bool named : {false, true}) {
      const Verdict verdict = JudgeAnswer(answer, named, kSocket);
      EXPECT_EQ(verdict.exit_code, 1) << answer.ToString();
      EXPECT_TRUE(verdict.show) << answer.ToString();
      EXPECT_THAT(verdict.notes, ElementsAre(HasSubstr(std::string(answer.message()))));
    }
  }
}

TEST(Verdict, OfARecordingThatCannotBeUnderstoodIsWrongInput) {
  EXPECT_EQ(JudgeAnswer(absl::InvalidArgumentError("line 3"), /*named=*/true, "a.json").exit_code,
            2);
}

TEST(Verdict, OfAnotherMachinesHardwareSaysThatNoKubeletWasAsked) {
  const Verdict verdict = JudgeAnswer(absl::UnavailableError("not asked"), /*named=*/false, "");
  EXPECT_EQ(verdict.exit_code, 0);
  EXPECT_TRUE(verdict.show);
}

TEST(Verdict, OfAFailureTellsWhetherTryingAgainMayHelp) {
  EXPECT_EQ(JudgeFailure(absl::UnavailableError("busy")).exit_code, 1);
  EXPECT_EQ(JudgeFailure(absl::NotFoundError("no root")).exit_code, 2);
  EXPECT_EQ(JudgeFailure(absl::InvalidArgumentError("no XML")).exit_code, 2);
}

}  // namespace
}  // namespace agent
