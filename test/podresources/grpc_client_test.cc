#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "demo/fake_kubelet.h"
#include "podresources/client.h"
#include "test/fakes/clock.h"
#include "test/podresources/raw_server.h"
#include "test/support/status.h"
#include "test/support/temp_tree.h"

// Over the real wire: a gRPC server on a unix socket.
namespace podresources {
namespace {

using absl::StatusCode;
using demo::FakeKubelet;
using demo::Method;
using std::chrono::milliseconds;
using test::RawServer;
using test::StatusIs;
using testing::AllOf;
using testing::ElementsAre;
using testing::Field;
using testing::Ge;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Le;
using testing::SizeIs;

constexpr char kReplies[] = R"({
  "list": {"podResources": [
    {"namespace": "ml", "name": "llm-0", "containers": [{"name": "server", "cpuIds": ["2", "3"],
      "devices": [{"resourceName": "nvidia.com/gpu", "deviceIds": ["GPU-a"],
                   "topology": {"nodes": [{}]}}]}]}]},
  "allocatable": {"cpuIds": ["1", "2", "3"]}})";

class GrpcClientTest : public testing::Test {
 protected:
  GrpcClientTest() : kubelet_(Socket()) {
    kubelet_.Serve(kReplies);
    options_.socket = Socket();
  }
  std::string Socket() const { return tree_.Path("kubelet.sock"); }
  Client& client() {
    if (client_ == nullptr) client_ = Connect(options_, clock_);
    return *client_;
  }

  test::TempTree tree_;
  FakeKubelet kubelet_;
  test::FakeClock clock_;
  ConnectOptions options_;

 private:
  std::unique_ptr<Client> client_;
};

TEST_F(GrpcClientTest, ReadsWhatIsAssignedAndWhatIsAllocatable) {
  ASSERT_OK(kubelet_.Start());
  ASSERT_OK_AND_ASSIGN(const Assignments read, client().Read());
  ASSERT_THAT(read.pods, SizeIs(1));
  EXPECT_EQ(read.pods[0].name, "llm-0");
  EXPECT_EQ(read.pods[0].containers[0].cpus, base::CpuSet({2, 3}));
  EXPECT_THAT(read.pods[0].containers[0].devices,
              ElementsAre(Device{"nvidia.com/gpu", "GPU-a", {0}, false}));
  ASSERT_TRUE(read.allocatable);
  EXPECT_EQ(read.allocatable->cpus, base::CpuSet({1, 2, 3}));
  EXPECT_THAT(read.diagnostics, IsEmpty());
}

TEST_F(GrpcClientTest, TakesAnEmptyListForAnAnswer) {
  kubelet_.Serve(R"({"list": {}, "allocatable": {}})");
  ASSERT_OK(kubelet_.Start());
  ASSERT_OK_AND_ASSIGN(const Assignments read, client().Read());
  EXPECT_THAT(read.pods, IsEmpty());
}

TEST_F(GrpcClientTest, TakesRepliesAboveTheUsualLimitOfGrpc) {
  const std::string name(5 << 20, 'n');
  kubelet_.Serve(R"({"list": {"podResources": [{"name": ")" + name + R"("}]}, "allocatable": {}})");
  ASSERT_OK(kubelet_.Start());
  ASSERT_OK_AND_ASSIGN(const Assignments read, client().Read());
  EXPECT_THAT(read.pods, ElementsAre(Field(&Pod::name, SizeIs(5 << 20))));
}

TEST_F(GrpcClientTest, CallsAReplyAboveItsLimitOutOfRangeAndDoesNotAskAgain) {
  options_.max_message_bytes = 16;
  ASSERT_OK(kubelet_.Start());
  EXPECT_THAT(client().Read(), StatusIs(StatusCode::kOutOfRange, HasSubstr("above the limit")));
  EXPECT_EQ(kubelet_.Calls(Method::kList), 1);
}

TEST_F(GrpcClientTest, GivesUpAtTheDeadlineAndDoesNotAskAgain) {
  options_.deadline = milliseconds(50);
  ASSERT_OK(kubelet_.Start());
  kubelet_.Hold();
  EXPECT_THAT(client().Read(),
              StatusIs(StatusCode::kUnavailable, HasSubstr("no answer within 50 ms")));
  EXPECT_EQ(kubelet_.Calls(Method::kList), 1);
  kubelet_.Release();
}

