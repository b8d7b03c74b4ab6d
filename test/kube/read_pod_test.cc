#include "kube/read_pod.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "scheduler/admission/request.h"
#include "test/support/status.h"

namespace kube {
namespace {

using test::StatusIs;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();

// A pod with one container of these resources.
absl::StatusOr<Pod> WithResources(const std::string& resources) {
  return ParsePod(R"({"spec": {"containers": [{"name": "a", "resources": )" + resources + "}]}}");
}

// The memory limit as it is read.
absl::StatusOr<std::int64_t> Memory(const std::string& amount) {
  absl::StatusOr<Pod> pod = WithResources(R"({"limits": {"memory": )" + amount + "}}");
  if (!pod.ok()) return pod.status();
  return pod->containers.at(0).limits.at("memory");
}

absl::StatusOr<std::int64_t> Cpu(const std::string& amount) {
  absl::StatusOr<Pod> pod = WithResources(R"({"limits": {"cpu": )" + amount + "}}");
  if (!pod.ok()) return pod.status();
  return pod->containers.at(0).limits.at("cpu");
}

MATCHER_P(Refuses, message, "") {
  return testing::ExplainMatchResult(StatusIs(absl::StatusCode::kInvalidArgument, message), arg,
                                     result_listener);
}

TEST(ParsePod, ReadsWhatAdmissionLooksAt) {
  ASSERT_OK_AND_ASSIGN(const Pod pod, ParsePod(R"({
    "apiVersion": "v1", "kind": "Pod",
    "metadata": {"uid": "0c1e", "namespace": "ml", "name": "llm-0", "labels": {"a": "b"}},
    "spec": {
      "nodeName": "gpu-7",
      "initContainers": [
        {"name": "setup", "resources": {"requests": {"cpu": "250m"}}},
        {"name": "proxy", "restartPolicy": "Always"},
        {"name": "retry", "restartPolicy": "OnFailure"}],
      "containers": [
        {"name": "server", "image": "x", "resources": {
          "requests": {"cpu": "2", "memory": "1Gi"},
          "limits": {"cpu": "2", "memory": "1Gi", "nvidia.com/gpu": "1"}}}],
      "ephemeralContainers": [{"name": "debug", "resources": {"limits": {"cpu": "9"}}}],
      "overhead": {"cpu": "100m", "memory": "1Mi"}}})"));
  EXPECT_EQ(
      pod,
      (Pod{.uid = "0c1e",
           .namespace_name = "ml",
           .name = "llm-0",
           .node_name = "gpu-7",
           .init_containers = {{.name = "setup", .requests = {{"cpu", 250}}},
                               {.name = "proxy", .sidecar = true},
                               {.name = "retry"}},
           .containers = {{.name = "server",
                           .requests = {{"cpu", 2000}, {"memory", 1 << 30}, {"nvidia.com/gpu", 1}},
                           .limits = {{"cpu", 2000}, {"memory", 1 << 30}, {"nvidia.com/gpu", 1}}}},
           .overhead = {{"cpu", 100}, {"memory", 1 << 20}},
           .qos = Qos::kBurstable}));
}

TEST(ParsePod, ReadsPodLevelResourcesWithTheirDefaults) {
  ASSERT_OK_AND_ASSIGN(const Pod pod, ParsePod(R"({"spec": {
    "containers": [{"name": "a", "resources": {"requests": {"cpu": "1"}}}],
    "resources": {"limits": {"cpu": "2", "memory": "1Gi"}}}})"));
  EXPECT_EQ(pod.pod_requests, (Resources{{"cpu", 1000}, {"memory", 1 << 30}}));
  EXPECT_EQ(pod.pod_limits, (Resources{{"cpu", 2000}, {"memory", 1 << 30}}));
  EXPECT_EQ(pod.qos, Qos::kBurstable);
}

TEST(ParsePod, TakesAPodWithAQosClassAsItStands) {
  ASSERT_OK_AND_ASSIGN(const Pod pod, ParsePod(R"({
    "spec": {"containers": [{"name": "a"}], "resources": {"limits": {"cpu": "2"}}},
    "status": {"qosClass": "Guaranteed"}})"));
  EXPECT_EQ(pod.qos, Qos::kGuaranteed);
  EXPECT_FALSE(pod.pod_requests);
}

TEST(ParsePod, RefusesAQosClassThatIsNone) {
  EXPECT_THAT(
      ParsePod(R"({"spec": {"containers": [{"name": "a"}]}, "status": {"qosClass": "Best"}})"),
      Refuses("status.qosClass: \"Best\" is no QoS class"));
}

TEST(ParsePod, CallsOnlyAnInitContainerASidecar) {
  ASSERT_OK_AND_ASSIGN(
      const Pod pod,
      ParsePod(R"({"spec": {"containers": [{"name": "a", "restartPolicy": "Always"}]}})"));
  EXPECT_FALSE(pod.containers[0].sidecar);
}

TEST(Quantities, MayBeStringsOrNumbers) {
  EXPECT_EQ(*Memory(R"("64Mi")"), 64 << 20);
  EXPECT_EQ(*Memory("1000"), 1000);
  EXPECT_EQ(*Memory("1e3"), 1000);
  EXPECT_EQ(*Memory("0e-150"), 0);  // the full-precision reader counted the leading zeros of 0
  EXPECT_EQ(*Memory(R"(" 5 ")"), 5);
  EXPECT_EQ(*Cpu("2"), 2000);
  EXPECT_EQ(*Cpu("0.1"), 100);
  EXPECT_EQ(*Cpu(R"("1500m")"), 1500);
}

TEST(Quantities, RoundUp) {
  EXPECT_EQ(*Memory(R"("100m")"), 1);
  EXPECT_EQ(*Memory("1.5"), 2);
  EXPECT_EQ(*Cpu(R"("100u")"), 1);
}

TEST(Quantities, AreNothingWhereTheyAreNull) { EXPECT_EQ(*Memory("null"), 0); }

TEST(Quantities, BecomeTheLargestThatFits) {
  for (const char* absurd : {R"("9223372036854775808")", R"("8Ei")", R"("1e30")", "1e30", "1e300",
                             "18446744073709551615", "123456789012345678901234567890"}) {
    EXPECT_EQ(*Memory(absurd), kMost) << absurd;
    EXPECT_EQ(*Cpu(absurd), kMost / 1000 * 1000) << absurd;
  }
  EXPECT_EQ(*Cpu(R"("9223372036854775807")"), kMost / 1000 * 1000);
  EXPECT_EQ(*Memory(R"("9223372036854775807")"), kMost);
}

TEST(Quantities, StayWholeCpusWhenTheyAreAbsurd) {
  ASSERT_OK_AND_ASSIGN(const Pod pod,
                       WithResources(R"({"limits": {"cpu": "1e30", "memory": "1e30"}})"));
  const auto request = scheduler::admission::MakeRequest(pod);
  EXPECT_EQ(request.pod.cpus, kMost / 1000);
  EXPECT_EQ(Effective(pod, &Container::requests).at("memory"), kMost);
}

TEST(Quantities, AreRefusedWhereTheyAreNone) {
  EXPECT_THAT(Cpu(R"("4x")"),
              Refuses("spec.containers[0].resources.limits.cpu: \"4x\" is no quantity"));
  EXPECT_THAT(Memory(R"("")"), Refuses(HasSubstr("is no quantity")));
  EXPECT_THAT(Memory("true"), Refuses(HasSubstr("memory: is neither a number nor a string")));
  EXPECT_THAT(Memory("{}"), Refuses(HasSubstr("memory: is neither a number nor a string")));
}

TEST(Quantities, AreRefusedWhereTheyAreNegative) {
  for (const char* negative : {R"("-1")", "-1", "-1e30", R"("-1n")"}) {
    EXPECT_THAT(Memory(negative), Refuses(HasSubstr("limits.memory: -1"))) << negative;
  }
  EXPECT_EQ(*Memory(R"("-0")"), 0);
}

TEST(Quantities, AreWholeForDevices) {
  EXPECT_THAT(WithResources(R"({"limits": {"nvidia.com/gpu": "500m"}})"),
              Refuses("spec.containers[0].resources.limits[nvidia.com/gpu]: 500m is no whole "
                      "number"));
  EXPECT_OK(WithResources(R"({"limits": {"nvidia.com/gpu": 1.0}})"));
}

TEST(Quantities, AreRefusedWhenTheirNameAppearsTwice) {
  EXPECT_THAT(WithResources(R"({"limits": {"cpu": 1, "cpu": 2}})"),
              Refuses("spec.containers[0].resources.limits.cpu: appears twice"));
}

TEST(ParsePod, NamesTheFieldThatIsWrong) {
  const auto wrong = [](const char* spec) {
    return ParsePod(std::string(R"({"spec": )") + spec + "}");
  };
  EXPECT_THAT(wrong(R"([])"), Refuses("spec: is no object"));
  EXPECT_THAT(wrong(R"({})"), Refuses("spec.containers: there is none"));
  EXPECT_THAT(wrong(R"({"containers": {}})"), Refuses("spec.containers: is no list"));
  EXPECT_THAT(wrong(R"({"containers": [5]})"), Refuses("spec.containers[0]: is no object"));
  EXPECT_THAT(wrong(R"({"containers": [{}]})"),
              Refuses("spec.containers[0]: a container without a name"));
  EXPECT_THAT(wrong(R"({"containers": [{"name": 7}]})"),
              Refuses("spec.containers[0].name: is no string"));
  EXPECT_THAT(wrong(R"({"containers": [{"name": "a", "resources": {"limits": []}}]})"),
              Refuses("spec.containers[0].resources.limits: is no object"));
  EXPECT_THAT(wrong(R"({"containers": [{"name": "a"}], "nodeName": 5})"),
              Refuses("spec.nodeName: is no string"));
  EXPECT_THAT(wrong(R"({"containers": [{"name": "a"}], "overhead": {"cpu": "x"}})"),
              Refuses("spec.overhead.cpu: \"x\" is no quantity"));
  EXPECT_THAT(ParsePod(R"({"metadata": 1})"), Refuses("metadata: is no object"));
  EXPECT_THAT(ParsePod("{}"), Refuses("spec: there is none"));
  EXPECT_THAT(ParsePod("[]"), Refuses("is no object"));
  EXPECT_THAT(ParsePod("{"), Refuses(HasSubstr("At byte 1")));
}

TEST(ParsePod, RefusesTwoContainersOfOneName) {
  EXPECT_THAT(
      ParsePod(R"({"spec": {"containers": [{"name": "a"}, {"name": "b"}, {"name": "a"}]}})"),
      Refuses("spec.containers[2]: a second container named \"a\""));
  EXPECT_THAT(
      ParsePod(R"({"spec": {"initContainers": [{"name": "a"}], "containers": [{"name": "a"}]}})"),
      Refuses("spec.containers[0]: a second container named \"a\""));
}

TEST(ParsePod, TakesNullForAbsent) {
  ASSERT_OK_AND_ASSIGN(const Pod pod, ParsePod(R"({"kind": null, "metadata": null, "status": null,
    "spec": {"nodeName": null, "initContainers": null, "overhead": null, "resources": null,
             "containers": [{"name": "a", "restartPolicy": null, "resources": null}]}})"));
  EXPECT_EQ(pod, (Pod{.containers = {{.name = "a"}}}));
}

TEST(ParsePod, RefusesAnotherKind) {
  EXPECT_THAT(ParsePod(R"({"kind": "Service"})"), Refuses("the kind is \"Service\", not Pod"));
  EXPECT_THAT(ParsePod(R"({"kind": "Pod", "apiVersion": "v2"})"),
              Refuses("the apiVersion is \"v2\", not v1"));
}

TEST(ParsePod, ReadsTenThousandContainers) {
  std::string json = R"({"spec": {"containers": [)";
  for (int i = 0; i < 10000; ++i) {
    json += (i == 0 ? "" : ",") + std::string(R"({"name": "c)") + std::to_string(i) +
            R"(", "resources": {"limits": {"cpu": "1e30"}}})";
  }
  ASSERT_OK_AND_ASSIGN(const Pod pod, ParsePod(json + "]}}"));
  EXPECT_EQ(pod.containers.size(), 10000);
  EXPECT_EQ(Effective(pod, &Container::limits).at("cpu"), kMost);
}

