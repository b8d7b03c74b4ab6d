// Run under ThreadSanitizer as well.
#include "agent/node_pods.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "test/agent/following.h"
#include "test/kube/watch_lines.h"
#include "test/support/files.h"
#include "test/support/status.h"

namespace agent {
namespace {

using placement::ApiPod;
using test::Chunked;
using test::EventLine;
using test::InitialEndLine;
using test::StatusIs;
using test::StatusReply;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

std::string PodJson(const std::string& name, const std::string& version, const std::string& phase,
                    const std::string& ready_since = "12:00") {
  return fmt::format(
      R"({{"metadata":{{"namespace":"ml","name":"{}","uid":"uid-{}","resourceVersion":"{}"}},)"
      R"("status":{{"phase":"{}","qosClass":"Guaranteed","conditions":[{{"type":"Ready","lastProbeTime":"{}"}}]}}}})",
      name, name, version, phase, ready_since);
}

TEST(ReadApiPod, TakesWhatTheKubeletDoesNotTell) {
  ASSERT_OK_AND_ASSIGN(
      const ApiPod pod,
      ReadApiPod({.namespace_name = "ml", .name = "llm-0", .uid = "uid-1", .json = R"({
        "spec": {"containers": [{"name": "main", "env": [{"name": "SECRET", "value": "x"}]}]},
        "status": {"phase": "Running", "qosClass": "Burstable",
          "initContainerStatuses": [{"name": "warm-up", "containerID": "cri-o://aa"}],
          "containerStatuses": [{"name": "main", "containerID": "containerd://bb"},
                                {"name": "waiting", "state": {"waiting": {}}}],
          "ephemeralContainerStatuses": [{"name": "debug", "containerID": "docker://cc"}]}})"}));
  EXPECT_EQ(pod.namespace_name + "/" + pod.name + " " + pod.uid, "ml/llm-0 uid-1");
  EXPECT_EQ(pod.kubelet_uid, "");
  EXPECT_EQ(pod.phase, "Running");
  EXPECT_EQ(pod.qos_class, "Burstable");
  EXPECT_THAT(pod.containers,
              ElementsAre(Pair("aa", "warm-up"), Pair("bb", "main"), Pair("cc", "debug")));
}

TEST(ReadApiPod, UnderstandsAStaticPodThatWasRecorded) {
  ASSERT_OK_AND_ASSIGN(
      const ApiPod pod,
      ReadApiPod({.json = test::Slurp("test/fuzz/seeds/api_pod_fuzz/static-two-socket.json")}));
  EXPECT_EQ(pod.kubelet_uid, "3f428f838bce93695ad2c8314baf9a98");
  EXPECT_EQ(pod.phase + " " + pod.qos_class, "Running Guaranteed");
  EXPECT_THAT(
      pod.containers,
      ElementsAre(Pair("1b159a699b62749c40e6e3a956b9bb71decb52d175446e449ce932234b9a4865", "app")));
}

TEST(ReadApiPod, KnowsTheKubeletsUidOfAStaticPod) {
  ASSERT_OK_AND_ASSIGN(const ApiPod pod, ReadApiPod({.uid = "uid-of-the-mirror", .json = R"({
        "metadata": {"annotations": {"kubernetes.io/config.hash": "2ddda20ca430515db1a4a8714007dd04",
          "kubernetes.io/config.mirror": "2ddda20ca430515db1a4a8714007dd04",
          "kubernetes.io/config.source": "file"}}})"}));
  EXPECT_EQ(pod.uid, "uid-of-the-mirror");
  EXPECT_EQ(pod.kubelet_uid, "2ddda20ca430515db1a4a8714007dd04");
}

TEST(ReadApiPod, OfAnOrdinaryPodHasNoUidOfTheKubelets) {
  ASSERT_OK_AND_ASSIGN(const ApiPod pod, ReadApiPod({.json = R"({
        "metadata": {"annotations": {"kubernetes.io/config.source": "api"}}})"}));
  EXPECT_EQ(pod.kubelet_uid, "");
}

TEST(ReadApiPod, NamesTheFieldThatMakesNoSense) {
  EXPECT_THAT(ReadApiPod({.json = R"({"status":{"containerStatuses":[{"containerID":7}]}})"}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("status.containerStatuses[0].containerID: is no string")));
}

using NodePodsTest = test::FollowingTest<NodePods>;

auto IsNamed(const std::string& name) { return Field(&ApiPod::name, name); }

TEST_F(NodePodsTest, TellsOfThePodsOnlyOnceAllAreKnown) {
  server_.Then(Chunked({EventLine("ADDED", PodJson("b", "1", "Running")),
                        EventLine("ADDED", PodJson("a", "2", "Pending")), InitialEndLine("2")},
                       kHang));
  Start();
  const auto seen = AwaitChanges(1);
  ASSERT_OK(*seen[0]);
  EXPECT_THAT(**seen[0], ElementsAre(IsNamed("a"), IsNamed("b")));
  EXPECT_THAT(server_.requests()[0].target,
              HasSubstr("/api/v1/pods?fieldSelector=spec.nodeName%3Dgpu-7&"));
}

TEST_F(NodePodsTest, TellsOfWhatMattersAndOfNoOtherChange) {
  server_.Then(Chunked({EventLine("ADDED", PodJson("a", "1", "Running")), InitialEndLine("1"),
                        EventLine("MODIFIED", PodJson("a", "2", "Running", "12:01")),
                        EventLine("MODIFIED", PodJson("a", "3", "Succeeded")),
                        EventLine("DELETED", PodJson("a", "4", "Succeeded"))},
                       kHang));
  Start();
  const auto seen = AwaitChanges(3);
  EXPECT_EQ((**seen[0])[0].phase, "Running");
  EXPECT_EQ((**seen[1])[0].phase, "Succeeded");
  EXPECT_THAT(**seen[2], IsEmpty());
}

TEST_F(NodePodsTest, KeepsWhatItKnowsWhileTheApiServerIsAway) {
  server_.Then(Chunked({EventLine("ADDED", PodJson("a", "1", "Running")), InitialEndLine("1")}))
      .Then(StatusReply(503, "x", "down"))
      .Then(Chunked({EventLine("MODIFIED", PodJson("a", "2", "Failed"))}, kHang));
  Start();
  const auto seen = AwaitChanges(2);
  EXPECT_EQ((**seen[1])[0].phase, "Failed");
}

TEST_F(NodePodsTest, AreNotKnownWithoutThePermissionWhichIsAskedForSeldom) {
  server_
      .Then(StatusReply(403, "Forbidden",
                        R"(User \"u\" cannot watch resource \"pods\" in API group \"\" at)"))
      .Then(StatusReply(403, "Forbidden",
                        R"(User \"u\" cannot watch resource \"pods\" in API group \"\" at)"))
      .Then(
          Chunked({EventLine("ADDED", PodJson("a", "1", "Running")), InitialEndLine("1")}, kHang));
  Start();
  const auto seen = AwaitChanges(2);
  EXPECT_THAT(*seen[0], StatusIs(absl::StatusCode::kPermissionDenied,
                                 HasSubstr("missing permission: watch pods")));
  EXPECT_THAT(**seen[1], ElementsAre(IsNamed("a")));
  EXPECT_THAT(clock_.pauses(), ElementsAre(std::chrono::minutes(10), std::chrono::minutes(10)));
}

}  // namespace
}  // namespace agent
