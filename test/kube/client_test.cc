#include "kube/client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kube/http_transport.h"
#include "test/fakes/clock.h"
#include "test/kube/scripted_server.h"
#include "test/support/status.h"

namespace kube {
namespace {

using std::chrono::milliseconds;
using test::Answer;
using test::Reply;
using test::StatusIs;
using test::StatusReply;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const Resource kPlacements = {"plumbline.dev", "v1alpha1", "nodeplacements"};
const ObjectName kPlacement = {kPlacements, "", "gpu-7"};
const ObjectName kStatus = {kPlacements, "", "gpu-7", "status"};
const Selection kPods = {{"", "v1", "pods"}, "", "spec.nodeName=gpu-7"};

// The least that an object's reply is.
std::string Placement(const std::string& version) {
  return R"({"metadata":{"name":"gpu-7","resourceVersion":")" + version + R"("}})";
}
std::string Pods(const std::string& names, const std::string& continue_token = "") {
  std::string items;
  for (const char name : names) {
    items += std::string(items.empty() ? "" : ",") + R"({"metadata":{"name":")" + name + R"("}})";
  }
  return R"({"kind":"PodList","metadata":{"resourceVersion":"5","continue":")" + continue_token +
         R"("},"items":[)" + items + "]}";
}

class ClientTest : public testing::Test {
 protected:
  static ClientOptions Options() {
    ClientOptions options;
    options.page_size = 2;
    return options;
  }

  test::ScriptedServer server_;
  test::FakeClock clock_;
  std::unique_ptr<Transport> transport_ = MakeTransport({.server = server_.url()}, clock_).value();
  Client client_{*transport_, clock_, Options(), [] { return 0.0; }};
};

TEST_F(ClientTest, GetsAnObject) {
  server_.Then(Reply(200, Placement("7")));
  EXPECT_EQ(client_.Get(kPlacement).value().resource_version, "7");
  EXPECT_EQ(server_.requests()[0].target, "/apis/plumbline.dev/v1alpha1/nodeplacements/gpu-7");
}

TEST_F(ClientTest, AppliesWithItsFieldManager) {
  server_.Then(Reply(201, Placement("7"))).Then(Reply(200, Placement("8")));
  ASSERT_OK(client_.Apply(kPlacement, "{}", {.field_manager = "plumb/line"}));
  ASSERT_OK(client_.Apply(kStatus, R"({"a":1})", {.field_manager = "p", .force = true}));
  const auto seen = server_.requests();
  EXPECT_EQ(seen[0].method, "PATCH");
  EXPECT_THAT(seen[0].target, testing::EndsWith("nodeplacements/gpu-7?fieldManager=plumb%2Fline"));
  EXPECT_EQ(seen[0].headers.at("content-type"), "application/apply-patch+yaml");
  EXPECT_THAT(seen[1].target, testing::EndsWith("gpu-7/status?fieldManager=p&force=true"));
  EXPECT_EQ(seen[1].body, R"({"a":1})");
}

constexpr char kMetadata[] =
    "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json";

TEST_F(ClientTest, AsksForTheMetadataAlone) {
  server_.Then(Reply(200, Placement("7")))
      .Then(Reply(200, Placement("8")))
      .Then(Reply(200, R"({"kind":"PartialObjectMetadataList","metadata":{"resourceVersion":"5"},)"
                       R"("items":[{"metadata":{"name":"a"}}]})"));
  ASSERT_OK(client_.GetMetadata(kPlacement));
  ASSERT_OK(client_.Apply(kPlacement, "{}", {.field_manager = "p", .metadata_only = true}));
  Selection pods = kPods;
  pods.metadata_only = true;
  ASSERT_OK_AND_ASSIGN(const ObjectList list, client_.List(pods));
  EXPECT_EQ(list.items.size(), 1U);
  const auto seen = server_.requests();
  EXPECT_EQ(seen[0].headers.at("accept"), kMetadata);
  EXPECT_EQ(seen[1].headers.at("accept"), kMetadata);
  EXPECT_EQ(seen[2].headers.at("accept"),
            "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json");
}

