// Against an API server that answers from a script. The watches have threads of their own; what
// they say is taken before a test goes on.
#include "agent/api_publisher.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>

#include "base/retry_after.h"
#include "kube/json.h"
#include "test/agent/api_objects.h"
#include "test/fakes/clock.h"
#include "test/fakes/transport.h"
#include "test/support/status.h"

namespace agent {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;
using test::ApiObject;
using test::Managed;
using test::Refusal;
using test::StatusIs;
using test::WatchLine;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

constexpr char kNrt[] = "noderesourcetopologies";
constexpr char kPlacement[] = "nodeplacements";
constexpr char kNrtPath[] = "/apis/topology.node.k8s.io/v1alpha2/noderesourcetopologies/gpu-7";
constexpr char kPlacementPath[] = "/apis/plumbline.dev/v1alpha1/nodeplacements/gpu-7";
constexpr char kZones[] = R"({"f:zones":{}})";
constexpr char kNfd[] = "node-feature-discovery-topology-updater";

const std::string kOurs = Managed("plumbline-agent", kZones);
const std::string kOurStatus = Managed("plumbline-agent", R"({"f:status":{}})", "status");
const std::string kConflict =
    Refusal(409, "Conflict", "Apply failed with 1 conflict", "gpu-7",
            R"({"reason":"FieldManagerConflict","message":"conflict with \"nfd\""})");
const std::string kTheirs = Managed(kNfd, kZones);

placement::Observation Content() {
  placement::Observation content;
  content.placement.node_name = "gpu-7";
  content.placement.revision = 7;
  content.nrt = placement::NodeResourceTopology{
      .name = "gpu-7",
      .annotations = {},
      .topology_policies = {},
      .attributes = {{"free", "0: 4 gpu"}},
      .zones = {
          {.name = "node-0", .type = "Node", .costs = {}, .attributes = {}, .resources = {}}}};
  return content;
}

class ApiPublisherTest : public testing::Test {
 public:
  ApiPublisherTest& Answer(const ApiObject& object) {
    transport_.Then(200, test::Json(object));
    return *this;
  }
  ApiPublisherTest& Refuse(int code, const std::string& body) {
    transport_.Then(code, body);
    return *this;
  }

 protected:
  // An agent on a node whose objects are not there, as the watches have said.
  void StartOnNewNode(NrtMode mode = NrtMode::kAuto) {
    Start(mode);
    if (mode != NrtMode::kNever) transport_.Say(kNrt, test::WatchSynced());
    transport_.Say(kPlacement, test::WatchSynced());
  }
  void Start(NrtMode mode = NrtMode::kAuto) {
    publisher_ = std::make_unique<ApiPublisher>(
        client_, clock_, metrics_,
        ApiPublisherOptions{.node_name = "gpu-7",
                            .nrt = mode,
                            .node_uid = [this] { return node_uid_; },
                            .poke = [this] { ++pokes_; },
                            .written =
                                [this](const Publication& publication) {
                                  told_.push_back(publication.content.placement.revision);
                                }});
  }
  // What has been published once, and the API server holds it with these versions.
  void PublishFirst(NrtMode mode = NrtMode::kAuto) {
    StartOnNewNode(mode);
    if (mode != NrtMode::kNever) Answer({.version = "10", .managed = {kOurs}});
    Answer({.version = "20"}).Answer({.version = "21", .managed = {kOurStatus}});
    ASSERT_OK(Publish());
    pokes_ = 0;
  }
  absl::Status Publish(Objects changed = {.nrt = true, .placement = true}) {
    const std::size_t before = transport_.sent().size();
    absl::Status status = publisher_->Publish({.content = content_, .changed = changed});
    const auto all = transport_.sent();
    sent_.assign(all.begin() + static_cast<std::ptrdiff_t>(before), all.end());
    return status;
  }
  absl::Status PublishNrt() { return Publish({.nrt = true, .placement = false}); }
  absl::Status PublishPlacement() { return Publish({.nrt = false, .placement = true}); }

