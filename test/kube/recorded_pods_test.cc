#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidjson/document.h>
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

#include <string>
#include <vector>

#include "kube/read_pod.h"
#include "test/support/files.h"
#include "test/support/status.h"

// Pods as Kubernetes 1.37.2 serves them, and what its own code makes of pods.
namespace kube {
namespace {

using testing::ElementsAre;
using Json = rapidjson::Value;

TEST(RecordedPods, OfAnApiServerAreRead) {
  ASSERT_OK_AND_ASSIGN(const Pod pod,
                       ParsePod(test::Slurp("test/kube/recorded/api-server-pod.json")));
  const Resources own = {{"cpu", 1000}, {"memory", 64 << 20}};
  EXPECT_EQ(pod, (Pod{.uid = "6516f5a3-2a16-4eb6-a8da-81ed9959cb9c",
                      .namespace_name = "default",
                      .name = "ok-1",
                      .containers = {{.name = "c", .requests = own, .limits = own}},
                      .qos = Qos::kGuaranteed}));
}

TEST(RecordedPods, OfAKubeletAreRead) {
  ASSERT_OK_AND_ASSIGN(const std::vector<Pod> pods,
                       ParsePods(test::Slurp("test/kube/recorded/kubelet-pods.json")));
  std::vector<std::string> names;
  for (const Pod& pod : pods) {
    names.push_back(pod.name);
    EXPECT_EQ(pod.node_name, "numa-guest");
    EXPECT_EQ(pod.qos, Qos::kGuaranteed);
    EXPECT_EQ(ComputeQos(pod), pod.qos);
  }
  EXPECT_THAT(names, ElementsAre("pin2-numa-guest", "pin3-numa-guest", "toobig-numa-guest",
                                 "huge1-numa-guest"));
  EXPECT_EQ(pods[1].containers[0].limits,
            (Resources{{"cpu", 3000}, {"example.com/gpu", 2}, {"memory", 256 << 20}}));
}

std::string Text(const Json& json) {
  rapidjson::StringBuffer buffer;
  rapidjson::Writer<rapidjson::StringBuffer> writer(buffer);
  json.Accept(writer);
  return buffer.GetString();
}

Resources Amounts(const Json& answer, const char* name) {
  Resources resources;
  const auto list = answer.FindMember(name);
  if (list == answer.MemberEnd()) return resources;
  for (const auto& [key, amount] : list->value.GetObject()) {
    resources[key.GetString()] = amount.GetInt64();
  }
  return resources;
}

void ExpectContainers(const std::vector<Container>& containers, const Json& answer) {
  ASSERT_EQ(containers.size(), answer.Size());
  for (rapidjson::SizeType i = 0; i < answer.Size(); ++i) {
    EXPECT_EQ(containers[i].name, answer[i]["name"].GetString());
    EXPECT_EQ(containers[i].requests, Amounts(answer[i], "requests"));
    EXPECT_EQ(containers[i].limits, Amounts(answer[i], "limits"));
  }
}

// Each line is a made-up pod and what it is after decoding with defaults and after
// DefaultPodLevelResources; its class by GetPodQOS; PodRequests and PodLimits.
TEST(RecordedPods, AreWhatKubernetesMakesOfThem) {
  const std::vector<std::string> lines =
      test::Lines(test::Slurp("test/kube/recorded/defaulted.ndjson"));
  ASSERT_EQ(lines.size(), 90);
  for (const std::string& line : lines) {
    SCOPED_TRACE(line);
    rapidjson::Document recorded;
    recorded.Parse(line.c_str());
    ASSERT_FALSE(recorded.HasParseError());
    ASSERT_OK_AND_ASSIGN(const Pod pod, ParsePod(Text(recorded["pod"])));
    const Json& answer = recorded["answer"];
    ExpectContainers(pod.init_containers, answer["init"]);
    ExpectContainers(pod.containers, answer["containers"]);
    EXPECT_EQ(pod.pod_requests.value_or(Resources()), Amounts(answer, "pod_requests"));
    EXPECT_EQ(pod.pod_limits.value_or(Resources()), Amounts(answer, "pod_limits"));
    EXPECT_STREQ(ToString(pod.qos), answer["qos"].GetString());
    EXPECT_EQ(HasPodLevelResources(pod), answer["set"].GetBool());
    EXPECT_EQ(Effective(pod, &Container::requests), Amounts(answer, "requests"));
    EXPECT_EQ(Effective(pod, &Container::limits), Amounts(answer, "limits"));
  }
}

}  // namespace
}  // namespace kube
