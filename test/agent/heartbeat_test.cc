#include "agent/heartbeat.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/agent/api_objects.h"
#include "test/fakes/clock.h"
#include "test/fakes/transport.h"

namespace agent {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using test::Refusal;
using testing::HasSubstr;
using testing::SizeIs;

class HeartbeatTest : public testing::Test {
 protected:
  void SetUp() override { health_.SetCurrent(true); }
  milliseconds Beat() { return heartbeat_.Beat({}); }

  test::FakeClock clock_;
  test::FakeTransport transport_;
  kube::Client client_{transport_, clock_, {.attempts = 1}, [] { return 0.0; }};
  Metrics metrics_;
  Health health_{clock_.Steady()};
  std::optional<std::string> node_uid_ = "node-1";
  double random_ = 0.5;
  Heartbeat heartbeat_{client_, clock_, metrics_, health_,
                       HeartbeatOptions{.node_name = "gpu-7",
                                        .namespace_name = "plumbline-system",
                                        .node_uid = [this] { return node_uid_; },
                                        .random = [this] { return random_; }}};
};

TEST_F(HeartbeatTest, RenewsTheLeaseOfTheNode) {
  transport_.Then(201, test::Json({}));
  EXPECT_EQ(Beat(), seconds(30));
  ASSERT_THAT(transport_.sent(), SizeIs(1));
  const kube::HttpRequest request = transport_.sent()[0];
  EXPECT_EQ(request.method, "PATCH");
  EXPECT_EQ(request.target,
            "/apis/coordination.k8s.io/v1/namespaces/plumbline-system/leases/gpu-7"
            "?fieldManager=plumbline-agent&force=true");
  EXPECT_EQ(request.body,
            R"({"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":"gpu-7",)"
            R"("namespace":"plumbline-system","ownerReferences":[{"apiVersion":"v1","kind":"Node",)"
            R"("name":"gpu-7","uid":"node-1"}]},"spec":{"holderIdentity":"gpu-7",)"
            R"("leaseDurationSeconds":90,"renewTime":"2026-11-29T12:00:00.000000Z"}})");
  EXPECT_THAT(metrics_.Text(),
              HasSubstr(R"(plumbline_writes_total{object="leases",result="updated"} 1)"));
}

TEST_F(HeartbeatTest, KeepsTheAgentsOfAClusterApart) {
  transport_.Then(200, test::Json({})).Then(200, test::Json({}));
  random_ = 0;
  EXPECT_EQ(Beat(), seconds(27));
  random_ = 1;
  EXPECT_EQ(Beat(), seconds(33));
}

TEST_F(HeartbeatTest, TriesAgainSoonerAfterAFailure) {
  transport_.Then(503, Refusal(503, "ServiceUnavailable", "busy"));
  EXPECT_EQ(Beat(), seconds(10));
  EXPECT_THAT(metrics_.Text(), HasSubstr(R"(object="leases",result="failed"} 1)"));
}

TEST_F(HeartbeatTest, StopsWithTheLoopAndGoesOnWithIt) {
  clock_.Advance(Health::kStuck);
  EXPECT_EQ(Beat(), seconds(1));
  EXPECT_THAT(transport_.sent(), SizeIs(0));
  health_.Stepped(clock_.Steady());
  transport_.Then(200, test::Json({}));
  Beat();
  EXPECT_THAT(transport_.sent(), SizeIs(1));
}

TEST_F(HeartbeatTest, WasRenewedWhileNothingOrNothingNewCouldBePublished) {
  health_.SetCurrent(false);
  for (int i = 0; i < 120; ++i) {
    EXPECT_EQ(Beat(), seconds(1));
    clock_.Advance(seconds(1));
    health_.Stepped(clock_.Steady());
  }
  EXPECT_THAT(transport_.sent(), SizeIs(0));
  health_.SetCurrent(true);
  transport_.Then(200, test::Json({}));
  EXPECT_EQ(Beat(), seconds(30));
  EXPECT_THAT(transport_.sent(), SizeIs(1));
}

TEST_F(HeartbeatTest, HasNoOwnerUntilTheNodeIsKnownAndNoLeaseAfterItWasDeleted) {
  node_uid_.reset();
  transport_.Then(404, Refusal(404, "NotFound", "not found"))
      .Then(201, test::Json({}))
      .Then(200, test::Json({}));
  Beat();
  EXPECT_EQ(transport_.sent()[0].method, "GET");
  EXPECT_THAT(transport_.sent()[1].body, HasSubstr(R"("ownerReferences":[])"));
  node_uid_ = "node-1";
  Beat();
  EXPECT_THAT(transport_.sent()[2].body, HasSubstr("node-1"));
  node_uid_.reset();
  Beat();
  EXPECT_THAT(transport_.sent(), SizeIs(3));
}

TEST_F(HeartbeatTest, KeepsTheOwnerThatALeaseHasUntilTheNodeIsKnown) {
  node_uid_.reset();
  transport_
      .Then(200, test::Json({.owners = R"({"apiVersion":"v1","kind":"Node","name":"gpu-7",)"
                                       R"("uid":"node-0"})"}))
      .Then(200, test::Json({}));
  Beat();
  EXPECT_THAT(transport_.sent()[1].body, HasSubstr(R"("uid":"node-0")"));
}

TEST_F(HeartbeatTest, DoesNotRenewALeaseOfWhichItCouldNotReadTheOwner) {
  node_uid_.reset();
  transport_.Then(503, Refusal(503, "ServiceUnavailable", "busy"));
  EXPECT_EQ(Beat(), seconds(10));
  EXPECT_THAT(transport_.sent(), SizeIs(1));
}

}  // namespace
}  // namespace agent