  // "PATCH /apis/…/gpu-7/status", of the last Publish.
  std::vector<std::string> Asked() const {
    std::vector<std::string> asked;
    for (const kube::HttpRequest& request : sent_) {
      asked.push_back(request.method + " " + request.target.substr(0, request.target.find('?')));
    }
    return asked;
  }
  // "False OtherWriter", "" if there is no such condition.
  std::string Condition(const std::string& type) const {
    for (const placement::Condition& condition : publisher_->Conditions()) {
      if (condition.type == type) return condition.status + " " + condition.reason;
    }
    return "";
  }
  std::string MessageOf(const std::string& type) const {
    for (const placement::Condition& condition : publisher_->Conditions()) {
      if (condition.type == type) return condition.message;
    }
    return "";
  }
  bool NrtStale() const { return publisher_->Stale().nrt; }
  bool PlacementStale() const { return publisher_->Stale().placement; }

  test::FakeClock clock_;
  test::FakeTransport transport_;
  kube::Client client_{transport_, clock_, ApiPublisher::ForClient(), [] { return 0.0; }};
  Metrics metrics_;
  std::optional<std::string> node_uid_ = "node-1";
  std::atomic<int> pokes_ = 0;
  placement::Observation content_ = Content();
  std::vector<kube::HttpRequest> sent_;  // by the last Publish
  std::vector<std::int64_t> told_;       // revisions that were said to be written
  std::unique_ptr<ApiPublisher> publisher_;
};

TEST_F(ApiPublisherTest, MakesBothObjectsOwnedByTheNode) {
  StartOnNewNode();
  Answer({.managed = {kOurs}}).Answer({}).Answer({.version = "2", .managed = {kOurStatus}});
  ASSERT_OK(Publish());
  EXPECT_THAT(Asked(),
              ElementsAre(std::string("PATCH ") + kNrtPath, std::string("PATCH ") + kPlacementPath,
                          std::string("PATCH ") + kPlacementPath + "/status"));
  constexpr char kOwner[] =
      R"("ownerReferences":[{"apiVersion":"v1","kind":"Node","name":"gpu-7","uid":"node-1"}])";
  EXPECT_THAT(sent_[0].target, HasSubstr("?fieldManager=plumbline-agent"));
  EXPECT_THAT(sent_[0].body, AllOf(HasSubstr(kOwner), HasSubstr("\"zones\"")));
  EXPECT_EQ(sent_[1].body,
            std::string(R"({"apiVersion":"plumbline.dev/v1alpha1","kind":"NodePlacement",)"
                        R"("metadata":{"name":"gpu-7",)") +
                kOwner + "}}");
  EXPECT_THAT(sent_[2].body, AllOf(HasSubstr("\"revision\":7"), Not(HasSubstr(kOwner))));
  EXPECT_THAT(sent_[0].accept, HasSubstr("PartialObjectMetadata"));
  EXPECT_EQ(Condition("NRTPublished"), "True Published");
  EXPECT_FALSE(publisher_->Stale().any());
  EXPECT_THAT(
      metrics_.Text(),
      HasSubstr(R"(plumbline_writes_total{object="noderesourcetopologies",result="created"})"));
}

TEST_F(ApiPublisherTest, WritesThenOnlyWhatChanged) {
  PublishFirst();
  Answer({.version = "11", .managed = {kOurs}});
  ASSERT_OK(PublishNrt());
  EXPECT_THAT(Asked(), ElementsAre(HasSubstr(kNrt)));
  Answer({.version = "22", .managed = {kOurStatus}});
  ASSERT_OK(PublishPlacement());
  EXPECT_THAT(Asked(), ElementsAre(HasSubstr("nodeplacements/gpu-7/status")));
}

TEST_F(ApiPublisherTest, LeavesTheObjectAsItIsWhileItsNumbersAreNotKnown) {
  StartOnNewNode();
  content_.nrt.reset();
  Answer({}).Answer({});
  ASSERT_OK(Publish());
  EXPECT_THAT(Asked(), ElementsAre(HasSubstr(kPlacement), HasSubstr(kPlacement)));
}

TEST_F(ApiPublisherTest, DoesNotAskForNumbersThatNobodyKnows) {
  PublishFirst();
  content_.nrt.reset();
  Answer({.version = "22", .managed = {kOurStatus}});
  ASSERT_OK(Publish());
  transport_.Say(kNrt, WatchLine("ADDED", {.version = "10", .managed = {kOurs}}));
  transport_.Say(kNrt, WatchLine("DELETED", {.version = "11"}));
  EXPECT_FALSE(NrtStale());
}