TEST_F(GrpcClientTest, AsksAfterTheDeadlineAsIfNothingHadBeen) {
  options_.deadline = milliseconds(200);
  ASSERT_OK(kubelet_.Start());
  kubelet_.Hold();
  EXPECT_THAT(client().Read(), StatusIs(StatusCode::kUnavailable, HasSubstr("no answer")));
  kubelet_.Release();
  options_.deadline = milliseconds(10'000);
  EXPECT_OK(Connect(options_, clock_)->Read());
}

// The kubelet lets 10 calls through at once, and 100 a second over all clients of the node.
TEST_F(GrpcClientTest, BacksOffFromTheRateLimitAndKeepsItsMeaning) {
  ASSERT_OK(kubelet_.Start());
  kubelet_.LimitTo(10);
  for (int i = 0; i < 5; ++i) ASSERT_OK(client().Read());
  EXPECT_THAT(client().Read(),
              StatusIs(StatusCode::kResourceExhausted, HasSubstr("rejected by rate limit")));
  EXPECT_EQ(kubelet_.Calls(Method::kList), 5 + 3);
  EXPECT_THAT(clock_.pauses(), ElementsAre(AllOf(Ge(milliseconds(100)), Le(milliseconds(300))),
                                           AllOf(Ge(milliseconds(400)), Le(milliseconds(1200)))));
  kubelet_.LimitTo(-1);
  EXPECT_OK(client().Read());
}

TEST_F(GrpcClientTest, ReadsWhenTheRateLimitIsOverInTime) {
  ASSERT_OK(kubelet_.Start());
  kubelet_.Fail(Method::kGetAllocatableResources, 2,
                absl::ResourceExhaustedError("rejected by rate limit"));
  ASSERT_OK_AND_ASSIGN(const Assignments read, client().Read());
  EXPECT_TRUE(read.allocatable);
  EXPECT_EQ(kubelet_.Calls(Method::kGetAllocatableResources), 3);
  EXPECT_EQ(kubelet_.Calls(Method::kList), 1);
}

TEST_F(GrpcClientTest, DoesWithoutAllocatableWhereTheKubeletDoesNotHaveIt) {
  ASSERT_OK(kubelet_.Start());
  // 1.20 does not know the call, 1.21 and 1.22 have it behind a gate.
  for (const absl::Status& old :
       {absl::UnimplementedError("unknown method GetAllocatableResources for service "
                                 "v1.PodResourcesLister"),
        absl::UnknownError("Pod Resources API GetAllocatableResources disabled")}) {
    kubelet_.Fail(Method::kGetAllocatableResources, 1, old);
    ASSERT_OK_AND_ASSIGN(const Assignments read, client().Read());
    EXPECT_THAT(read.pods, SizeIs(1));
    EXPECT_EQ(read.allocatable, std::nullopt);
    EXPECT_THAT(read.diagnostics,
                ElementsAre(Field(&base::Diagnostic::code, "AllocatableUnavailable")));
  }
}

TEST_F(GrpcClientTest, FailsWholeWhenAllocatableFailsForAnotherReason) {
  ASSERT_OK(kubelet_.Start());
  kubelet_.Fail(Method::kGetAllocatableResources, 1, absl::UnknownError("provider broke"));
  EXPECT_THAT(client().Read(), StatusIs(StatusCode::kUnavailable, HasSubstr("provider broke")));
}

TEST_F(GrpcClientTest, SaysThatAKubeletIsTooOld) {
  ASSERT_OK(kubelet_.Start());
  kubelet_.Fail(Method::kList, 1,
                absl::UnimplementedError("unknown service v1.PodResourcesLister"));
  EXPECT_THAT(client().Read(), StatusIs(StatusCode::kUnimplemented, HasSubstr("older than 1.20")));
}

TEST_F(GrpcClientTest, GetsOnePod) {
  ASSERT_OK(kubelet_.Start());
  ASSERT_OK_AND_ASSIGN(const Pod pod, client().Get("ml", "llm-0"));
  EXPECT_EQ(pod.containers[0].cpus, base::CpuSet({2, 3}));
}

TEST_F(GrpcClientTest, TellsAPodThatIsNotThereFromACallThatIsSwitchedOff) {
  ASSERT_OK(kubelet_.Start());
  EXPECT_THAT(client().Get("ml", "nope"),
              StatusIs(StatusCode::kNotFound, HasSubstr("pod nope in namespace ml not found")));
  kubelet_.Fail(Method::kGet, 1, absl::UnknownError("PodResources API Get method disabled"));
  EXPECT_THAT(client().Get("ml", "llm-0"),
              StatusIs(StatusCode::kUnimplemented, HasSubstr("disabled")));
  kubelet_.Fail(Method::kGet, 1, absl::UnimplementedError("unknown method Get"));
  EXPECT_THAT(client().Get("ml", "llm-0"),
              StatusIs(StatusCode::kUnimplemented, HasSubstr("unknown method")));
  EXPECT_OK(client().Get("ml", "llm-0"));
}

TEST_F(GrpcClientTest, DoesNotTakeListsNotFoundForAHostWithoutAKubelet) {
  ASSERT_OK(kubelet_.Start());
  kubelet_.Fail(Method::kList, 1, absl::UnknownError("checkpoint not found"));
  EXPECT_THAT(client().Read(), StatusIs(StatusCode::kUnavailable, HasSubstr("not found")));
}

TEST_F(GrpcClientTest, DoesNotRetryWhenTheDeadlineWouldBeOver) {
  options_.deadline = milliseconds(50);  // less than the shortest pause
  ASSERT_OK(kubelet_.Start());
  kubelet_.LimitTo(0);
  EXPECT_FALSE(client().Read().ok());
  EXPECT_THAT(clock_.pauses(), IsEmpty());
}

TEST_F(GrpcClientTest, RefusesMorePodsThanANodeCanHave) {
  std::string pods = "{}";
  for (int i = 0; i < 100'000; ++i) pods += ",{}";
  kubelet_.Serve(R"({"list": {"podResources": [)" + pods + R"(]}, "allocatable": {}})");
  ASSERT_OK(kubelet_.Start());
  EXPECT_THAT(client().Read(), StatusIs(StatusCode::kOutOfRange, HasSubstr("100001 pods")));
}

TEST_F(GrpcClientTest, SaysAtOnceThatThereIsNoSocket) {
  EXPECT_THAT(client().Read(), StatusIs(StatusCode::kNotFound, HasSubstr("kubelet.sock")));
  EXPECT_THAT(clock_.pauses(), IsEmpty());
  ASSERT_OK(kubelet_.Start());
  EXPECT_OK(client().Read());
}

TEST_F(GrpcClientTest, AsksANewKubeletAfterARestart) {
  ASSERT_OK(kubelet_.Start());
  ASSERT_OK(client().Read());
  for (int i = 0; i < 3; ++i) {
    ASSERT_OK(kubelet_.Start());
    EXPECT_OK(client().Read());
  }
  EXPECT_THAT(clock_.pauses(), IsEmpty());
}

// The old kubelet still answers those who are connected to it; its socket file is another's now.
TEST_F(GrpcClientTest, LeavesAKubeletWhoseSocketFileWasReplaced) {
  ASSERT_OK(kubelet_.Start());
  ASSERT_OK(client().Read());
  FakeKubelet next(Socket());
  next.Serve(R"({"list": {"podResources": [{"namespace": "ml", "name": "new"}]}})");
  std::filesystem::rename(Socket(), tree_.Path("old.sock"));
  ASSERT_OK(next.Start());
  ASSERT_OK_AND_ASSIGN(const Assignments read, client().Read());
  EXPECT_THAT(read.pods, ElementsAre(Field(&Pod::name, "new")));
  EXPECT_EQ(kubelet_.Calls(Method::kList), 1);
}

TEST_F(GrpcClientTest, WaitsAMomentForAKubeletThatIsRestarting) {
  ASSERT_OK(kubelet_.Start());
  ASSERT_OK(client().Read());
  kubelet_.StopAndLeaveSocket();
  clock_.during_pause = [this] { ASSERT_OK(kubelet_.Start()); };
  EXPECT_OK(client().Read());
  EXPECT_THAT(clock_.pauses(), SizeIs(1));
}

TEST_F(GrpcClientTest, CallsASocketOfAKubeletThatIsGoneStale) {
  ASSERT_OK(kubelet_.Start());
  ASSERT_OK(client().Read());
  kubelet_.StopAndLeaveSocket();
  EXPECT_THAT(client().Read(), StatusIs(StatusCode::kUnavailable, HasSubstr("stale")));
  EXPECT_THAT(clock_.pauses(), SizeIs(2));
}

TEST_F(GrpcClientTest, SaysThatAServerIsNoKubelet) {
  for (const std::string greeting : {"HTTP/1.1 400 Bad Request\r\n\r\n", "garbage, a lot of it"}) {
    const RawServer server(Socket(), greeting);
    EXPECT_THAT(Connect(options_, clock_)->Read(),
                StatusIs(StatusCode::kInvalidArgument, HasSubstr("does not speak gRPC")))
        << greeting;
    unlink(Socket().c_str());
  }
}

TEST_F(GrpcClientTest, GivesUpAtTheDeadlineOnAServerThatSaysNothing) {
  options_.deadline = milliseconds(100);
  const RawServer server(Socket(), "");
  EXPECT_THAT(client().Read(),
              StatusIs(StatusCode::kUnavailable, HasSubstr("no answer within 100 ms")));
}

TEST_F(GrpcClientTest, TakesSocketPathsWithCharactersThatUrisDoNot) {
  const std::string path = tree_.Path("a %41 #?.sock");
  ASSERT_OK(kubelet_.Start());
  std::filesystem::rename(Socket(), path);
  options_.socket = path;
  EXPECT_OK(client().Read());
}

TEST_F(GrpcClientTest, PassesOnRefusalsOfTheServer) {
  ASSERT_OK(kubelet_.Start());
  kubelet_.Fail(Method::kList, 1, absl::PermissionDeniedError("no"));
  EXPECT_THAT(client().Read(), StatusIs(StatusCode::kPermissionDenied, HasSubstr("\"no\"")));
  kubelet_.Fail(Method::kList, 1, absl::DataLossError("lost"));
  EXPECT_THAT(client().Read(), StatusIs(StatusCode::kUnavailable, HasSubstr("lost")));
}

}  // namespace
}  // namespace podresources
