#include "agent/pod_events.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <latch>
#include <memory>
#include <semaphore>

#include "test/agent/api_objects.h"
#include "test/fakes/clock.h"
#include "test/fakes/transport.h"
#include "test/support/status.h"

namespace agent {
namespace {

using placement::Alignment;
using placement::NodePlacement;
using placement::PlacedPod;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

PlacedPod Pod(const std::string& name, Alignment alignment,
              const std::string& reason = "MoreNUMANodesThanNeeded") {
  PlacedPod pod;
  pod.namespace_name = "ml";
  pod.name = name;
  pod.uid = name + "-uid";
  pod.alignment = alignment;
  pod.reason = reason;
  pod.message = "CPUs are on NUMA node 0, the GPU on 1.";
  return pod;
}

NodePlacement With(std::vector<PlacedPod> pods) {
  NodePlacement placement;
  placement.pods = std::move(pods);
  return placement;
}

std::vector<std::string> Names(const std::vector<PlacedPod>& pods) {
  std::vector<std::string> names;
  for (const PlacedPod& pod : pods) names.push_back(pod.name);
  return names;
}

base::Time Noon() { return base::ParseTime("2026-11-29T12:00:00Z").value(); }

std::string NameIn(const std::string& event) { return kube::ParseObject(event).value().name; }

TEST(NewFindings, AreMisalignedAndDriftedPods) {
  const NodePlacement now = With({Pod("a", Alignment::kAligned), Pod("b", Alignment::kMisaligned),
                                  Pod("c", Alignment::kDrifted), Pod("d", Alignment::kUnpinned),
                                  Pod("e", Alignment::kSpread), Pod("f", Alignment::kUnknown)});
  EXPECT_THAT(Names(NewFindings(now, {})), ElementsAre("b", "c"));
}

TEST(NewFindings, AreNoneThatWereKnownUnlessTheReasonOrThePodIsAnother) {
  const NodePlacement before =
      With({Pod("a", Alignment::kMisaligned), Pod("b", Alignment::kDrifted, "CPUsDiffer"),
            Pod("c", Alignment::kMisaligned), Pod("d", Alignment::kAligned)});
  PlacedPod anew = Pod("c", Alignment::kMisaligned);
  anew.uid = "another";
  const NodePlacement now =
      With({Pod("a", Alignment::kMisaligned), Pod("b", Alignment::kDrifted, "MemoryNodesDiffer"),
            anew, Pod("d", Alignment::kMisaligned)});
  EXPECT_THAT(Names(NewFindings(now, FindingsOf(before))), ElementsAre("b", "c", "d"));
  EXPECT_THAT(NewFindings(now, FindingsOf(now)), IsEmpty());
}

TEST(NewFindings, AreNoneWhenNothingButTheUidBecomesKnown) {
  PlacedPod nameless = Pod("a", Alignment::kDrifted);
  nameless.uid = "";
  const NodePlacement known = With({Pod("a", Alignment::kDrifted)});
  EXPECT_THAT(NewFindings(known, FindingsOf(With({nameless}))), IsEmpty());
  EXPECT_THAT(NewFindings(With({nameless}), FindingsOf(known)), IsEmpty());
}

TEST(EventJson, SaysOnThePodWhatIsWrong) {
  const std::string json = EventJson(Pod("llm-0", Alignment::kMisaligned), "gpu-7", Noon());
  EXPECT_THAT(NameIn(json), testing::MatchesRegex("llm-0\\.[0-9a-f]{16}"));
  EXPECT_THAT(json, HasSubstr(R"("involvedObject":{"apiVersion":"v1","kind":"Pod",)"
                              R"("namespace":"ml","name":"llm-0","uid":"llm-0-uid"},)"
                              R"("type":"Warning","reason":"MoreNUMANodesThanNeeded",)"
                              R"("message":"CPUs are on NUMA node 0, the GPU on 1.","count":1,)"
                              R"("firstTimestamp":"2026-11-29T12:00:00.000Z",)"));
  EXPECT_THAT(json, HasSubstr(R"("source":{"component":"plumbline-agent","host":"gpu-7"})"));
}

TEST(EventJson, IsNamedByThePodAndTheFinding) {
  const PlacedPod pod = Pod("llm-0", Alignment::kMisaligned);
  const auto name = [](const PlacedPod& of) { return NameIn(EventJson(of, "gpu-7", Noon())); };
  PlacedPod other_message = pod;
  other_message.message = "CPUs are on NUMA node 1.";
  EXPECT_EQ(name(pod), name(other_message));
  PlacedPod other_reason = pod;
  other_reason.reason = "CPUsDiffer";
  EXPECT_NE(name(pod), name(other_reason));
  PlacedPod other_pod = pod;
  other_pod.uid = "another";
  EXPECT_NE(name(pod), name(other_pod));
  EXPECT_LE(name(Pod(std::string(253, 'a'), Alignment::kDrifted)).size(), 253U);
  const std::string cut_at_a_dot = std::string(235, 'a') + ".b" + std::string(16, 'c');
  EXPECT_THAT(name(Pod(cut_at_a_dot, Alignment::kDrifted)), Not(HasSubstr("..")));
}

TEST(EventJson, NamesAPodWithoutItsUidIfThatIsNotKnown) {
  PlacedPod pod = Pod("llm-0", Alignment::kDrifted);
  pod.uid = "";
  EXPECT_THAT(EventJson(pod, "gpu-7", Noon()),
              HasSubstr(R"("namespace":"ml","name":"llm-0"},"type")"));
}

class PodEventsTest : public testing::Test {
 protected:
  void Tell(const NodePlacement& now, const NodePlacement* before = nullptr) {
    placement::Observation content;
    content.placement = now;
    events_->Tell({.content = content, .before = before});
  }

