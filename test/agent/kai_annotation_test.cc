#include "agent/kai_annotation.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "test/agent/api_objects.h"
#include "test/fakes/clock.h"
#include "test/fakes/transport.h"

namespace agent {
namespace {

using testing::HasSubstr;

// A pod's metadata, with the annotation as JSON ("null": none).
std::string Pod(int version, const std::string& annotation) {
  return fmt::format(
      R"({{"metadata":{{"namespace":"ml","name":"llm-0","uid":"uid-1","resourceVersion":"{}",)"
      R"("annotations":{{"kai.scheduler/numa-placement-observed":{}}}}}}})",
      version, annotation);
}

std::string Line(const std::string& type, const std::string& pod) {
  return fmt::format(R"({{"type":"{}","object":{}}})", type, pod);
}

// Holds CPUs 0 and 1 of NUMA node 0.
placement::Observation Content() {
  placement::Observation content;
  placement::NumaNodePlacement node;
  node.id = 0;
  node.cpus = {0, 1, 2, 3};
  content.placement.numa_nodes = {node};
  placement::PlacedPod pod;
  pod.namespace_name = "ml";
  pod.name = "llm-0";
  pod.uid = "uid-1";
  pod.containers.resize(1);
  pod.containers[0].name = "main";
  pod.containers[0].cpus = {0, 1};
  content.placement.pods = {pod};
  content.nrt.emplace();
  content.nrt->zones.push_back({.name = "node-0",
                                .type = placement::kZoneType,
                                .costs = {},
                                .attributes = {},
                                .resources = {{"cpu", 4, 4, 2}}});
  return content;
}

class KaiAnnotationTest : public testing::Test {
 protected:
  test::FakeClock clock_;
  test::FakeTransport transport_;
  kube::Client client_{transport_, clock_, {}, [] { return 0.0; }};
  Metrics metrics_;
  placement::Observation content_ = Content();
  std::unique_ptr<KaiAnnotation> annotation_ =
      std::make_unique<KaiAnnotation>(client_, clock_, metrics_, "gpu-7");
};

constexpr char kHeld[] = R"("[{\"zone\":\"node-0\",\"amount\":{\"cpu\":\"2\"}}]")";

TEST_F(KaiAnnotationTest, PatchesThePodWithItsUidAndRepairsWhatOthersWrite) {
  transport_.Then(200, Pod(11, kHeld)).Then(200, Pod(13, kHeld));
  transport_.Say("pods", Line("ADDED", Pod(10, "null")));
  annotation_->Tell({.content = content_});
  transport_.AwaitSent(1);
  transport_.Say("pods", Line("MODIFIED", Pod(12, "\"forged\"")));
  transport_.AwaitSent(2);
  for (const kube::HttpRequest& request : transport_.sent()) {
    EXPECT_EQ(request.method, "PATCH");
    EXPECT_THAT(request.target, HasSubstr("/api/v1/namespaces/ml/pods/llm-0?"));
    EXPECT_EQ(request.body, fmt::format(R"({{"metadata":{{"uid":"uid-1","annotations":)"
                                        R"({{"kai.scheduler/numa-placement-observed":{}}}}}}})",
                                        kHeld));
  }
  annotation_.reset();
  EXPECT_THAT(metrics_.Text(), HasSubstr(R"(object="pods",result="updated"} 2)"));
}

TEST_F(KaiAnnotationTest, RemovesItWhenNothingIsHeldButNotWhileThatIsNotKnown) {
  transport_.Then(200, Pod(11, "null"));
  transport_.Say("pods", Line("ADDED", Pod(10, kHeld)));
  placement::Observation unknown;
  annotation_->Tell({.content = unknown});
  annotation_->Tell({.content = content_});
  content_.placement.pods.clear();
  annotation_->Tell({.content = content_});
  transport_.AwaitSent(1);
  EXPECT_THAT(transport_.sent()[0].body,
              HasSubstr(R"("kai.scheduler/numa-placement-observed":null)"));
}

TEST_F(KaiAnnotationTest, WatchesTheMetadataOfTheNodesPods) {
  transport_.Say("pods", Line("ADDED", Pod(10, "null")));
  EXPECT_THAT(transport_.watches()[0].target, HasSubstr("fieldSelector=spec.nodeName%3Dgpu-7"));
  EXPECT_THAT(transport_.watches()[0].accept, HasSubstr("PartialObjectMetadata"));
}

}  // namespace
}  // namespace agent
