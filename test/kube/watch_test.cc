// Run under ThreadSanitizer as well.
#include "kube/watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <iostream>
#include <mutex>

#include "kube/http_transport.h"
#include "test/fakes/clock.h"
#include "test/kube/scripted_server.h"
#include "test/kube/watch_lines.h"
#include "test/support/status.h"

namespace kube {
namespace {

using std::chrono::milliseconds;
using test::Answer;
using test::BookmarkLine;
using test::Chunked;
using test::EventLine;
using test::InitialEndLine;
using test::Reply;
using test::StatusReply;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

constexpr auto kHang = Answer::Then::kHang;
constexpr auto kClose = Answer::Then::kClose;
constexpr auto kUnavailable = absl::StatusCode::kUnavailable;

const Selection kPods = {{"", "v1", "pods"}, "", "spec.nodeName=gpu-7"};

std::string Pod(const std::string& name, const std::string& version, const std::string& uid = "u") {
  return R"({"metadata":{"namespace":"ml","name":")" + name + R"(","uid":")" + uid +
         R"(","resourceVersion":")" + version + R"("}})";
}
std::string Added(const std::string& name, const std::string& version) {
  return EventLine("ADDED", Pod(name, version));
}
std::string Expired() {
  return EventLine("ERROR",
                   R"({"kind":"Status","reason":"Expired","message":"too old","code":410})");
}
Answer List(const std::string& items, const std::string& version,
            const std::string& continue_token = "") {
  return Reply(200, R"({"kind":"PodList","metadata":{"resourceVersion":")" + version +
                        R"(","continue":")" + continue_token + R"("},"items":[)" + items + "]}");
}

// What a watch says, in few words: "+a@1", "~a@2", "-a@3", "synced", "lost: why".
class Log {
 public:
  void operator()(const WatchEvent& event) {
    const std::lock_guard lock(mutex_);
    words_.push_back(Word(event));
    changed_.notify_all();
  }
  void Count(absl::StatusCode cause) {
    const std::lock_guard lock(mutex_);
    counted_.push_back(cause);
  }
  std::vector<absl::StatusCode> counted() {
    const std::lock_guard lock(mutex_);
    return counted_;
  }
  // The words once there are so many; fewer after 20 s.
  std::vector<std::string> Await(std::size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::seconds(10), [&] { return words_.size() >= count; });
    return words_;
  }

 private:
  static std::string Word(const WatchEvent& event) {
    const std::string what = event.object.name + "@" + event.object.resource_version;
    switch (event.kind) {
      case WatchEvent::Kind::kAdded:
        return "+" + what;
      case WatchEvent::Kind::kModified:
        return "~" + what;
      case WatchEvent::Kind::kDeleted:
        return "-" + what;
      case WatchEvent::Kind::kSynced:
        return "synced";
      case WatchEvent::Kind::kLost:
        break;
    }
    EXPECT_NE(event.code, absl::StatusCode::kOk);
    return "lost: " + event.reason;
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> words_;
  std::vector<absl::StatusCode> counted_;  // what the client was told of lost watches
};

class WatchTest : public testing::Test {
 protected:
  static WatchOptions Options() {
    WatchOptions options;
    options.selection = kPods;
    options.silence = std::chrono::seconds(60);
    return options;
  }
  std::unique_ptr<Watch> Start(WatchOptions options = Options()) {
    return std::make_unique<Watch>(client_, std::move(options), [this](const WatchEvent& event) {
      clock_.Advance(each_event_takes_);
      log_(event);
    });
  }
  // The parameters of the request of that number, from 1.
  std::string Query(std::size_t number) {
    server_.AwaitRequests(number);
    const std::string target = server_.requests()[number - 1].target;
    return target.substr(target.find("gpu-7&") + 6);
  }

  Log log_;
  test::ScriptedServer server_;
  test::FakeClock clock_;
  milliseconds each_event_takes_{0};
  std::unique_ptr<Transport> transport_ = MakeTransport({.server = server_.url()}, clock_).value();
  Client client_{
      *transport_,
      clock_,
      {.watch_lost = [this](const Resource&, absl::StatusCode cause) { log_.Count(cause); }},
      [] { return 0.0; }};
};