TEST_F(ClientTest, MergesCreatesAndDeletes) {
  server_.Then(Reply(200, Placement("7"))).Then(Reply(201, Placement("1"))).Then(Reply(200, "{}"));
  ASSERT_OK(client_.MergePatch(kPlacement, "{}", "m"));
  ASSERT_OK(client_.Create({"", "v1", "events"}, "ml", "{}"));
  ASSERT_OK(client_.Delete(kPlacement, "u-1"));
  const auto seen = server_.requests();
  EXPECT_EQ(seen[0].headers.at("content-type"), "application/merge-patch+json");
  EXPECT_EQ(seen[1].method + " " + seen[1].target, "POST /api/v1/namespaces/ml/events");
  EXPECT_EQ(seen[2].method, "DELETE");
  EXPECT_THAT(seen[2].body, HasSubstr(R"("preconditions":{"uid":"u-1"})"));
}

TEST_F(ClientTest, ListsPageByPage) {
  server_.Then(Reply(200, Pods("ab", "x/y"))).Then(Reply(200, Pods("c")));
  ASSERT_OK_AND_ASSIGN(const ObjectList list, client_.List(kPods));
  EXPECT_EQ(list.items.size(), 3U);
  EXPECT_EQ(list.resource_version, "5");
  EXPECT_EQ(server_.requests()[0].target,
            "/api/v1/pods?fieldSelector=spec.nodeName%3Dgpu-7&limit=2");
  EXPECT_THAT(server_.requests()[1].target, testing::EndsWith("&limit=2&continue=x%2Fy"));
}

TEST_F(ClientTest, StartsAListOverWhereTheServerForgotThePlace) {
  server_.Then(Reply(200, Pods("ab", "x")))
      .Then(StatusReply(410, "Expired", "too old"))
      .Then(Reply(200, Pods("bc", "y")))
      .Then(Reply(200, Pods("d")));
  EXPECT_EQ(client_.List(kPods).value().items.size(), 3U);
}

TEST_F(ClientTest, GivesUpAListThatIsForgottenEachTime) {
  for (int i = 0; i < 4; ++i) {
    server_.Then(Reply(200, Pods("ab", "x"))).Then(StatusReply(410, "Expired", "too old"));
  }
  EXPECT_EQ(client_.List(kPods).status().code(), absl::StatusCode::kOutOfRange);
}

TEST_F(ClientTest, BoundsAListOverAllItsPages) {
  ClientOptions options = Options();
  options.max_list_bytes = 150;
  Client client(*transport_, clock_, options);
  server_.Then(Reply(200, Pods("ab", "x"))).Then(Reply(200, Pods("cd", "y")));
  EXPECT_EQ(client.List(kPods).status().code(), absl::StatusCode::kResourceExhausted);
}

TEST_F(ClientTest, EndsAListOfPagesOfNothingWithoutEnd) {
  ClientOptions options = Options();
  options.max_list_bytes = 150;
  Client client(*transport_, clock_, options);
  for (int i = 0; i < 3; ++i) server_.Then(Reply(200, Pods("", "x")));
  EXPECT_EQ(client.List(kPods).status().code(), absl::StatusCode::kResourceExhausted);
}

TEST_F(ClientTest, TakesAPageOfSomethingElseForNoList) {
  server_.Then(Reply(200, "<html>")).Then(Reply(200, "{}"));
  EXPECT_THAT(
      client_.List(kPods),
      StatusIs(absl::StatusCode::kInternal,
               HasSubstr("list pods with spec.nodeName=gpu-7: what the server sent is no JSON")));
  EXPECT_EQ(client_.Get(kPlacement).status().code(), absl::StatusCode::kInternal);
}

TEST_F(ClientTest, TriesAgainWithPausesThatGrow) {
  server_.Then(StatusReply(500, "InternalError", "x"))
      .Then(StatusReply(409, "Conflict", "the object has been modified"))
      .Then(Reply(502, "<html>bad gateway</html>"))
      .Then(Reply(200, Placement("7")));
  ASSERT_OK(client_.Apply(kPlacement, "{}", {.field_manager = "p"}));
  EXPECT_THAT(clock_.pauses(),
              ElementsAre(milliseconds(100), milliseconds(200), milliseconds(400)));
}

TEST_F(ClientTest, GivesUpAfterItsAttempts) {
  for (int i = 0; i < 4; ++i) server_.Then(StatusReply(503, "ServiceUnavailable", "down"));
  EXPECT_THAT(client_.Get(kPlacement),
              StatusIs(absl::StatusCode::kUnavailable,
                       "get nodeplacements.plumbline.dev gpu-7: HTTP 503: down"));
  EXPECT_EQ(server_.requests().size(), 4U);
}