TEST_F(ApiPublisherTest, SaysWhatItHasWrittenOfAPlacementOnceItIsThere) {
  StartOnNewNode();
  Refuse(503, Refusal(503, "ServiceUnavailable", "busy"));
  EXPECT_THAT(PublishPlacement(), StatusIs(absl::StatusCode::kUnavailable, HasSubstr("busy")));
  EXPECT_THAT(told_, IsEmpty());
  Answer({}).Answer({.managed = {kOurStatus}});
  ASSERT_OK(PublishPlacement());
  EXPECT_THAT(told_, ElementsAre(7));
  Answer({.version = "2", .managed = {kOurs}});
  ASSERT_OK(PublishNrt());
  EXPECT_THAT(told_, SizeIs(1));
}

TEST_F(ApiPublisherTest, StartsOverWhereAStatusHasNoObject) {
  PublishFirst();
  Refuse(404, Refusal(404, "NotFound", "not found"))
      .Answer({.version = "30"})
      .Answer({.version = "31", .managed = {kOurStatus}});
  ASSERT_OK(PublishPlacement());
  EXPECT_THAT(Asked(),
              ElementsAre(HasSubstr("/status"), Not(HasSubstr("/status")), HasSubstr("/status")));
}

TEST_F(ApiPublisherTest, TriesTheOtherObjectAfterOneFailed) {
  StartOnNewNode();
  Refuse(503, Refusal(503, "ServiceUnavailable", "busy"))
      .Answer({})
      .Answer({.managed = {kOurStatus}});
  EXPECT_THAT(Publish(), StatusIs(absl::StatusCode::kUnavailable, HasSubstr("busy")));
  EXPECT_THAT(sent_, SizeIs(3));
  EXPECT_THAT(metrics_.Text(), HasSubstr(R"(object="noderesourcetopologies",result="failed"} 1)"));
}

// Time.

TEST_F(ApiPublisherTest, BeginsNoRequestAfterFourSecondsAndThenBeginsWithTheOtherObject) {
  StartOnNewNode();
  transport_.during_request = [this](const kube::HttpRequest&) { clock_.Advance(seconds(5)); };
  Answer({.managed = {kOurs}});
  EXPECT_THAT(Publish(), StatusIs(absl::StatusCode::kDeadlineExceeded, HasSubstr(kPlacement)));
  EXPECT_THAT(Asked(), ElementsAre(HasSubstr(kNrt)));
  Answer({});
  EXPECT_THAT(Publish(), StatusIs(absl::StatusCode::kDeadlineExceeded, HasSubstr(kNrt)));
  EXPECT_THAT(Asked(), ElementsAre(HasSubstr(kPlacement)));
}

// The Node.

TEST_F(ApiPublisherTest, HandsOnWhenToTryAgain) {
  StartOnNewNode();
  transport_.Then(kube::HttpReply{.status = 429, .retry_after = "3", .body = ""})
      .Then(kube::HttpReply{.status = 503, .retry_after = "", .body = ""});
  EXPECT_EQ(base::RetryAfter(Publish()), seconds(3));
}

TEST_F(ApiPublisherTest, PublishesWithoutAnOwnerUntilTheNodeIsKnown) {
  node_uid_.reset();
  StartOnNewNode();
  Answer({.managed = {kOurs}})
      .Refuse(404, Refusal(404, "NotFound", "not found"))
      .Answer({})
      .Answer({.managed = {kOurStatus}});
  ASSERT_OK(Publish());
  for (const kube::HttpRequest& request : sent_) {
    EXPECT_THAT(request.body, Not(HasSubstr("ownerReferences")));
  }
  EXPECT_FALSE(publisher_->Stale().any());
  node_uid_ = "node-1";
  EXPECT_TRUE(NrtStale() && PlacementStale());
}

TEST_F(ApiPublisherTest, KeepsTheOwnerThatIsThereUntilTheNodeIsKnown) {
  node_uid_.reset();
  Start();
  Answer({.managed = {kOurs},
          .owners = R"({"apiVersion":"v1","kind":"Node","name":"gpu-7","uid":"node-0"})"})
      .Answer({.version = "2", .managed = {kOurs}});
  ASSERT_OK(PublishNrt());
  EXPECT_THAT(Asked(), ElementsAre(HasSubstr("GET"), HasSubstr("PATCH")));
  EXPECT_THAT(sent_[1].body, HasSubstr(R"("uid":"node-0")"));
}

