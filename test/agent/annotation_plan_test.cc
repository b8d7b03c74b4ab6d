#include "agent/annotation_plan.h"

#include <gtest/gtest.h>

namespace agent {
namespace {

using std::chrono::seconds;

class AnnotationPlanTest : public testing::Test {
 protected:
  void Hold(const std::string& value, const std::string& uid = "uid-1") {
    plan_.Hold({{"ml", "llm-0", uid, value}});
  }
  void See(const std::string& value, const std::string& uid = "uid-1") {
    plan_.Seen({"ml", "llm-0", uid, ++version_, value});
  }
  // "llm-0 uid-1 := held", or "" if there is nothing to do.
  std::string Next() const {
    const std::optional<AnnotatedPod> pod = plan_.Next(now_);
    return pod ? pod->name + " " + pod->uid + " := " + pod->value : "";
  }
  // Writes what is to be written.
  void Write() {
    std::optional<AnnotatedPod> pod = plan_.Next(now_);
    ASSERT_TRUE(pod);
    pod->version = ++version_;
    plan_.Written(*pod, now_);
  }

  AnnotationPlan plan_;
  std::uint64_t version_ = 0;
  base::Instant now_{std::chrono::hours(1)};
};

TEST_F(AnnotationPlanTest, AnnotatesAPodWithWhatItHoldsOnce) {
  See("");
  EXPECT_EQ(Next(), "");  // nobody said yet what it holds
  Hold("held");
  EXPECT_EQ(Next(), "llm-0 uid-1 := held");
  Write();
  EXPECT_EQ(Next(), "");
  Hold("more");
  EXPECT_EQ(Next(), "llm-0 uid-1 := more");
}

TEST_F(AnnotationPlanTest, WritesNothingThatIsThereAlready) {
  Hold("held");
  See("held");
  EXPECT_EQ(Next(), "");
}

TEST_F(AnnotationPlanTest, RemovesTheAnnotationOfAPodThatHoldsNothing) {
  See("held");
  Hold("");
  EXPECT_EQ(Next(), "llm-0 uid-1 := ");
  plan_.Hold({});
  EXPECT_EQ(Next(), "llm-0 uid-1 := ");
}

TEST_F(AnnotationPlanTest, DoesNotTakeAPodThatWasMadeAnewForTheOneOfThatName) {
  Hold("held", "uid-1");
  See("", "uid-2");
  EXPECT_EQ(Next(), "");
  Hold("other", "uid-2");
  EXPECT_EQ(Next(), "llm-0 uid-2 := other");
}

TEST_F(AnnotationPlanTest, LeavesAPodAsItIsIfItsUidIsNotKnown) {
  Hold("held", "");
  See("something");
  EXPECT_EQ(Next(), "");
}

TEST_F(AnnotationPlanTest, TakesWhatWasSaidBeforeItsOwnWriteForNoNews) {
  Hold("held");
  See("");
  Write();
  plan_.Seen({"ml", "llm-0", "uid-1", 1, ""});
  EXPECT_EQ(Next(), "");
}

TEST_F(AnnotationPlanTest, RepairsWhatOthersWriteAtOnceTwiceThenEvery30Seconds) {
  Hold("held");
  See("");
  Write();
  for (int i = 0; i < 2; ++i) {
    See("forged");
    EXPECT_EQ(Next(), "llm-0 uid-1 := held");
    Write();
  }
  See("forged");
  EXPECT_EQ(Next(), "");
  now_ += seconds(30);
  EXPECT_EQ(Next(), "llm-0 uid-1 := held");
}

TEST_F(AnnotationPlanTest, LeavesARefusedPodAloneForAWhileButNotTheOthers) {
  plan_.Hold({{"ml", "llm-0", "uid-1", "held"}, {"ml", "llm-1", "uid-2", "held"}});
  See("");
  plan_.Seen({"ml", "llm-1", "uid-2", 9, ""});
  plan_.Refused(*plan_.Next(now_), now_);
  EXPECT_EQ(Next(), "llm-1 uid-2 := held");
  now_ += AnnotationPlan::kRetry;
  EXPECT_EQ(Next(), "llm-0 uid-1 := held");
}

TEST_F(AnnotationPlanTest, ForgetsAPodThatIsGone) {
  Hold("held");
  See("");
  plan_.Gone("ml", "llm-0");
  EXPECT_EQ(Next(), "");
}

}  // namespace
}  // namespace agent