  test::FakeClock clock_;
  test::FakeTransport transport_;
  kube::Client client_{transport_, clock_, {}, [] { return 0.0; }};
  Metrics metrics_;
  std::unique_ptr<PodEvents> events_ =
      std::make_unique<PodEvents>(client_, clock_, metrics_, "gpu-7");
};

TEST_F(PodEventsTest, CreatesAnEventInThePodsNamespace) {
  transport_.Then(201, test::Json({}));
  Tell(With({Pod("llm-0", Alignment::kMisaligned)}));
  transport_.AwaitSent(1);
  EXPECT_EQ(transport_.sent()[0].method, "POST");
  EXPECT_EQ(transport_.sent()[0].target, "/api/v1/namespaces/ml/events");
  events_.reset();
  EXPECT_THAT(metrics_.Text(), HasSubstr(R"(object="events",result="created"} 1)"));
}

TEST_F(PodEventsTest, TellsAFindingOnceHoweverOftenItIsWritten) {
  const NodePlacement before = With({Pod("known", Alignment::kMisaligned)});
  const NodePlacement now =
      With({Pod("known", Alignment::kMisaligned), Pod("llm-0", Alignment::kDrifted)});
  transport_.Then(201, test::Json({})).Then(201, test::Json({}));
  Tell(now, &before);
  Tell(now, &before);  // as after a failure of the other object
  Tell(With({Pod("last", Alignment::kDrifted)}), &before);
  transport_.AwaitSent(2);
  EXPECT_EQ(NameIn(transport_.sent()[0].body).substr(0, 6), "llm-0.");
  EXPECT_EQ(NameIn(transport_.sent()[1].body).substr(0, 5), "last.");
}

TEST_F(PodEventsTest, TakesOneThatIsThereForTold) {
  transport_.Then(409, test::Refusal(409, "AlreadyExists", "it exists"));
  Tell(With({Pod("llm-0", Alignment::kMisaligned)}));
  transport_.AwaitSent(1);
  events_.reset();
  EXPECT_THAT(metrics_.Text(), HasSubstr(R"(object="events",result="unchanged"} 1)"));
  EXPECT_THAT(metrics_.Text(), HasSubstr("plumbline_events_dropped_total 0"));
}

TEST_F(PodEventsTest, CountsWhatItMayNotTell) {
  transport_.Then(403, test::Refusal(403, "Forbidden", "no"));
  Tell(With({Pod("llm-0", Alignment::kMisaligned)}));
  transport_.AwaitSent(1);
  events_.reset();
  EXPECT_THAT(metrics_.Text(), HasSubstr(R"(object="events",result="forbidden"} 1)"));
  EXPECT_THAT(metrics_.Text(), HasSubstr("plumbline_events_dropped_total 1"));
}

TEST_F(PodEventsTest, KeepsNobodyWaitingAndDropsWhatIsTooMuch) {
  std::counting_semaphore<> asked{0};
  std::latch answer{1};
  transport_.during_request = [&](const kube::HttpRequest&) {
    asked.release();
    answer.wait();
  };
  Tell(With({Pod("first", Alignment::kMisaligned)}));
  asked.acquire();  // and gets no answer
  std::vector<PlacedPod> many;
  for (std::size_t i = 0; i < PodEvents::kMostWaiting + 3; ++i) {
    many.push_back(Pod(fmt::format("pod-{}", i), Alignment::kMisaligned));
  }
  Tell(With(many));
  EXPECT_THAT(metrics_.Text(), HasSubstr("plumbline_events_dropped_total 3"));
  answer.count_down();
  events_.reset();
}

}  // namespace
}  // namespace agent