TEST_F(ApiPublisherTest, WritesAnotherOwnerWhenTheNodeWasMadeAnew) {
  PublishFirst();
  node_uid_ = "node-2";
  EXPECT_TRUE(NrtStale() && PlacementStale());
  Answer({.version = "11", .managed = {kOurs}}).Answer({}).Answer({.managed = {kOurStatus}});
  ASSERT_OK(Publish());
  EXPECT_THAT(sent_[0].body, HasSubstr("node-2"));
  EXPECT_THAT(sent_[1].body, HasSubstr("node-2"));
  EXPECT_FALSE(publisher_->Stale().any());
}

TEST_F(ApiPublisherTest, WritesNothingWhileTheNodeIsDeleted) {
  PublishFirst();
  node_uid_.reset();
  transport_.Say(kNrt, WatchLine("ADDED", {.version = "10", .managed = {kOurs}}));
  transport_.Say(kNrt, WatchLine("DELETED", {.version = "11"}));
  EXPECT_FALSE(publisher_->Stale().any());
  EXPECT_THAT(Publish(), StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("gpu-7")));
  EXPECT_THAT(sent_, IsEmpty());
}

// Watches.

TEST_F(ApiPublisherTest, WatchesTheMetadataOfItsOwnObjectsOnly) {
  StartOnNewNode();
  ASSERT_THAT(transport_.watches(), SizeIs(2));
  for (const kube::HttpRequest& watch : transport_.watches()) {
    EXPECT_THAT(watch.target, HasSubstr("?fieldSelector=metadata.name%3Dgpu-7&watch=1"));
    EXPECT_THAT(watch.accept, HasSubstr("as=PartialObjectMetadata;"));
  }
}

TEST_F(ApiPublisherTest, IsStaleWhenAnObjectIsDeleted) {
  PublishFirst();
  transport_.Say(kNrt, WatchLine("ADDED", {.version = "10", .managed = {kOurs}}));
  EXPECT_FALSE(NrtStale());
  transport_.Say(kNrt, WatchLine("DELETED", {.version = "11", .managed = {kOurs}}));
  EXPECT_TRUE(NrtStale());
  EXPECT_FALSE(PlacementStale());
  EXPECT_EQ(pokes_, 1);
  Answer({.version = "12", .managed = {kOurs}, .uid = "object-2"});
  ASSERT_OK(PublishNrt());
  EXPECT_FALSE(NrtStale());
}

TEST_F(ApiPublisherTest, IsStaleWhenSomebodySetsWhatItHadWritten) {
  PublishFirst();
  transport_.Say(kPlacement,
                 WatchLine("ADDED", {.version = "25", .managed = {Managed("kubectl-edit", "{}")}}));
  EXPECT_TRUE(PlacementStale());
  EXPECT_FALSE(NrtStale());
  EXPECT_EQ(pokes_, 1);
}

TEST_F(ApiPublisherTest, TakesItsOwnWritesForNoNewsWhenTheWatchTellsOfThem) {
  PublishFirst();
  const ApiObject ours{.version = "11", .managed = {Managed("plumbline-agent", R"({"f:a":{}})")}};
  transport_.during_request = [&](const kube::HttpRequest&) {
    transport_.Say(kNrt, WatchLine("ADDED", ours));  // before its reply
  };
  Answer(ours);
  ASSERT_OK(PublishNrt());
  transport_.Say(kNrt, WatchLine("MODIFIED", {.version = "9", .managed = {}}));  // an older one
  EXPECT_FALSE(NrtStale());
  EXPECT_EQ(pokes_, 0);
}

TEST_F(ApiPublisherTest, NoticesWhatOthersDoWhileItsOwnWriteIsAnswered) {
  PublishFirst();
  transport_.during_request = [&](const kube::HttpRequest&) {
    transport_.Say(kPlacement, WatchLine("ADDED", {.version = "30", .managed = {}}));
  };
  Answer({.version = "29", .managed = {kOurStatus}});
  ASSERT_OK(PublishPlacement());
  EXPECT_TRUE(PlacementStale());
  EXPECT_EQ(pokes_, 1);
}

TEST_F(ApiPublisherTest, WritesAtOnceTwiceThenEvery30Seconds) {
  PublishFirst();
  for (int i = 0; i < 2; ++i) {
    transport_.Say(kPlacement, WatchLine("MODIFIED", {.version = fmt::format("{}", 30 + 2 * i)}));
    EXPECT_TRUE(PlacementStale());
    Answer({.version = fmt::format("{}", 31 + 2 * i), .managed = {kOurStatus}});
    ASSERT_OK(PublishPlacement());
  }
  transport_.Say(kPlacement, WatchLine("MODIFIED", {.version = "40"}));
  EXPECT_FALSE(PlacementStale());
  clock_.Advance(seconds(30));
  EXPECT_TRUE(PlacementStale());
}

