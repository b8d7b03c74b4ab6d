// The loop beside a fake kubelet with a real socket, on a clock that is moved by hand.
#include "agent/loop.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <memory>
#include <random>
#include <semaphore>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/retry_after.h"
#include "test/agent/fake_node.h"
#include "test/fakes/clock.h"
#include "test/fakes/publisher.h"
#include "test/support/status.h"

namespace agent {
namespace {

using placement::Observation;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using test::FakePod;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr Hints kKubelet{.kubelet = true};
constexpr Hints kPods{.pods = true};
constexpr milliseconds kBetweenPolls{2500};

std::vector<std::string> PodsIn(const Observation& observation) {
  std::vector<std::string> names;
  for (const placement::PlacedPod& pod : observation.placement.pods) names.push_back(pod.name);
  return names;
}

// "True Answered"
std::string ConditionOf(const Observation& observation, const std::string& type) {
  for (const placement::Condition& condition : observation.placement.conditions) {
    if (condition.type == type) return condition.status + " " + condition.reason;
  }
  return "";
}

// Of a resource on a NUMA node; -1 if it is not there.
std::int64_t Available(const Observation& observation, const std::string& zone,
                       const std::string& resource) {
  if (!observation.nrt) return -1;
  for (const placement::NrtZone& candidate : observation.nrt->zones) {
    for (const placement::NrtResource& entry : candidate.resources) {
      if (candidate.name == zone && entry.name == resource) return entry.available.value_or(-1);
    }
  }
  return -1;
}

// The agent on a fake node; starts when it is told to.
class LoopTest : public testing::Test {
 protected:
  void SetUp() override {
    node_.Add({.name = "llm-0", .cpus = "1,5", .gpus = {"gpu-0"}});
    node_.WriteAll();
    node_.StartKubelet();
  }