TEST(ParsePod, RefusesDeepNestingAndTextThatIsNotUtf8) {
  EXPECT_THAT(ParsePod(std::string(1'000'000, '[')), Refuses(HasSubstr("no JSON")));
  EXPECT_THAT(ParsePod("{\"spec\": \"\xff\"}"), Refuses(HasSubstr("no JSON")));
}

TEST(ParsePods, ReadsEveryDocument) {
  ASSERT_OK_AND_ASSIGN(const std::vector<Pod> pods, ParsePods(R"(
# two pods and a list
apiVersion: v1
kind: Pod
metadata: {name: a}
spec:
  containers:
  - name: server
    resources:
      limits: {cpu: 2, memory: 1Gi, nvidia.com/gpu: 1}
---
---
apiVersion: v1
kind: PodList
items:
- metadata: {name: b}
  spec: {containers: [{name: server}]}
- metadata: {name: c}
  spec: {containers: [{name: server}]}
---
apiVersion: v1
kind: List
items:
- kind: Pod
  metadata: {name: d}
  spec: {containers: [{name: server}]}
)"));
  EXPECT_THAT(pods, ElementsAre(Field(&Pod::name, "a"), Field(&Pod::name, "b"),
                                Field(&Pod::name, "c"), Field(&Pod::name, "d")));
  EXPECT_EQ(pods[0].qos, Qos::kGuaranteed);
  EXPECT_EQ(pods[1].qos, Qos::kBestEffort);
}

TEST(ParsePods, ReadsJsonObjectsOneAfterTheOther) {
  ASSERT_OK_AND_ASSIGN(
      const std::vector<Pod> pods,
      ParsePods(
          R"({"kind": "Pod", "metadata": {"name": "a"}, "spec": {"containers": [{"name": "x"}]}}
                   {"kind": "List", "items": []})"));
  EXPECT_THAT(pods, ElementsAre(Field(&Pod::name, "a")));
}

TEST(ParsePods, NamesAnotherKindAndItsPlace) {
  const std::string pod = "{kind: Pod, spec: {containers: [{name: a}]}}\n";
  EXPECT_THAT(ParsePods("---\n" + pod + "---\nkind: Service\n"),
              Refuses("document 2: the kind is \"Service\", not Pod"));
  EXPECT_THAT(ParsePods("kind: Service\n"), Refuses("the kind is \"Service\", not Pod"));
  EXPECT_THAT(ParsePods("kind: List\nitems:\n- " + pod + "- kind: Node\n"),
              Refuses("items[1]: the kind is \"Node\", not Pod"));
  EXPECT_THAT(ParsePods("kind: List\nitems: [{spec: {}}]\n"), Refuses("items[0]: has no kind"));
  EXPECT_THAT(ParsePods("spec: {}\n"), Refuses("has no kind"));
  EXPECT_THAT(ParsePods("- a\n"), Refuses("is no object"));
}

TEST(ParsePods, NamesTheFieldWithinItsDocument) {
  EXPECT_THAT(ParsePods("kind: PodList\nitems: [{spec: {containers: [{name: 5}]}}]\n"),
              Refuses("items[0].spec.containers[0].name: is no string"));
}

TEST(ParsePods, RefusesATextWithoutDocuments) {
  EXPECT_THAT(ParsePods("# nothing\n---\n"), Refuses("there is no document in it"));
  EXPECT_THAT(ParsePods(""), Refuses("there is no document in it"));
}

TEST(KindOf, TellsTheKindOrThatThereIsNone) {
  EXPECT_EQ(*KindOf(R"({"kind": "Node", "spec": {"kind": "x"}})"), "Node");
  EXPECT_EQ(*KindOf("{}"), "");
  EXPECT_THAT(KindOf(R"({"kind": 5})"), Refuses("kind: is no string"));
  EXPECT_THAT(KindOf("[]"), Refuses("is no object"));
}

}  // namespace
}  // namespace kube