// A definition that is deleted takes the object with it; until it is back no write succeeds.
TEST_F(ApiPublisherTest, TookItsOwnFailedAttemptsForSomebodyWhoDeletesTheObjectAgainAndAgain) {
  PublishFirst();
  for (const char* type : {"ADDED", "DELETED"}) {
    transport_.Say(kNrt, WatchLine(type, {.version = "11", .managed = {kOurs}}));
    transport_.Say(kPlacement, WatchLine(type, {.version = "22", .managed = {kOurStatus}}));
  }
  for (int i = 0; i < 3; ++i) {
    const std::string why = "create not allowed while custom resource definition is terminating";
    Refuse(403, Refusal(403, "Forbidden", why)).Refuse(403, Refusal(403, "Forbidden", why));
    EXPECT_THAT(Publish(), StatusIs(absl::StatusCode::kPermissionDenied, HasSubstr(why)));
    EXPECT_TRUE(NrtStale());
    EXPECT_TRUE(PlacementStale());
  }
  Answer({.version = "30", .managed = {kOurs}, .uid = "object-2"});
  Answer({.version = "31", .managed = {kOurStatus}, .uid = "object-3"});
  ASSERT_OK(Publish());
  EXPECT_EQ(Condition("NRTPublished"), "True Published");
}

// Other writers.

TEST_F(ApiPublisherTest, LeavesTheObjectOfAnotherAloneAndNamesIt) {
  Start();
  Answer({.managed = {kTheirs}});
  ASSERT_OK(PublishNrt());
  EXPECT_THAT(Asked(), ElementsAre(std::string("GET ") + kNrtPath));
  EXPECT_EQ(Condition("NRTPublished"), "False OtherWriter");
  EXPECT_THAT(MessageOf("NRTPublished"), AllOf(HasSubstr(kNfd), HasSubstr("--nrt=always")));
  EXPECT_FALSE(NrtStale());
  ASSERT_OK(PublishNrt());
  EXPECT_THAT(sent_, IsEmpty());
}

TEST_F(ApiPublisherTest, NamesTheNextWhenAnotherTakesTheObject) {
  Start();
  Answer({.managed = {kTheirs}});
  ASSERT_OK(PublishNrt());
  transport_.Say(kNrt, WatchLine("ADDED", {.version = "5", .managed = {Managed("rte", kZones)}}));
  EXPECT_TRUE(NrtStale());
  ASSERT_OK(PublishNrt());
  EXPECT_THAT(sent_, IsEmpty());
  EXPECT_THAT(MessageOf("NRTPublished"), HasSubstr("rte writes it"));
  EXPECT_FALSE(NrtStale());
}

TEST_F(ApiPublisherTest, WritesAgainWhenTheOtherIsGone) {
  Start();
  Answer({.managed = {kTheirs}});
  ASSERT_OK(PublishNrt());
  transport_.Say(kNrt, WatchLine("ADDED", {.version = "5", .managed = {kTheirs}}));
  EXPECT_FALSE(NrtStale());
  transport_.Say(kNrt, WatchLine("DELETED", {.version = "6", .managed = {kTheirs}}));
  EXPECT_TRUE(NrtStale());
  Answer({.version = "7", .managed = {kOurs}, .uid = "object-2"});
  ASSERT_OK(PublishNrt());
  EXPECT_EQ(Condition("NRTPublished"), "True Published");
}

TEST_F(ApiPublisherTest, TakesItsOwnOutWhenAnotherBeginsToWrite) {
  PublishFirst();
  transport_.Say(kNrt, WatchLine("ADDED", {.version = "11", .managed = {kOurs, kTheirs}}));
  EXPECT_TRUE(NrtStale());
  Answer({.version = "12", .managed = {kTheirs}});
  ASSERT_OK(PublishNrt());
  ASSERT_THAT(sent_, SizeIs(1));
  EXPECT_EQ(sent_[0].body, R"({"apiVersion":"topology.node.k8s.io/v1alpha2",)"
                           R"("kind":"NodeResourceTopology","metadata":{"name":"gpu-7"}})");
  EXPECT_EQ(Condition("NRTPublished"), "False OtherWriter");
  EXPECT_FALSE(NrtStale());
}

