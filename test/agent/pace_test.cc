#include "agent/pace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace agent {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;

constexpr base::Instant kStart{std::chrono::hours(1)};

// When questions are asked if there is a hint at each moment until the end, in ms.
std::vector<long> AskedWithin(milliseconds end) {
  Pace pace{seconds(1)};
  std::vector<long> asked;
  for (base::Instant now = kStart; now < kStart + end; now += milliseconds(1)) {
    pace.Hinted(now);
    if (now < pace.Earliest()) continue;
    pace.Asked(now);
    asked.push_back(std::chrono::duration_cast<milliseconds>(now - kStart).count());
  }
  return asked;
}

TEST(Pace, FoldsHintsThatGoOnMoreAndMore) {
  EXPECT_THAT(AskedWithin(milliseconds(900)), ElementsAre(50, 101, 152, 252, 452));
}

// An admission: the kubelet writes its files in steps, each when the disk has the one before.
TEST(Pace, FollowsHintsWhenTheyHaveEnded) {
  Pace pace{seconds(1)};
  for (const int step : {0, 8, 12, 20}) pace.Hinted(kStart + milliseconds(step));
  EXPECT_EQ(pace.Earliest(), kStart + milliseconds(30));
}

TEST(Pace, FollowsHintsThatDoNotEndAfter50Milliseconds) {
  Pace pace{seconds(1)};
  for (int i = 0; i < 100; ++i) pace.Hinted(kStart + milliseconds(i));
  EXPECT_EQ(pace.Earliest(), kStart + milliseconds(50));
}

TEST(Pace, WaitsForNoHintsWhenItPolls) {
  Pace pace{seconds(1)};
  pace.Hinted(kStart);
  pace.Asked(kStart + milliseconds(10));
  EXPECT_EQ(pace.Earliest(), kStart + milliseconds(35));
}

TEST(Pace, NeverAsksMoreThanTenTimesInAnySecond) {
  const std::vector<long> asked = AskedWithin(seconds(30));
  for (std::size_t i = 5; i < asked.size(); ++i) {
    EXPECT_GE(asked[i] - asked[i - 5], 1000) << "two calls each, from question " << i - 5;
  }
  EXPECT_GE(asked.size(), 140U) << "and does not ask much less";
}

TEST(Pace, StartsAnewAfterASecondWithoutAQuestion) {
  Pace pace{seconds(10)};
  pace.Asked(kStart);
  pace.Asked(kStart + milliseconds(25));
  EXPECT_EQ(pace.Earliest(), kStart + milliseconds(75));
  pace.Asked(kStart + milliseconds(1025));
  EXPECT_EQ(pace.Earliest(), kStart + milliseconds(1050));
}

TEST(Pace, PollsOnceEachIntervalAfterTheLastQuestion) {
  Pace pace{seconds(1)};
  pace.Asked(kStart);
  pace.Asked(kStart + milliseconds(300));
  EXPECT_EQ(pace.NextPoll(), kStart + milliseconds(1300));
}

TEST(Pace, PollsLessOftenWhileHintsProveComplete) {
  Pace pace{seconds(1)};
  pace.Asked(kStart);
  for (int i = 0; i < 19; ++i) pace.Polled(false);
  EXPECT_EQ(pace.NextPoll() - kStart, seconds(1));
  pace.Polled(false);
  EXPECT_EQ(pace.NextPoll() - kStart, seconds(2));
  for (int i = 0; i < 100; ++i) pace.Polled(false);
  EXPECT_EQ(pace.NextPoll() - kStart, seconds(8)) << "and no less";
}

TEST(Pace, PollsAsOftenAsAtFirstOnceAPollFoundWhatNoHintHadSaid) {
  Pace pace{seconds(1)};
  pace.Asked(kStart);
  for (int i = 0; i < 40; ++i) pace.Polled(false);
  ASSERT_EQ(pace.NextPoll() - kStart, seconds(4));
  pace.Polled(true);
  EXPECT_EQ(pace.NextPoll() - kStart, seconds(1));
}

TEST(Pace, HurriesWhileTheAnswerIsAboutToChange) {
  Pace pace{seconds(1)};
  pace.Asked(kStart);
  pace.Hurry(true);
  EXPECT_EQ(pace.NextPoll() - kStart, milliseconds(250));
  pace.Hurry(false);
  EXPECT_EQ(pace.NextPoll() - kStart, seconds(1));
}

}  // namespace
}  // namespace agent
