// Run under ThreadSanitizer as well.
#include "agent/this_node.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/agent/following.h"
#include "test/kube/watch_lines.h"
#include "test/support/files.h"
#include "test/support/status.h"

namespace agent {
namespace {

using test::Chunked;
using test::EventLine;
using test::InitialEndLine;
using test::StatusReply;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

struct NodeSpec {
  std::string version = "1";
  std::string uid = "uid-1";
  std::string gpus = "8";
  int port = 10'250;
  std::string heartbeat = "2026-11-29T12:00:00Z";
};

std::string NodeJson(const NodeSpec& spec) {
  return fmt::format(
      R"({{"metadata":{{"name":"gpu-7","uid":"{}","resourceVersion":"{}"}},"status":{{)"
      R"("capacity":{{"cpu":"128","memory":"528280Mi","nvidia.com/gpu":"{}"}},)"
      R"("addresses":[{{"type":"Hostname","address":"gpu-7"}},{{"type":"ExternalIP","address":"203.0.113.7"}},)"
      R"({{"type":"InternalIP","address":"10.0.0.7"}},{{"type":"InternalIP","address":"fd00::7"}}],)"
      R"("conditions":[{{"type":"Ready","status":"True","lastHeartbeatTime":"{}"}}],)"
      R"("daemonEndpoints":{{"kubeletEndpoint":{{"Port":{}}}}},)"
      R"("nodeInfo":{{"kubeletVersion":"v1.37.2","machineID":"x"}}}}}})",
      spec.uid, spec.version, spec.gpus, spec.heartbeat, spec.port);
}

absl::StatusOr<NodeObject> Read(const std::string& json) {
  return ReadNode({.name = "gpu-7", .uid = "uid-1", .json = json});
}

TEST(ReadNode, UnderstandsOneThatWasRecorded) {
  ASSERT_OK_AND_ASSIGN(const NodeObject node,
                       Read(test::Slurp("test/fuzz/seeds/node_object_fuzz/node.json")));
  EXPECT_THAT(node.addresses, ElementsAre("10.210.0.11", "two-socket"));
  EXPECT_EQ(node.kubelet_port, 10250);
  EXPECT_EQ(node.kubelet_version, "v1.37.2");
  EXPECT_EQ(node.capacity.at("nvidia.com/gpu"), 6);
  EXPECT_EQ(node.capacity.at("hugepages-1Gi"), std::int64_t{4} << 30);
}

TEST(ReadNode, TakesCapacityAddressesPortAndVersion) {
  ASSERT_OK_AND_ASSIGN(const NodeObject node, Read(NodeJson({})));
  EXPECT_TRUE(node.exists);
  EXPECT_EQ(node.uid, "uid-1");
  EXPECT_THAT(node.capacity,
              ElementsAre(Pair("cpu", 128), Pair("memory", std::int64_t{528'280} << 20),
                          Pair("nvidia.com/gpu", 8)));
  EXPECT_THAT(node.addresses, ElementsAre("10.0.0.7", "fd00::7", "gpu-7", "203.0.113.7"));
  EXPECT_EQ(node.kubelet_port, 10'250);
  EXPECT_EQ(node.kubelet_version, "v1.37.2");
}

TEST(ReadNode, OfANodeThatSaysNothingYetIsEmpty) {
  ASSERT_OK_AND_ASSIGN(const NodeObject node, Read(R"({"metadata":{"name":"gpu-7"}})"));
  EXPECT_TRUE(node.exists);
  EXPECT_THAT(node.capacity, IsEmpty());
  EXPECT_THAT(node.addresses, IsEmpty());
  EXPECT_EQ(node.kubelet_port, 0);
}

TEST(ReadNode, NamesTheFieldThatMakesNoSense) {
  constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
  EXPECT_THAT(
      Read(R"({"status":{"daemonEndpoints":{"kubeletEndpoint":{"Port":70000}}}})"),
      test::StatusIs(kInvalid, "status.daemonEndpoints.kubeletEndpoint.Port: 70000 is no port"));
}

TEST(ReadNode, WasDroppedWholeForOneQuantityThatMakesNoSense) {
  ASSERT_OK_AND_ASSIGN(
      const NodeObject node,
      Read(R"({"status":{"capacity":{"cpu":"8","example.com/fpga":2,"nvidia.com/gpu":"many"},)"
           R"("nodeInfo":{"kubeletVersion":"v1.37.2"}}})"));
  EXPECT_EQ(node.kubelet_version, "v1.37.2");
  EXPECT_THAT(node.capacity, ElementsAre(Pair("cpu", 8), Pair("example.com/fpga", std::nullopt),
                                         Pair("nvidia.com/gpu", std::nullopt)));
  EXPECT_THAT(node.not_understood,
              ElementsAre(HasSubstr("status.capacity.example.com/fpga: is no string"),
                          HasSubstr("status.capacity.nvidia.com/gpu: ")));
}

using ThisNodeTest = test::FollowingTest<ThisNode>;

TEST_F(ThisNodeTest, KnowsNothingBeforeTheApiServerHasSpoken) {
  Start();
  EXPECT_EQ(follower_->Get(), nullptr);
  EXPECT_EQ(follower_->uid(), std::nullopt);
  EXPECT_EQ(follower_->capacity(), std::nullopt);
  std::stop_source stop;
  stop.request_stop();
  EXPECT_EQ(follower_->Await(stop.get_token()), nullptr);
}

TEST_F(ThisNodeTest, TellsOfChangesButNotOfHeartbeats) {
  server_.Then(Chunked({EventLine("ADDED", NodeJson({})), InitialEndLine("1"),
                        EventLine("MODIFIED", NodeJson({.version = "2", .heartbeat = "later"})),
                        EventLine("MODIFIED", NodeJson({.version = "3", .gpus = "7"}))},
                       kHang));
  Start();
  const auto seen = AwaitChanges(2);
  ASSERT_EQ(seen.size(), 2U);
  EXPECT_EQ(seen[0]->capacity.at("nvidia.com/gpu"), 8);
  EXPECT_EQ(seen[1]->capacity.at("nvidia.com/gpu"), 7);
  EXPECT_EQ(follower_->Await({}), seen[1]);
  EXPECT_EQ(follower_->kubelet_version(), "v1.37.2");
  EXPECT_THAT(server_.requests()[0].target,
              HasSubstr("/api/v1/nodes?fieldSelector=metadata.name%3Dgpu-7&"));
}

TEST_F(ThisNodeTest, KnowsThatTheNodeWasDeletedAndThatAnotherOneHasItsName) {
  server_.Then(Chunked({EventLine("ADDED", NodeJson({})), InitialEndLine("1"),
                        EventLine("DELETED", NodeJson({.version = "2"})),
                        EventLine("ADDED", NodeJson({.version = "3", .uid = "uid-2"}))},
                       kHang));
  Start();
  const auto seen = AwaitChanges(3);
  ASSERT_EQ(seen.size(), 3U);
  EXPECT_EQ(seen[0]->uid, "uid-1");
  EXPECT_EQ(*seen[1], NodeObject());
  EXPECT_EQ(follower_->uid(), "uid-2");
}

TEST_F(ThisNodeTest, KnowsThatThereIsNoSuchNode) {
  server_.Then(Chunked({InitialEndLine("1")}, kHang));
  Start();
  const auto seen = AwaitChanges(1);
  ASSERT_EQ(seen.size(), 1U);
  EXPECT_FALSE(seen[0]->exists);
  EXPECT_EQ(follower_->uid(), std::nullopt);
}

// Of a permission that is missing.
test::Answer Refusal() {
  return StatusReply(403, "Forbidden",
                     R"(User \"u\" cannot watch resource \"nodes\" in API group \"\" at)");
}

TEST_F(ThisNodeTest, SaidOnlyThatAWatchWasLostWhereItMayNotReadTheNode) {
  server_.Then(Refusal());
  Start();
  EXPECT_EQ(AwaitChanges(1)[0], nullptr);
  EXPECT_THAT(follower_->refusal(), test::StatusIs(absl::StatusCode::kPermissionDenied,
                                                   HasSubstr("missing permission: watch nodes")));
}

TEST_F(ThisNodeTest, ReadsTheNodeAsSoonAsItMay) {
  server_.Then(Refusal()).Then(
      Chunked({EventLine("ADDED", NodeJson({})), InitialEndLine("1")}, kHang));
  Start();
  EXPECT_EQ(AwaitChanges(3)[2]->uid, "uid-1");  // refused, known, no longer refused
  EXPECT_OK(follower_->refusal());
}

TEST_F(ThisNodeTest, KeepsWhatItKnewWhileTheApiServerIsAwayAndWhatItDoesNotUnderstand) {
  server_
      .Then(Chunked({EventLine("ADDED", NodeJson({})), InitialEndLine("1"),
                     EventLine("MODIFIED", NodeJson({.version = "2", .port = 70'000}))}))
      .Then(StatusReply(503, "x", "down"))
      .Then(Chunked({EventLine("MODIFIED", NodeJson({.version = "3", .gpus = "7"}))}, kHang));
  Start();
  const auto seen = AwaitChanges(2);
  ASSERT_EQ(seen.size(), 2U);
  EXPECT_EQ(seen[1]->capacity.at("nvidia.com/gpu"), 7);
}

}  // namespace
}  // namespace agent