TEST_F(ApiPublisherTest, LooksAgainAfterAConflictWithOneThatCameMeanwhile) {
  StartOnNewNode();
  Refuse(409, kConflict).Answer({.managed = {kTheirs}});
  ASSERT_OK(PublishNrt());
  EXPECT_THAT(Asked(), ElementsAre(HasSubstr("PATCH"), HasSubstr("GET")));
  EXPECT_EQ(Condition("NRTPublished"), "False OtherWriter");
}

TEST_F(ApiPublisherTest, IsNotKeptAwayByOneThatOwnsOnlyAnAnnotationOfIt) {
  StartOnNewNode();
  Refuse(409, kConflict)
      .Answer({.managed = {Managed("kubectl", R"({"f:metadata":{"f:annotations":{}}})")}})
      .Answer({.version = "2", .managed = {kOurs}});
  ASSERT_OK(PublishNrt());
  ASSERT_THAT(sent_, SizeIs(3));
  EXPECT_THAT(sent_[0].target, Not(HasSubstr("force")));
  EXPECT_THAT(sent_[2].target, HasSubstr("force=true"));
  EXPECT_EQ(Condition("NRTPublished"), "True Published");
}

TEST_F(ApiPublisherTest, TakesAnObjectOverAndRemovesWhatTheOtherLeft) {
  Start(NrtMode::kAlways);
  Answer({.managed = {kTheirs}})
      .Answer({.version = "2", .managed = {kTheirs, kOurs}})
      .Answer({.version = "3", .managed = {kOurs}});
  ASSERT_OK(PublishNrt());
  ASSERT_THAT(sent_, SizeIs(3));
  EXPECT_THAT(sent_[1].target, HasSubstr("force=true"));
  EXPECT_EQ(sent_[2].content_type, "application/merge-patch+json");
  EXPECT_THAT(sent_[2].body, AllOf(HasSubstr(R"("resourceVersion":"2")"), Not(HasSubstr(kNfd)),
                                   HasSubstr(R"("zones":[{"name":"node-0","type":"Node"}])")));
  EXPECT_EQ(Condition("NRTPublished"), "True Published");
  EXPECT_FALSE(NrtStale());
}

TEST_F(ApiPublisherTest, NamesTheOneThatForcesTooAndPacesItself) {
  PublishFirst(NrtMode::kAlways);
  int version = 11;
  const auto flip = [&] {
    transport_.Say(kNrt, WatchLine("MODIFIED", {.version = fmt::format("{}", version++),
                                                .managed = {kTheirs}}));
  };
  for (int i = 0; i < 2; ++i) {
    flip();
    EXPECT_TRUE(NrtStale());
    Answer({.version = fmt::format("{}", version++), .managed = {kTheirs, kOurs}});
    Answer({.version = fmt::format("{}", version++), .managed = {kOurs}});
    ASSERT_OK(PublishNrt());
  }
  EXPECT_EQ(Condition("NRTPublished"), "True Contested");
  EXPECT_THAT(MessageOf("NRTPublished"), HasSubstr(kNfd));
  flip();
  EXPECT_FALSE(NrtStale());
  clock_.Advance(seconds(30));
  EXPECT_TRUE(NrtStale());
  Answer({.version = fmt::format("{}", version++), .managed = {kOurs}});
  ASSERT_OK(PublishNrt());
  clock_.Advance(minutes(10));
  EXPECT_EQ(Condition("NRTPublished"), "True Published");
}

TEST_F(ApiPublisherTest, NeverTouchesTheObjectIfToldSo) {
  PublishFirst(NrtMode::kNever);
  EXPECT_THAT(transport_.watches(), SizeIs(1));
  EXPECT_THAT(Asked(), testing::Each(HasSubstr(kPlacement)));
  EXPECT_EQ(Condition("NRTPublished"), "False SwitchedOff");
}

// Definitions.

TEST_F(ApiPublisherTest, GoesOnWithoutAKindThatIsNotServedAndTriesAgainEachMinute) {
  Start();
  Refuse(404, "404 page not found").Answer({}).Answer({.managed = {kOurStatus}});
  ASSERT_OK(Publish());
  EXPECT_EQ(Condition("NRTPublished"), "False NotServed");
  EXPECT_THAT(MessageOf("NRTPublished"), HasSubstr("v1alpha2"));
  EXPECT_FALSE(NrtStale());
  clock_.Advance(minutes(1));
  EXPECT_TRUE(NrtStale());
}