TEST_F(WatchTest, BeginsWithAStreamingListAndGoesOn) {
  server_.Then(Chunked(
      {Added("a", "1"), Added("b", "2"), InitialEndLine("5"), EventLine("MODIFIED", Pod("a", "6")),
       BookmarkLine("7"), EventLine("DELETED", Pod("b", "8"))},
      kHang));
  const auto watch = Start();
  EXPECT_THAT(log_.Await(5), ElementsAre("+a@1", "+b@2", "synced", "~a@6", "-b@8"));
  EXPECT_EQ(Query(1),
            "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&"
            "allowWatchBookmarks=true&timeoutSeconds=300");
}

TEST_F(WatchTest, WatchesTheMetadataAlone) {
  server_.Then(Chunked({Added("a", "1"), InitialEndLine("5")}, kHang));
  WatchOptions options = Options();
  options.selection.metadata_only = true;
  const auto watch = Start(options);
  EXPECT_THAT(log_.Await(2), ElementsAre("+a@1", "synced"));
  EXPECT_EQ(server_.requests()[0].headers.at("accept"),
            "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json");
}

TEST_F(WatchTest, ResumesWhereAStreamEndedInOrder) {
  each_event_takes_ = std::chrono::seconds(5);
  server_.Then(Chunked({Added("a", "1"), InitialEndLine("5"), BookmarkLine("9")}))
      .Then(Chunked({Added("b", "10")}))
      .Then(Chunked({EventLine("DELETED", Pod("a", "11"))}, kHang));
  const auto watch = Start();
  EXPECT_THAT(log_.Await(4), ElementsAre("+a@1", "synced", "+b@10", "-a@11"));
  EXPECT_THAT(Query(2), StartsWith("watch=1&resourceVersion=9&allowWatchBookmarks=true"));
  EXPECT_THAT(Query(3), StartsWith("watch=1&resourceVersion=10&"));
  EXPECT_THAT(clock_.pauses(), testing::IsEmpty());
}

TEST_F(WatchTest, ResumesAfterAStreamWasCutInTheMiddleOfALine) {
  server_.Then(Chunked({InitialEndLine("5"), Added("a", "6").substr(0, 20)}, kClose))
      .Then(Chunked({Added("a", "6")}, kHang));
  const auto watch = Start();
  EXPECT_THAT(log_.Await(4),
              ElementsAre("synced", HasSubstr("closed the connection"), "synced", "+a@6"));
  EXPECT_THAT(Query(2), StartsWith("watch=1&resourceVersion=5&"));
}

TEST_F(WatchTest, DoesNotTakeHalfALineForAnEnd) {
  server_.Then(Chunked({InitialEndLine("5"), Added("a", "6").substr(0, 20)}))
      .Then(Chunked({}, kHang));
  const auto watch = Start();
  EXPECT_THAT(log_.Await(3), ElementsAre("synced", HasSubstr("in the middle of a line"), "synced"));
}

TEST_F(WatchTest, ListsAgainWhenThePlaceIsForgottenAndSaysWhatChangedMeanwhile) {
  server_
      .Then(Chunked({Added("a", "1"), Added("b", "2"), Added("c", "3"), Added("d", "4"),
                     InitialEndLine("5"), Expired()}))
      .Then(Chunked({Added("a", "1"), Added("b", "7"), EventLine("ADDED", Pod("d", "8", "u2")),
                     Added("e", "9"), InitialEndLine("9")},
                    kHang));
  const auto watch = Start();
  EXPECT_THAT(log_.Await(12),
              ElementsAre("+a@1", "+b@2", "+c@3", "+d@4", "synced", HasSubstr("HTTP 410: too old"),
                          "~b@7", "-d@4", "+d@8", "+e@9", "-c@3", "synced"));
}

TEST_F(WatchTest, ListsAgainAfterA410ByHttp) {
  each_event_takes_ = std::chrono::seconds(5);
  server_.Then(Chunked({InitialEndLine("5")}))
      .Then(StatusReply(410, "Expired", "too old"))
      .Then(Chunked({InitialEndLine("9")}, kHang));
  const auto watch = Start();
  EXPECT_THAT(log_.Await(3), ElementsAre("synced", HasSubstr("HTTP 410: too old"), "synced"));
  EXPECT_THAT(Query(3), HasSubstr("sendInitialEvents"));
}

TEST_F(WatchTest, ListsAndWatchesWhereAnOldServerRefusesAStreamingList) {
  server_.Then(StatusReply(422, "Invalid", "sendInitialEvents: Forbidden"))
      .Then(List(Pod("a", "1") + "," + Pod("b", "2"), "5"))
      .Then(Chunked({Added("c", "6"), Expired()}))
      .Then(List(Pod("a", "1"), "9"))
      .Then(Chunked({}, kHang));
  const auto watch = Start();
  EXPECT_THAT(log_.Await(8), ElementsAre("+a@1", "+b@2", "synced", "+c@6", HasSubstr("410"), "-b@2",
                                         "-c@6", "synced"));
  EXPECT_THAT(Query(2), StartsWith("limit=500"));
  EXPECT_THAT(Query(3), StartsWith("watch=1&resourceVersion=5&"));
  EXPECT_THAT(Query(4), StartsWith("limit=500"));
}