  void Start(LoopOptions options = {}) {
    options.random = [] { return 0.5; };
    health_ = std::make_unique<Health>(clock_.Steady());
    reader_ = std::make_unique<Reader>(
        node_.sources(),
        ReaderOptions{.connect = {.deadline = milliseconds(20'000), .attempts = 1}, .readings = 1},
        clock_);
    ASSERT_OK(reader_->Start());
    loop_ = std::make_unique<Loop>(*reader_, publisher_, clock_, metrics_, *health_, options);
    next_ = loop_->Step({}, true);
  }
  // One hint, and as long as it takes until it is followed.
  void Hint(const Hints& hints) {
    StepWith(hints);
    Pass(Pace::kBetweenSteps);
  }
  void StepWith(const Hints& hints) {
    const int calls = Calls();
    next_ = loop_->Step(hints, hints_complete_);
    for (int call = calls; call < Calls(); ++call) asked_at_.push_back(clock_.Steady());
  }
  // Time passes and brings no hint.
  void Pass(base::Instant::duration time) {
    const base::Instant end = clock_.Steady() + time;
    while (next_ <= end) {
      clock_.AdvanceTo(next_);
      StepWith({});
    }
    clock_.AdvanceTo(end);
  }
  void RestartKubelet() {
    node_.StopKubelet();
    node_.StartKubelet();
  }

  int Calls() {
    return node_.kubelet().Calls(demo::Method::kList) +
           node_.kubelet().Calls(demo::Method::kGetAllocatableResources);
  }
  const Observation& Last() const { return publisher_.published.back().content; }
  std::size_t Writes() const { return publisher_.published.size(); }

  test::FakeNode node_;
  test::FakeClock clock_;
  test::FakePublisher publisher_;
  Metrics metrics_;
  std::unique_ptr<Health> health_;
  std::unique_ptr<Reader> reader_;
  std::unique_ptr<Loop> loop_;
  base::Instant next_;
  bool hints_complete_ = true;
  std::vector<base::Instant> asked_at_;
};

TEST_F(LoopTest, PublishesWhatItFindsAtTheFirstStep) {
  Start();
  ASSERT_THAT(publisher_.published, SizeIs(1));
  EXPECT_THAT(PodsIn(Last()), ElementsAre("llm-0"));
  EXPECT_EQ(Available(Last(), "node-0", "nvidia.com/gpu"), 1);
  EXPECT_EQ(Last().placement.revision, 1);
  EXPECT_TRUE(publisher_.published[0].changed.nrt && publisher_.published[0].changed.placement);
  EXPECT_FALSE(publisher_.published[0].had_before);
  EXPECT_TRUE(health_->IsReady());
}

TEST_F(LoopTest, PublishesAChangeWithinTheStepOfItsHint) {
  Start();
  Pass(kBetweenPolls);
  node_.Add({.name = "llm-1", .cpus = "2,6", .gpus = {"gpu-2"}});
  node_.WriteAll();
  Hint(kKubelet);
  ASSERT_THAT(publisher_.published, SizeIs(2));
  EXPECT_THAT(PodsIn(Last()), ElementsAre("llm-0", "llm-1"));
  EXPECT_EQ(Last().placement.revision, 2);
  EXPECT_EQ(Last().placement.observed_at, clock_.Now());
  EXPECT_TRUE(publisher_.published[1].had_before);
}

TEST_F(LoopTest, PublishesTheConditionsThatOnlyThePublisherKnowsAndTakesThemBack) {
  Start();
  const std::int64_t revision = Last().placement.revision;
  publisher_.conditions = {{"CRDTooOld", "True", "FieldsLeftOut", "devices.healthy"}};
  Hint({});
  ASSERT_THAT(publisher_.published, SizeIs(2));
  EXPECT_EQ(ConditionOf(Last(), "CRDTooOld"), "True FieldsLeftOut");
  EXPECT_TRUE(std::ranges::is_sorted(Last().placement.conditions, {}, &placement::Condition::type));
  EXPECT_EQ(Last().placement.revision, revision + 1);
  EXPECT_FALSE(publisher_.published[1].changed.nrt);

  publisher_.conditions = {};
  Hint({});
  ASSERT_THAT(publisher_.published, SizeIs(3));
  EXPECT_EQ(ConditionOf(Last(), "CRDTooOld"), "");
}

TEST_F(LoopTest, WritesAgainWhatSomebodyDeletedOrOverwrote) {
  Start();
  publisher_.stale = {.nrt = true};
  Hint({});
  ASSERT_THAT(publisher_.published, SizeIs(2));
  EXPECT_TRUE(publisher_.published[1].changed.nrt);
  EXPECT_FALSE(publisher_.published[1].changed.placement);
  Hint({});
  EXPECT_THAT(publisher_.published, SizeIs(2));
}

TEST_F(LoopTest, PublishesNothingWhileNothingChanges) {
  Start();
  Pass(minutes(10));
  EXPECT_EQ(Writes(), 1U);
  Hint(kKubelet);
  Hint({.anything = true});
  Pass(seconds(1));
  EXPECT_EQ(Writes(), 1U);
}

TEST_F(LoopTest, FindsAPodThatEndedWithoutTouchingAnyFile) {
  Start();
  Pass(seconds(3));
  node_.Remove("llm-0");
  node_.WriteList();
  Pass(seconds(1));
  ASSERT_EQ(Writes(), 2U);
  EXPECT_THAT(PodsIn(Last()), IsEmpty());
  EXPECT_EQ(Available(Last(), "node-0", "nvidia.com/gpu"), 2);
}

TEST_F(LoopTest, AsksOnceAboutWhatTheKubeletWritesInSteps) {
  Start();
  Pass(seconds(3));
  const std::size_t calls = asked_at_.size();
  const base::Instant begin = clock_.Steady();
  for (const int step : {0, 8, 12, 20}) {
    clock_.AdvanceTo(begin + milliseconds(step));
    StepWith(kKubelet);
  }
  Pass(milliseconds(100));
  ASSERT_EQ(asked_at_.size(), calls + 2);  // one question is two calls
  EXPECT_EQ(asked_at_.back(), begin + milliseconds(30));
}

TEST_F(LoopTest, AsksNoMoreThanTenTimesInAnySecondWhateverTheHints) {
  Start();
  for (int i = 0; i < 20'000; ++i) {
    clock_.Advance(milliseconds(1));
    StepWith(i % 2 == 0 ? kKubelet : kPods);
  }
  ASSERT_GT(asked_at_.size(), 180U);
  for (std::size_t i = 10; i < asked_at_.size(); ++i) {
    EXPECT_GE(asked_at_[i] - asked_at_[i - 10], seconds(1));
  }
}

TEST_F(LoopTest, PollsLessOftenWhileHintsProveComplete) {
  Start();
  Pass(minutes(5));
  const int calls = Calls();
  Pass(minutes(1));
  EXPECT_LE(Calls() - calls, 16) << "a question of two calls each 8 s";
  node_.Remove("llm-0");
  node_.WriteList();
  Pass(seconds(8));
  EXPECT_THAT(PodsIn(Last()), IsEmpty());
  const int later = Calls();
  Pass(seconds(10));
  EXPECT_GE(Calls() - later, 18) << "each second again, since no hint had told of that";
}

TEST_F(LoopTest, PollsEachSecondWhereNotAllCanBeWatched) {
  Start();
  hints_complete_ = false;
  Pass(minutes(5));
  const int calls = Calls();
  Pass(seconds(10));
  EXPECT_GE(Calls() - calls, 18);
}

TEST_F(LoopTest, StepsOftenEnoughToBeSeenAlive) {
  Start({.poll_interval = minutes(10)});
  for (int i = 0; i < 100; ++i) {
    EXPECT_LE(next_ - clock_.Steady(), Health::kHeartbeat);
    Pass(seconds(7));
    EXPECT_TRUE(health_->IsAlive(clock_.Steady()));
  }
}

TEST_F(LoopTest, KeepsWhatWasGoodWhenTheKubeletStops) {
  Start();
  const Observation good = Last();
  Pass(kBetweenPolls);
  node_.StopKubelet();
  Hint(kKubelet);
  EXPECT_EQ(Writes(), 1U) << "it may be back in a moment";
  Pass(seconds(3));
  ASSERT_EQ(Writes(), 2U);
  EXPECT_EQ(ConditionOf(Last(), "PodResourcesReachable"), "False SocketMissing");
  EXPECT_EQ(Last().nrt, good.nrt);
  EXPECT_FALSE(publisher_.published[1].changed.nrt);
  EXPECT_EQ(Last().placement.pods, good.placement.pods);
  EXPECT_EQ(Last().placement.observed_at, good.placement.observed_at);
  EXPECT_EQ(Last().placement.revision, 2);
  Pass(minutes(10) + milliseconds(500));
  EXPECT_EQ(Writes(), 2U) << "said once";
  EXPECT_THAT(metrics_.Text(),
              HasSubstr("plumbline_podresources_errors_total{cause=\"socket_missing\"}"));

  node_.StartKubelet();
  Hint(kKubelet);
  EXPECT_EQ(Writes(), 3U);
  EXPECT_EQ(ConditionOf(Last(), "PodResourcesReachable"), "True Answered");
}

TEST_F(LoopTest, SaysNothingOfOneQuestionThatWasRefused) {
  Start();
  Pass(kBetweenPolls);
  node_.kubelet().Fail(demo::Method::kList, 2,
                       absl::ResourceExhaustedError("rejected by rate limit"));
  Pass(seconds(10));
  EXPECT_EQ(Writes(), 1U);
  EXPECT_THAT(metrics_.Text(), HasSubstr("errors_total{cause=\"rate_limited\"} 2\n"));
}

TEST_F(LoopTest, SaysAtOnceThatThereIsNoDataWhereThereNeverWas) {
  node_.StopKubelet();
  Start();
  ASSERT_EQ(Writes(), 1U);
  EXPECT_FALSE(Last().nrt);
  EXPECT_FALSE(Last().placement.observed_at);
  EXPECT_THAT(Last().placement.numa_nodes, SizeIs(2));
  EXPECT_EQ(ConditionOf(Last(), "PodResourcesReachable"), "False SocketMissing");
}

TEST_F(LoopTest, KeepsWhatWasPublishedBeforeItStarted) {
  Start();
  const placement::NodePlacement before = Last().placement;
  publisher_.published.clear();
  publisher_.former = before;
  node_.StopKubelet();
  Start();
  Pass(seconds(3));
  EXPECT_EQ(Last().placement.pods, before.pods);
  EXPECT_EQ(Last().placement.observed_at, before.observed_at);
  EXPECT_FALSE(Last().nrt) << "whatever is there is left as it is";
  EXPECT_EQ(Last().placement.revision, before.revision + 1);
}

TEST_F(LoopTest, GoesOnFromTheRevisionThatWasPublished) {
  Start();
  placement::NodePlacement before = Last().placement;
  before.revision = 4182;
  publisher_.former = before;
  Start();
  EXPECT_EQ(Last().placement.revision, 4182) << "the content is the same";
  node_.Add({.name = "llm-1", .cpus = "2,6", .gpus = {}});
  node_.WriteAll();
  Pass(seconds(1));
  EXPECT_EQ(Last().placement.revision, 4183);
}

TEST_F(LoopTest, SaidNothingOfTheKubeletWhileTheApiServerWasAwayAtItsStart) {
  publisher_.former_answer = absl::UnavailableError("no route to host");
  Start();
  EXPECT_THAT(metrics_.Text(), HasSubstr("{type=\"PodResourcesReachable\",status=\"True\""));
  EXPECT_THAT(metrics_.Text(), HasSubstr("plumbline_pods{alignment=\"aligned\"} 1"));
  Pass(seconds(3));
  node_.StopKubelet();
  Hint(kKubelet);
  Pass(minutes(5));
  EXPECT_THAT(metrics_.Text(), HasSubstr("{type=\"PodResourcesReachable\",status=\"False\""));
  EXPECT_THAT(metrics_.Text(), HasSubstr("podresources_errors_total{cause=\"socket_missing\"}"));
  EXPECT_NEAR(publisher_.attempts_to_ask, 19, 3) << "ever more seldom: then each 30 s";
  EXPECT_THAT(metrics_.Text(), HasSubstr("plumbline_publish_failures_total 1"));
  EXPECT_EQ(publisher_.attempts, 0);
  EXPECT_TRUE(health_->IsAlive(clock_.Steady()));
  EXPECT_FALSE(health_->IsReady());
}

TEST_F(LoopTest, GoesOnFromWhatItLearnsLateAndKeepsWhatItHasSeenItself) {
  Start();
  placement::NodePlacement before = Last().placement;
  before.revision = 4182;
  publisher_.published.clear();
  publisher_.former = before;
  publisher_.former_answer = absl::UnavailableError("no route to host");
  node_.Add({.name = "llm-1", .cpus = "2,6", .gpus = {}});
  node_.WriteAll();
  Start();
  Pass(seconds(10));
  node_.StopKubelet();
  Hint(kKubelet);
  Pass(seconds(5));
  publisher_.former_answer = absl::OkStatus();
  Pass(seconds(30));
  ASSERT_EQ(Writes(), 1U);
  EXPECT_TRUE(publisher_.published[0].had_before);
  EXPECT_EQ(Last().placement.revision, 4183);
  EXPECT_THAT(PodsIn(Last()), ElementsAre("llm-0", "llm-1"));
  EXPECT_EQ(ConditionOf(Last(), "PodResourcesReachable"), "False SocketMissing");
}

TEST_F(LoopTest, DoesNotTakeTheListOfAKubeletThatHasJustStartedForAnEmptyNode) {
  Start();
  Pass(kBetweenPolls);
  node_.ListOnly({});
  RestartKubelet();
  Hint(kKubelet);
  Pass(milliseconds(900));
  EXPECT_EQ(Writes(), 1U);
  node_.WriteList();
  Pass(seconds(1));
  ASSERT_EQ(Writes(), 2U) << "the kubelet's new start";
  EXPECT_THAT(PodsIn(Last()), ElementsAre("llm-0"));
  EXPECT_EQ(ConditionOf(Last(), "Settled"), "True FilesUnchanged");
}

TEST_F(LoopTest, SaysThatTheKubeletIsStartingIfItsPodsAreLongInComing) {
  Start();
  const Observation good = Last();
  node_.Add({.name = "llm-1", .cpus = "2,6", .gpus = {}});
  Pass(kBetweenPolls);
  node_.ListOnly({});
  RestartKubelet();
  Hint(kKubelet);
  Pass(seconds(30));
  ASSERT_EQ(Writes(), 2U);
  EXPECT_EQ(ConditionOf(Last(), "Settled"), "False KubeletStarting");
  EXPECT_EQ(ConditionOf(Last(), "PodResourcesReachable"), "True Answered");
  EXPECT_EQ(Last().placement.pods, good.placement.pods);
  EXPECT_EQ(Last().nrt, good.nrt);
  Pass(minutes(4));
  EXPECT_EQ(Writes(), 2U);
  Pass(minutes(1));
  EXPECT_THAT(PodsIn(Last()), IsEmpty()) << "after five minutes it is believed";
}

TEST_F(LoopTest, DoesNotBelieveAKubeletThatIsCutOffFromTheApiServerAsItIs) {
  Start();
  Pass(kBetweenPolls);
  node_.ListOnly({});
  RestartKubelet();
  publisher_.answer = [] { return absl::UnavailableError("no route to host"); };
  Hint(kKubelet);
  Pass(minutes(10));
  EXPECT_EQ(Writes(), 1U);
  node_.WriteList();
  Pass(seconds(8));
  publisher_.answer = nullptr;
  Pass(minutes(1));
  for (const auto& written : publisher_.published) {
    EXPECT_THAT(PodsIn(written.content), ElementsAre("llm-0"));
  }
}

TEST_F(LoopTest, BelievesAtOnceThatPodsEndedWhileTheKubeletWasDown) {
  node_.Add({.name = "llm-1", .cpus = "2,6", .gpus = {}});
  node_.WriteAll();
  Start();
  Pass(kBetweenPolls);
  node_.StopKubelet();
  node_.Remove("llm-0");
  node_.WriteCgroups();
  node_.WriteList();
  node_.StartKubelet();
  Hint(kKubelet);
  EXPECT_THAT(PodsIn(Last()), ElementsAre("llm-1"));
}

TEST_F(LoopTest, PublishesNoPodsOfAYoungKubeletIfItStartsBesideIt) {
  node_.ListOnly({});
  node_.tree().Put("proc/stat",
                   fmt::format("btime {}\n", clock_.Now().time_since_epoch() / seconds(1) - 4250));
  RestartKubelet();
  Start();
  ASSERT_EQ(Writes(), 1U);
  EXPECT_FALSE(Last().nrt);
  EXPECT_FALSE(Last().placement.observed_at);
  EXPECT_EQ(ConditionOf(Last(), "Settled"), "False KubeletStarting");
  node_.WriteList();
  Pass(seconds(1));
  EXPECT_THAT(PodsIn(Last()), ElementsAre("llm-0"));
  EXPECT_TRUE(Last().nrt);
}

TEST_F(LoopTest, PublishesNothingOfFilesThatChangeMeanwhileUnlessTheyGoOnForASecond) {
  int version = 0;
  node_.at_question = [&] {
    node_.tree().Put("var/lib/kubelet/memory_manager_state",
                     fmt::format("{{\"v\":{}}}", ++version));
  };
  Start();
  Pass(milliseconds(900));
  EXPECT_EQ(Writes(), 0U);
  Pass(milliseconds(300));
  ASSERT_EQ(Writes(), 1U);
  EXPECT_EQ(ConditionOf(Last(), "Settled"), "False FilesChanging");
  EXPECT_THAT(PodsIn(Last()), ElementsAre("llm-0"));
  node_.at_question = nullptr;
  Pass(seconds(1));
  EXPECT_EQ(ConditionOf(Last(), "Settled"), "True FilesUnchanged");
}

TEST_F(LoopTest, PublishesNothingOfACleanUpThatIsHalfWrittenUnlessItStaysSoForASecond) {
  node_.Add({.name = "llm-1", .cpus = "2,6", .gpus = {}});
  node_.WriteAll();
  Start();
  ASSERT_EQ(Available(Last(), "node-1", "cpu"), 2);
  node_.Remove("llm-1");
  node_.WriteAll();
  node_.WriteStateFiles("2,6");
  Hint(kKubelet);
  Pass(milliseconds(200));
  EXPECT_EQ(Writes(), 1U);
  node_.WriteStateFiles();
  Hint(kKubelet);
  Pass(milliseconds(200));
  ASSERT_EQ(Writes(), 2U);
  EXPECT_EQ(Available(Last(), "node-1", "cpu"), 4);

  node_.WriteStateFiles("2,6");
  Hint(kKubelet);
  Pass(milliseconds(900));
  EXPECT_EQ(Writes(), 2U);
  Pass(milliseconds(300));
  ASSERT_EQ(Writes(), 3U);
  EXPECT_EQ(Available(Last(), "node-1", "cpu"), 2);
  EXPECT_EQ(ConditionOf(Last(), "Settled"), "False FilesChanging");
}

TEST_F(LoopTest, KeepsDevicesUnavailableUntilTheirPluginRegistersAgain) {
  Start();
  Pass(kBetweenPolls);
  ASSERT_EQ(Available(Last(), "node-1", "nvidia.com/gpu"), 2);
  node_.SetGpus({});
  node_.WriteList();  // its checkpoint still names the resource
  RestartKubelet();
  Hint(kKubelet);
  EXPECT_EQ(Available(Last(), "node-1", "nvidia.com/gpu"), 0);
  EXPECT_THAT(Last().placement.devices, SizeIs(4));
  EXPECT_EQ(ConditionOf(Last(), "DevicesRegistered"), "False Settling");
  node_.SetGpus({"gpu-0", "gpu-1", "gpu-2", "gpu-3"});
  node_.WriteAll();
  Pass(seconds(1));
  EXPECT_EQ(Available(Last(), "node-1", "nvidia.com/gpu"), 2);
  EXPECT_EQ(ConditionOf(Last(), "DevicesRegistered"), "True AllRegistered");
}

TEST_F(LoopTest, ForgetsDevicesAfterFiveMinutesWhereNobodyElseKnows) {
  Start();
  Pass(kBetweenPolls);
  node_.SetGpus({"gpu-0"});  // which is held
  node_.tree().Remove("var/lib/kubelet/device-plugins/kubelet_internal_checkpoint");
  node_.SetGpus({});
  node_.WriteList();
  Hint(kKubelet);
  EXPECT_THAT(Last().placement.devices, SizeIs(4));
  Pass(minutes(4));
  EXPECT_THAT(Last().placement.devices, SizeIs(4));
  Pass(minutes(2));
  EXPECT_THAT(Last().placement.devices, SizeIs(1)) << "the one that is held";
}

TEST_F(LoopTest, KeepsAnUnhealthyDeviceCounted) {
  Start();
  Pass(kBetweenPolls);
  node_.SetGpus({"gpu-0", "gpu-1", "gpu-2"});
  node_.WriteAll();
  Hint(kKubelet);
  ASSERT_THAT(Last().placement.devices, SizeIs(4));
  EXPECT_FALSE(Last().placement.devices[3].healthy);
  EXPECT_EQ(Available(Last(), "node-1", "nvidia.com/gpu"), 1);
}

TEST_F(LoopTest, TriesAgainWithTheNewestContentUntilItIsPublished) {
  Start();
  Pass(kBetweenPolls);
  publisher_.answer = [] { return absl::UnavailableError("no route to host"); };
  node_.Add({.name = "llm-1", .cpus = "2,6", .gpus = {}});
  node_.WriteAll();
  Hint(kKubelet);
  Pass(milliseconds(100));
  EXPECT_EQ(publisher_.attempts, 2);
  Pass(milliseconds(200));
  EXPECT_EQ(publisher_.attempts, 3) << "after 0.2 s";
  Pass(minutes(10));
  EXPECT_NEAR(publisher_.attempts, 30, 3)
      << "and then ever more seldom: 10 of them, then each 30 s";
  node_.Add({.name = "llm-2", .cpus = "3,7", .gpus = {}});
  node_.WriteAll();
  Hint(kKubelet);
  publisher_.answer = nullptr;
  Pass(seconds(40));
  ASSERT_EQ(Writes(), 2U);
  EXPECT_THAT(PodsIn(Last()), ElementsAre("llm-0", "llm-1", "llm-2"));
  EXPECT_THAT(metrics_.Text(), HasSubstr("plumbline_publish_failures_total"));
}

TEST_F(LoopTest, LeftWhatAFailedAttemptHadWrittenWhenTheContentWasAsBeforeAgain) {
  Start();
  Pass(kBetweenPolls);
  publisher_.answer = [] { return absl::UnavailableError("one object written, the other not"); };
  node_.Add({.name = "llm-1", .cpus = "2,6", .gpus = {}});
  node_.WriteAll();
  Hint(kKubelet);
  ASSERT_EQ(publisher_.attempts, 2);
  node_.Remove("llm-1");
  node_.WriteAll();
  Hint(kKubelet);
  publisher_.answer = nullptr;
  Pass(seconds(5));
  ASSERT_EQ(Writes(), 2U);
  EXPECT_TRUE(publisher_.published[1].changed.nrt && publisher_.published[1].changed.placement);
  EXPECT_THAT(PodsIn(Last()), ElementsAre("llm-0"));
}

TEST_F(LoopTest, TriesAgainNoSoonerThanTheApiServerHasSaid) {
  publisher_.answer = [] {
    absl::Status busy = absl::UnavailableError("HTTP 429");
    base::SetRetryAfter(seconds(7), busy);
    return busy;
  };
  Start();
  Pass(milliseconds(6'900));
  EXPECT_EQ(publisher_.attempts, 1);
  publisher_.answer = nullptr;
  Pass(milliseconds(200));
  EXPECT_EQ(publisher_.attempts, 2);
  EXPECT_EQ(Writes(), 1U);
}

TEST_F(LoopTest, WasTakenForCurrentBeforeItHadPublished) {
  publisher_.answer = [] { return absl::UnavailableError("no route to host"); };
  Start();
  EXPECT_FALSE(health_->IsCurrent());
  publisher_.answer = nullptr;
  Pass(seconds(1));
  EXPECT_TRUE(health_->IsCurrent());
}

TEST_F(LoopTest, WasTakenForCurrentWhileWhatItFoundCouldNotBeWritten) {
  Start();
  EXPECT_TRUE(health_->IsCurrent());
  Pass(kBetweenPolls);
  publisher_.answer = [] { return absl::UnavailableError("no route to host"); };
  node_.Add({.name = "llm-1", .cpus = "2,6", .gpus = {}});
  node_.WriteAll();
  Hint(kKubelet);
  EXPECT_FALSE(health_->IsCurrent());
  Pass(minutes(5));
  EXPECT_FALSE(health_->IsCurrent());
  publisher_.answer = nullptr;
  Pass(minutes(1));
  EXPECT_TRUE(health_->IsCurrent());
}

TEST_F(LoopTest, WasTakenForCurrentWhileTheKubeletDidNotAnswer) {
  Start();
  Pass(kBetweenPolls);
  node_.StopKubelet();
  Hint(kKubelet);
  EXPECT_TRUE(health_->IsCurrent()) << "it may be back in a moment";
  Pass(seconds(3));
  EXPECT_EQ(Writes(), 2U) << "the condition is written";
  EXPECT_FALSE(health_->IsCurrent());
  node_.StartKubelet();
  Hint(kKubelet);
  Pass(seconds(1));
  EXPECT_TRUE(health_->IsCurrent());
}

TEST_F(LoopTest, ShowsTheConditionsOfNowInTheMetrics) {
  publisher_.conditions = {{"CRDTooOld", "True", "FieldsLeftOut", ""}};
  Start();
  EXPECT_THAT(metrics_.Text(), HasSubstr("{type=\"CRDTooOld\",status=\"True\""));
  Pass(kBetweenPolls);
  node_.StopKubelet();
  Hint(kKubelet);
  Pass(seconds(3));
  EXPECT_THAT(metrics_.Text(), HasSubstr("{type=\"PodResourcesReachable\",status=\"False\""));
}

TEST_F(LoopTest, WritesResidentMemoryOnceAMinuteAtMostAndCountsNoRevision) {
  node_.PutCgroup("llm-0", "anon N0=1073741824 N1=0\n");
  Start();
  const auto reside = [this](int on_node_1_mib) {
    node_.PutCgroup("llm-0", fmt::format("anon N0=1073741824 N1={}\n",
                                         static_cast<std::int64_t>(on_node_1_mib) << 20));
    Hint({.cpusets = true});
    Pass(seconds(1));
  };
  reside(40);
  EXPECT_EQ(Writes(), 1U) << "less than 64 MiB moved";
  reside(100);
  EXPECT_EQ(Writes(), 1U) << "within a minute of the first write";
  Pass(minutes(1));
  ASSERT_EQ(Writes(), 2U);
  EXPECT_EQ(Last().placement.revision, 1);
  EXPECT_FALSE(publisher_.published[1].changed.nrt);
  EXPECT_EQ(Last().placement.pods[0].containers[0].kernel->resident_bytes.at(1), 100 << 20);
}

TEST_F(LoopTest, SeesThatSomebodyMovedAContainer) {
  Start();
  Pass(kBetweenPolls);
  FakePod moved = node_.pods().at("llm-0");
  moved.cpus = "3,7";
  node_.Add(moved);
  node_.PutCgroup("llm-0");
  Hint({.cpusets = true});
  EXPECT_EQ(Last().placement.summary.drifted, 1);
  EXPECT_EQ(ConditionOf(Last(), "KernelAgrees"), "False Drifted");
}

TEST_F(LoopTest, SeesNewHardwareWithinAPoll) {
  Start();
  Pass(kBetweenPolls);
  node_.tree().Put("sys/devices/system/cpu/online", "0-6\n");
  Pass(kBetweenPolls);
  EXPECT_FALSE(Last().placement.numa_nodes[1].cpus.Contains(7));
}

TEST_F(LoopTest, KeepsTheValuesThatTheRunningKubeletStartedWith) {
  Start();
  ASSERT_EQ(Last().placement.kubelet.topology_policy, "best-effort");
  std::string config =
      "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
      "cpuManagerPolicy: static\ntopologyManagerPolicy: restricted\nreservedSystemCPUs: 0,4\n";
  node_.tree().Put("var/lib/kubelet/config.yaml", config);
  Hint({.config = true});
  Pass(seconds(5));
  EXPECT_EQ(Last().placement.kubelet.topology_policy, "best-effort");
  RestartKubelet();
  Hint(kKubelet);
  Pass(seconds(1));
  EXPECT_EQ(Last().placement.kubelet.topology_policy, "restricted");
}

TEST_F(LoopTest, IsUnmovedByAClockThatJumps) {
  Start();
  clock_.JumpWall(std::chrono::hours(-48));
  Pass(seconds(5));
  clock_.JumpWall(std::chrono::hours(96));
  Pass(seconds(5));
  EXPECT_EQ(Writes(), 1U);
  node_.Remove("llm-0");
  node_.WriteAll();
  Pass(seconds(1));
  EXPECT_EQ(Writes(), 2U);
}

// All of it together: real time, real files, and no poll that could help.
TEST_F(LoopTest, RunsByHintsAloneUntilToldToStop) {
  std::counting_semaphore<> written{0};
  publisher_.answer = [&written] {
    written.release();
    return absl::OkStatus();
  };
  base::SystemClock clock;
  Health health(clock.Steady());
  Reader reader(node_.sources(), {}, clock);
  ASSERT_OK(reader.Start());
  Loop loop(reader, publisher_, clock, metrics_, health, {.poll_interval = std::chrono::hours(1)});
  absl::StatusOr<std::unique_ptr<Notice>> notice = Notice::Open(node_.tree().Open());
  ASSERT_OK(notice);
  std::jthread running(
      [&](const std::stop_token& stop) { agent::Run(loop, reader, **notice, stop); });
  ASSERT_TRUE(written.try_acquire_for(minutes(1)));
  node_.Add({.name = "llm-1", .cpus = "2,6", .gpus = {"gpu-2"}});
  node_.WriteList();
  node_.WriteStateFiles();
  ASSERT_TRUE(written.try_acquire_for(minutes(1)));
  running.request_stop();
  running.join();
  EXPECT_THAT(PodsIn(Last()), ElementsAre("llm-0", "llm-1"));
}

// Random changes, of which hints are lost, beside random faults. One pod stays all the time.
class RandomLoopTest : public LoopTest, public testing::WithParamInterface<unsigned> {
 protected:
  void Change() {
    const std::string name = fmt::format("pod-{}", random_() % 2);
    static const std::deque<FakePod> kShapes = {{.name = "pod-0", .cpus = "2,6", .gpus = {"gpu-2"}},
                                                {.name = "pod-1", .cpus = "", .gpus = {"gpu-1"}}};
    if (node_.pods().contains(name)) {
      node_.Remove(name);
    } else {
      node_.Add(kShapes[name == "pod-0" ? 0 : 1]);
    }
  }
  // What the kubelet does about it, in any order, and partly later.
  void Show() {
    if (random_() % 2 == 0) node_.WriteStateFiles();
    if (random_() % 2 == 0) node_.WriteCgroups();
    if (random_() % 2 == 0 && !starting_) node_.WriteList();
  }
  void Restart() {
    node_.StopKubelet();
    if (random_() % 2 == 0) Step();
    node_.ListOnly({});
    starting_ = true;
    node_.StartKubelet();
  }
  void Fault() {
    const auto times = static_cast<int>(random_() % 3);
    switch (random_() % 5) {
      case 0:
        return node_.kubelet().Fail(demo::Method::kList, times, absl::UnavailableError("busy"));
      case 1:
        return node_.kubelet().Fail(demo::Method::kGetAllocatableResources, times,
                                    absl::ResourceExhaustedError("rejected by rate limit"));
      case 2:
        return clock_.JumpWall(std::chrono::hours(static_cast<int>(random_() % 100) - 50));
      case 3:
        publisher_.answer = [this] {
          return random_() % 2 == 0 ? absl::OkStatus() : absl::UnavailableError("HTTP 503");
        };
        return;
      default:
        publisher_.answer = nullptr;
    }
  }
  void Step() {
    if (random_() % 3 == 0) Hint(random_() % 2 == 0 ? kKubelet : kPods);
    Pass(milliseconds(random_() % 3 == 0 ? random_() % 3000 : random_() % 60));
  }
  void Heal() {
    publisher_.answer = nullptr;
    node_.kubelet().Fail(demo::Method::kList, 0, absl::OkStatus());
    node_.WriteAll();
    Pass(minutes(1));
  }

  std::mt19937 random_{GetParam()};
  bool starting_ = false;
};

TEST_P(RandomLoopTest, EndsWithTheTruthAndNeverPublishesAnythingEmpty) {
  Start();
  for (int i = 0; i < 40; ++i) {
    switch (random_() % 8) {
      case 0:
        Fault();
        break;
      case 1:
        Restart();
        break;
      case 2:
        if (starting_) node_.WriteList();
        starting_ = false;
        break;
      default:
        Change();
        Show();
    }
    Step();
  }
  Heal();

  const absl::StatusOr<placement::Facts> facts = Gather(node_.sources(), clock_);
  ASSERT_OK(facts);
  const Observation truth = placement::Observe(*facts);
  EXPECT_FALSE(Compare(truth, Last()).content()) << Last().placement.summary.free;
  EXPECT_THAT(PodsIn(Last()), testing::Contains("llm-0"));
  for (const auto& written : publisher_.published) {
    EXPECT_THAT(PodsIn(written.content), testing::Contains("llm-0"));
    ASSERT_TRUE(written.content.nrt);
    EXPECT_EQ(Available(written.content, "node-0", "cpu"), 0);
  }
  for (std::size_t i = 10; i < asked_at_.size(); ++i) {
    EXPECT_GE(asked_at_[i] - asked_at_[i - 10], seconds(1));
  }
  std::int64_t revision = 0;
  for (const auto& written : publisher_.published) {
    EXPECT_GE(written.content.placement.revision, revision);
    revision = written.content.placement.revision;
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomLoopTest, testing::Range(1U, 33U));

}  // namespace
}  // namespace agent