TEST_F(ApiPublisherTest, FailsAsLongAsItsOwnKindIsNotServed) {
  StartOnNewNode(NrtMode::kNever);
  Refuse(404, "404 page not found");
  EXPECT_THAT(Publish(), StatusIs(absl::StatusCode::kUnimplemented, HasSubstr(kPlacement)));
}

TEST_F(ApiPublisherTest, LeavesOutWhatAnOlderDefinitionLacksAndSaysSo) {
  PublishFirst();
  Refuse(500, Refusal(500, "", "typed patch object: .status.summary: field not declared in schema"))
      .Answer({.version = "22", .managed = {kOurStatus}});
  ASSERT_OK(PublishPlacement());
  ASSERT_THAT(sent_, SizeIs(2));
  EXPECT_THAT(sent_[0].body, HasSubstr("summary"));
  EXPECT_THAT(sent_[1].body, Not(HasSubstr("summary")));
  EXPECT_EQ(Condition("CRDTooOld"), "True FieldsLeftOut");
  EXPECT_THAT(MessageOf("CRDTooOld"), HasSubstr("nodeplacements status.summary"));
  EXPECT_GE(pokes_, 1);

  Answer({.version = "23", .managed = {kOurStatus}});
  ASSERT_OK(PublishPlacement());
  EXPECT_THAT(sent_, SizeIs(1));
}

TEST_F(ApiPublisherTest, WroteAnEmptyObjectWhereADefinitionWasSaidToLackAllOfIt) {
  PublishFirst();
  for (const char* field :
       {".status", ".status.numaNodes", ".metadata.name", ".status.pods[0].uid"}) {
    Refuse(500, Refusal(500, "", std::string(field) + ": field not declared in schema"));
    EXPECT_THAT(PublishPlacement(), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(field)));
    EXPECT_THAT(sent_, SizeIs(1)) << field;
  }
  Refuse(500, Refusal(500, "", ".zones[name=\"node-0\"].type: field not declared in schema"));
  EXPECT_THAT(PublishNrt(), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("type")));
  EXPECT_EQ(Condition("NRTPublished"), "False Refused");
  EXPECT_EQ(Condition("CRDTooOld"), "");
}

TEST_F(ApiPublisherTest, LeftOutWhatItHadNotSent) {
  PublishFirst();
  Refuse(500, Refusal(500, "", "typed patch object: .status.seat: field not declared in schema"));
  EXPECT_THAT(PublishPlacement(), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("seat")));
  EXPECT_THAT(sent_, SizeIs(1));
  EXPECT_EQ(Condition("CRDTooOld"), "");
}

TEST_F(ApiPublisherTest, TriesAllAgainAfterAnHour) {
  PublishFirst();
  Refuse(500, Refusal(500, "", "typed patch object: .status.summary: field not declared in schema"))
      .Answer({.version = "22", .managed = {kOurStatus}});
  ASSERT_OK(PublishPlacement());
  EXPECT_FALSE(PlacementStale());
  clock_.Advance(hours(1));
  EXPECT_TRUE(PlacementStale());
  Answer({.version = "24", .managed = {kOurStatus}});
  ASSERT_OK(PublishPlacement());
  EXPECT_THAT(sent_[0].body, HasSubstr("summary"));
  EXPECT_EQ(Condition("CRDTooOld"), "");
}

TEST_F(ApiPublisherTest, SaysWhatItMayNotWrite) {
  StartOnNewNode();
  Refuse(403, Refusal(403, "Forbidden",
                      R"(User \"x\" cannot patch resource \"noderesourcetopologies\" in API group )"
                      R"(\"topology.node.k8s.io\" at the cluster scope)"));
  EXPECT_THAT(PublishNrt(), StatusIs(absl::StatusCode::kPermissionDenied, HasSubstr("patch")));
  EXPECT_EQ(Condition("NRTPublished"), "False Refused");
  EXPECT_THAT(MessageOf("NRTPublished"),
              HasSubstr("missing permission: patch noderesourcetopologies.topology.node.k8s.io"));
}