// Kubernetes 1.19 to 1.26 know no sendInitialEvents and pass over it, but refuse what comes with
// it.
TEST_F(WatchTest, GoesOnFromTheListsPlaceWhereAnOldServerListsInPages) {
  each_event_takes_ = std::chrono::seconds(5);
  server_
      .Then(StatusReply(422, "Invalid",
                        "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden for "
                        "watch"))
      .Then(List(Pod("a", "1") + "," + Pod("b", "2"), "5", "next"))
      .Then(List(Pod("c", "3"), "5"))
      .Then(Chunked({EventLine("DELETED", Pod("a", "6")), EventLine("MODIFIED", Pod("c", "7")),
                     BookmarkLine("9")}))
      .Then(StatusReply(410, "Expired", "too old"))
      .Then(List(Pod("c", "7"), "12", "next"))
      .Then(List(Pod("d", "11"), "12"))
      .Then(Chunked({Added("e", "13")}, kHang));
  const auto watch = Start();
  EXPECT_THAT(log_.Await(11), ElementsAre("+a@1", "+b@2", "+c@3", "synced", "-a@6", "~c@7",
                                          HasSubstr("410"), "+d@11", "-b@2", "synced", "+e@13"));
  EXPECT_THAT(Query(1), HasSubstr("sendInitialEvents"));
  EXPECT_EQ(Query(2), "limit=500");  // of no version: the newest
  EXPECT_EQ(Query(3), "limit=500&continue=next");
  EXPECT_EQ(Query(4), "watch=1&resourceVersion=5&allowWatchBookmarks=true&timeoutSeconds=300");
  EXPECT_THAT(Query(5), StartsWith("watch=1&resourceVersion=9&"));
  EXPECT_EQ(Query(6), "limit=500");  // a streaming list is not tried again
  EXPECT_THAT(Query(8), StartsWith("watch=1&resourceVersion=12&"));
  EXPECT_THAT(clock_.pauses(), ElementsAre(milliseconds(250)));  // after the 410 alone
}

TEST_F(WatchTest, HandsAPageOfAListOnBeforeItAsksForTheNext) {
  server_.Then(StatusReply(422, "Invalid", "sendInitialEvents: Forbidden"))
      .Then(List(Pod("a", "1"), "5", "next"))
      .Then(StatusReply(410, "Expired", "too old"))
      .Then(List(Pod("a", "1"), "9", "next"))
      .Then(List(Pod("b", "2"), "9"))
      .Then(Chunked({}, kHang));
  const auto watch = Start();
  EXPECT_THAT(log_.Await(4), ElementsAre("+a@1", HasSubstr("410: too old"), "+b@2", "synced"));
  EXPECT_EQ(Query(3), "limit=500&continue=next");
  EXPECT_EQ(Query(4), "limit=500");
  EXPECT_THAT(Query(6), StartsWith("watch=1&resourceVersion=9&"));
}