TEST_F(ClientTest, WaitsAsLongAsTheServerAsksUpToALimit) {
  server_.Then(StatusReply(429, "TooManyRequests", "x", "{}", "Retry-After: 3\r\n"))
      .Then(StatusReply(503, "x", "x", R"({"retryAfterSeconds":86400})"))
      .Then(Reply(200, Placement("7")));
  ASSERT_OK(client_.Get(kPlacement));
  EXPECT_THAT(clock_.pauses(), ElementsAre(milliseconds(3'000), milliseconds(30'000)));
}

TEST_F(ClientTest, AsksOnceMoreAfterA401) {
  server_.Then(StatusReply(401, "Unauthorized", "Unauthorized")).Then(Reply(200, Placement("7")));
  ASSERT_OK(client_.Get(kPlacement));
  server_.Then(StatusReply(401, "Unauthorized", "x")).Then(StatusReply(401, "Unauthorized", "x"));
  EXPECT_EQ(client_.Get(kPlacement).status().code(), absl::StatusCode::kUnauthenticated);
  EXPECT_EQ(server_.requests().size(), 4U);
  EXPECT_THAT(clock_.pauses(), IsEmpty());
}

TEST_F(ClientTest, DoesNotRepeatWhatWasDecided) {
  const char* conflict = R"({"causes":[{"reason":"FieldManagerConflict","field":".zones"}]})";
  for (const Answer& answer :
       {StatusReply(403, "Forbidden", "x"),
        StatusReply(404, "NotFound", "x", R"({"name":"gpu-7"})"),
        StatusReply(409, "Conflict", "x", conflict), StatusReply(422, "Invalid", "x"),
        Reply(302, "", "Location: /elsewhere\r\n")}) {
    server_.Then(answer);
    EXPECT_FALSE(client_.Apply(kPlacement, "{}", {.field_manager = "p"}).ok());
  }
  EXPECT_EQ(server_.requests().size(), 5U);
}

TEST_F(ClientTest, RepeatsACreateOnlyWhereItWasSurelyNotCarriedOut) {
  const auto create = [this] { return client_.Create({"", "v1", "events"}, "ml", "{}").status(); };
  server_.Then(StatusReply(429, "TooManyRequests", "x")).Then(Reply(201, Placement("1")));
  EXPECT_OK(create());
  server_.Then(StatusReply(500, "InternalError", "x"));
  EXPECT_EQ(create().code(), absl::StatusCode::kInternal);
  server_.Then(StatusReply(503, "x", "x"));
  EXPECT_EQ(create().code(), absl::StatusCode::kUnavailable);
  server_.Then({{}, Answer::Then::kClose});
  EXPECT_EQ(create().code(), absl::StatusCode::kUnknown);
  EXPECT_EQ(server_.requests().size(), 5U);
}

TEST_F(ClientTest, SaysWhatItTriedWhenItWasStopped) {
  std::stop_source stop;
  stop.request_stop();
  EXPECT_THAT(client_.Get(kPlacement, stop.get_token()),
              StatusIs(absl::StatusCode::kCancelled,
                       AllOf(HasSubstr("get nodeplacements"), HasSubstr("stopped"))));
}

TEST(Backoff, GrowsToALimitAndIsByChanceInItsSecondHalf) {
  double chance = 0;
  Backoff backoff(milliseconds(100), milliseconds(300), [&chance] { return chance; });
  EXPECT_EQ(backoff.Next(), milliseconds(50));
  chance = 0.999;
  EXPECT_EQ(backoff.Next(), milliseconds(199));
  EXPECT_EQ(backoff.Next(), milliseconds(299));
  EXPECT_EQ(backoff.Next(), milliseconds(299));
  backoff.Reset();
  EXPECT_EQ(backoff.Next(), milliseconds(99));
}

TEST(SystemRandom, IsAtLeast0AndLessThan1) {
  const Random random = SystemRandom();
  for (int i = 0; i < 1000; ++i) EXPECT_THAT(random(), AllOf(testing::Ge(0.0), testing::Lt(1.0)));
}

}  // namespace
}  // namespace kube