TEST_F(ApiPublisherTest, SaysWhatIsTooMuchForOneObject) {
  StartOnNewNode(NrtMode::kNever);
  placement::PlacedPod pod;
  pod.message = std::string(300'000, 'x');
  content_.placement.pods = {pod};
  Answer({}).Answer({.managed = {kOurStatus}});
  ASSERT_OK(Publish());
  EXPECT_EQ(Condition("Truncated"), "True FieldsLeftOut");
  EXPECT_THAT(MessageOf("Truncated"), HasSubstr("pods.message"));
  EXPECT_LT(sent_.back().body.size(), kMostBytes);
}

// What a scheduler predicts by is never left out: half a picture would be a wrong one. The API
// server's store has a limit of its own, and says so.
TEST_F(ApiPublisherTest, WritesWhatIsStillTooMuchAsItIsAndSaysWhenTheStoreDoesNotTakeIt) {
  StartOnNewNode(NrtMode::kNever);
  for (int i = 0; i < 3'000; ++i) {
    content_.placement.devices.push_back({.resource = "example.com/vf",
                                          .id = fmt::format("{:0>100}", i),
                                          .numa_nodes = {},
                                          .pci_address = {},
                                          .pci_numa_node = {}});
  }
  Answer({}).Answer({.managed = {kOurStatus}});
  ASSERT_OK(Publish());
  EXPECT_GT(sent_.back().body.size(), kMostBytes);
  EXPECT_THAT(sent_.back().body, HasSubstr(fmt::format("{:0>100}", 2'999)));
  EXPECT_EQ(Condition("Truncated"), "True StillTooLarge");
  EXPECT_THAT(MessageOf("Truncated"), HasSubstr("it is written as it is"));

  Refuse(500, Refusal(500, "InternalError", "etcdserver: request is too large"));
  EXPECT_THAT(std::string(PublishPlacement().message()), HasSubstr("request is too large"));
}

// Before.

TEST_F(ApiPublisherTest, SaysOfTheObjectWhatWasSaidBeforeUntilItHasWrittenIt) {
  StartOnNewNode();
  transport_.Then(200, R"({"kind":"NodePlacement","metadata":{"name":"gpu-7"},"status":)"
                       R"({"conditions":[{"type":"NRTPublished","status":"True",)"
                       R"("reason":"Published"}]}})");
  ASSERT_OK(publisher_->Former());
  EXPECT_EQ(Condition("NRTPublished"), "True Published");
  transport_.Say(kNrt, WatchLine("ADDED", {.version = "5", .managed = {kTheirs}}));
  ASSERT_OK(PublishNrt());
  EXPECT_EQ(Condition("NRTPublished"), "False OtherWriter");
}

TEST_F(ApiPublisherTest, ReadsWhatWasPublishedBefore) {
  transport_.Then(200, R"({"kind":"NodePlacement","metadata":{"name":"gpu-7"},)"
                       R"("status":{"revision":41}})");
  ASSERT_OK_AND_ASSIGN(const auto published, ReadPublished(client_, "gpu-7"));
  ASSERT_TRUE(published);
  EXPECT_EQ(published->revision, 41);
  EXPECT_EQ(transport_.sent()[0].target, kPlacementPath);
}

TEST_F(ApiPublisherTest, GoesOnFromTheRevisionOfWhatItDoesNotUnderstand) {
  transport_
      .Then(200, R"({"kind":"NodePlacement","metadata":{"name":"gpu-7"},)"
                 R"("status":{"revision":41,"observedAt":"yesterday"}})")
      .Then(200, R"({"kind":"NodePlacement","metadata":{"name":"gpu-7"},)"
                 R"("status":{"revision":"many"}})");
  ASSERT_OK_AND_ASSIGN(const auto published, ReadPublished(client_, "gpu-7"));
  ASSERT_TRUE(published);
  EXPECT_EQ(published->revision, 41);
  EXPECT_EQ(published->observed_at, std::nullopt);
  EXPECT_EQ(ReadPublished(client_, "gpu-7").value()->revision, 0);
}

TEST_F(ApiPublisherTest, TellsThatNothingWasPublishedFromThatItCouldNotBeRead) {
  transport_.Then(404, Refusal(404, "NotFound", "not found"))
      .Then(404, "404 page not found")
      .Then(503, Refusal(503, "ServiceUnavailable", "busy"));
  EXPECT_EQ(ReadPublished(client_, "gpu-7").value(), std::nullopt);
  EXPECT_EQ(ReadPublished(client_, "gpu-7").value(), std::nullopt);
  EXPECT_THAT(ReadPublished(client_, "gpu-7"),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("busy")));
}

}  // namespace
}  // namespace agent