TEST_F(WatchTest, ListsAndWatchesWhereTheStorageHasNoStreamingLists) {  // etcd before 3.4.31
  server_
      .Then(
          Chunked({EventLine("ERROR", R"({"kind":"Status","message":"the required storage feature )"
                                      R"(RequestWatchProgress is disabled","code":500})")}))
      .Then(List(Pod("a", "1"), "5"))
      .Then(Chunked({Added("b", "6")}, kHang));
  const auto watch = Start();
  EXPECT_THAT(log_.Await(3), ElementsAre("+a@1", "synced", "+b@6"));
}

TEST_F(WatchTest, KeepsWhatItHadWhenAListEndsBeforeItIsComplete) {
  server_.Then(Chunked({Added("a", "1"), Added("b", "2"), InitialEndLine("5"), Expired()}))
      .Then(Chunked({Added("a", "1")}))
      .Then(Chunked({Added("a", "1"), Added("b", "2"), InitialEndLine("9")}, kHang));
  const auto watch = Start();
  EXPECT_THAT(log_.Await(6), ElementsAre("+a@1", "+b@2", "synced", HasSubstr("410"),
                                         HasSubstr("before it was complete"), "synced"));
}

TEST_F(WatchTest, ListsAgainAfterALineThatIsNoJson) {
  server_.Then(Chunked({InitialEndLine("5"), "<html>\n"}, kHang))
      .Then(Chunked({Added("a", "6"), InitialEndLine("6")}, kHang));
  const auto watch = Start();
  EXPECT_THAT(log_.Await(4),
              ElementsAre("synced", HasSubstr("no watch event: is no JSON"), "+a@6", "synced"));
}

TEST_F(WatchTest, ListsAgainAfterALineThatIsTooLong) {
  WatchOptions options = Options();
  options.max_line_bytes = 200;
  server_.Then(Chunked({InitialEndLine("5"), std::string(201, 'x')}, kHang))
      .Then(Chunked({InitialEndLine("6")}, kHang));
  const auto watch = Start(options);
  EXPECT_THAT(log_.Await(3), ElementsAre("synced", HasSubstr("longer than 200 bytes"), "synced"));
  EXPECT_THAT(Query(2), HasSubstr("sendInitialEvents"));
}

TEST_F(WatchTest, FindsAHalfOpenConnection) {
  WatchOptions options = Options();
  options.silence = milliseconds(200);
  server_.Then(Chunked({InitialEndLine("5")}, kHang)).Then(Chunked({Added("a", "6")}, kHang));
  const auto watch = Start(options);
  EXPECT_THAT(log_.Await(4),
              ElementsAre("synced", HasSubstr("no answer in time"), "synced", "+a@6"));
  EXPECT_THAT(Query(2), StartsWith("watch=1&resourceVersion=5&"));
}

TEST_F(WatchTest, SaysALossOnceAndTriesAgainWithPausesThatGrow) {
  server_.Then(StatusReply(503, "x", "down"))
      .Then(StatusReply(503, "x", "down"))
      .Then(StatusReply(403, "Forbidden",
                        R"(User \"u\" cannot watch resource \"pods\" in API group \"\" at)"))
      .Then(Chunked({InitialEndLine("5")}, kHang));
  const auto watch = Start();
  EXPECT_THAT(log_.Await(3),
              ElementsAre("lost: watch pods with spec.nodeName=gpu-7: HTTP 503: down",
                          HasSubstr("missing permission: watch pods"), "synced"));
  EXPECT_THAT(clock_.pauses(),
              ElementsAre(milliseconds(250), milliseconds(500), milliseconds(1'000)));
  EXPECT_THAT(log_.counted(), ElementsAre(kUnavailable, absl::StatusCode::kPermissionDenied));
}

TEST_F(WatchTest, CountsAPlaceThatIsForgottenOnceAlsoIfTheListThatFollowsIsForgottenToo) {
  server_.Then(StatusReply(422, "Invalid", "sendInitialEvents: Forbidden"))
      .Then(List(Pod("a", "1"), "5"))
      .Then(StatusReply(410, "Expired", "too old"))  // the watch
      .Then(List(Pod("a", "1"), "9", "next"))
      .Then(StatusReply(410, "Expired", "too old"))  // the list's second page
      .Then(List(Pod("a", "1"), "10"))
      .Then(StatusReply(410, "Expired", "too old"))  // another loss
      .Then(List(Pod("a", "1"), "11"))
      .Then(Chunked({}, kHang));
  const auto watch = Start();
  EXPECT_THAT(log_.Await(7),
              ElementsAre("+a@1", "synced", StartsWith("lost: watch"), StartsWith("lost: list"),
                          "synced", StartsWith("lost: watch"), "synced"));
  EXPECT_THAT(log_.counted(),
              ElementsAre(absl::StatusCode::kOutOfRange, absl::StatusCode::kOutOfRange));
}

TEST_F(WatchTest, ListsEverMoreSeldomWhereThePlaceIsForgottenEachTime) {
  server_.Then(StatusReply(422, "Invalid", "sendInitialEvents: Forbidden"));
  for (int i = 0; i < 3; ++i) {
    server_.Then(List(Pod("a", "1"), "5")).Then(StatusReply(410, "Expired", "too old"));
  }
  server_.Then(List(Pod("a", "1"), "5")).Then(Chunked({Added("b", "6")}, kHang));
  const auto watch = Start();
  log_.Await(9);
  EXPECT_THAT(clock_.pauses(),
              ElementsAre(milliseconds(250), milliseconds(500), milliseconds(1'000)));
}

TEST_F(WatchTest, DoesNotAskWithoutEndWhereTheServerEndsEachStreamAfterALine) {
  server_.Then(Chunked({InitialEndLine("5")}))
      .Then(Chunked({Added("a", "6")}))
      .Then(Chunked({BookmarkLine("7")}))
      .Then(Chunked({Added("b", "8")}, kHang));
  const auto watch = Start();
  const auto brief = HasSubstr("the server ended it within 5 s");
  EXPECT_THAT(log_.Await(9), ElementsAre("synced", brief, "synced", "+a@6", brief, "synced", brief,
                                         "synced", "+b@8"));
  EXPECT_THAT(Query(4), StartsWith("watch=1&resourceVersion=7&"));
  EXPECT_THAT(clock_.pauses(),
              ElementsAre(milliseconds(250), milliseconds(500), milliseconds(1'000)));
}

TEST_F(WatchTest, BeginsWithAShortPauseAgainAfterAStreamThatLasted) {
  server_.Then(StatusReply(503, "x", "down"))
      .Then(StatusReply(503, "x", "down"))
      .Then(Chunked({InitialEndLine("5")}, kHang));
  const auto watch = Start();
  log_.Await(2);
  EXPECT_THAT(clock_.pauses(), ElementsAre(milliseconds(250), milliseconds(500)));
  clock_.Advance(std::chrono::minutes(1));
  server_.CutAll();
  server_.Then(Chunked({}, kHang));
  log_.Await(4);
  EXPECT_THAT(clock_.pauses(),
              ElementsAre(milliseconds(250), milliseconds(500), milliseconds(250)));
}

TEST_F(WatchTest, TriesAgainSeldomAfterARefusalIfItsUserCanDoWithout) {
  server_.Then(StatusReply(403, "Forbidden", "no"))
      .Then(Reply(404, "404 page not found"))
      .Then(StatusReply(503, "x", "down"))
      .Then(Chunked({InitialEndLine("5")}, kHang));
  WatchOptions options = Options();
  options.refused_pause = std::chrono::minutes(10);
  const auto watch = Start(options);
  EXPECT_THAT(log_.Await(4),
              ElementsAre(HasSubstr("403"), HasSubstr("404"), HasSubstr("503"), "synced"));
  EXPECT_THAT(clock_.pauses(),
              ElementsAre(std::chrono::minutes(10), std::chrono::minutes(10), milliseconds(1'000)));
}

TEST_F(WatchTest, TriesOlderVersionsOfAKindThatIsNotServed) {
  server_.Then(Reply(404, "404 page not found"))
      .Then(Reply(404, "404 page not found"))
      .Then(Reply(404, "404 page not found"))
      .Then(Reply(404, "404 page not found"))
      .Then(Chunked({InitialEndLine("5")}, kHang));
  WatchOptions options = Options();
  options.selection.resource = {"resource.k8s.io", "v1", "resourceslices"};
  options.older_versions = {"v1beta2", "v1beta1"};
  const auto watch = Start(options);
  EXPECT_THAT(log_.Await(2), ElementsAre(HasSubstr("HTTP 404"), "synced"));
  std::vector<std::string> versions;
  for (const test::Seen& seen : server_.requests()) {
    versions.push_back(seen.target.substr(22, seen.target.find("/resourceslices") - 22));
  }
  EXPECT_THAT(versions, ElementsAre("v1", "v1beta2", "v1beta1", "v1", "v1beta2"));
}

TEST_F(WatchTest, WaitsAsLongAsABusyServerAsksAndKeepsItsPlace) {
  each_event_takes_ = std::chrono::seconds(5);
  server_.Then(Chunked({InitialEndLine("5")}))
      .Then(StatusReply(429, "TooManyRequests", "busy", "{}", "Retry-After: 2\r\n"))
      .Then(Chunked({Added("a", "6")}, kHang));
  const auto watch = Start();
  EXPECT_THAT(log_.Await(4), ElementsAre("synced", HasSubstr("429"), "synced", "+a@6"));
  EXPECT_THAT(Query(3), StartsWith("watch=1&resourceVersion=5&"));
  EXPECT_THAT(clock_.pauses(), ElementsAre(milliseconds(2'000)));
}

TEST_F(WatchTest, StopsAtOnceWhileItWaits) {
  server_.Then(Chunked({InitialEndLine("5")}, kHang));
  auto watch = Start();
  log_.Await(1);
  watch.reset();  // returns long before the silence of a minute is over
  EXPECT_THAT(log_.Await(1), ElementsAre("synced"));
}

}  // namespace
}  // namespace kube
