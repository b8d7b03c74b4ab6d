// What the API server's word on this node's pods adds to the kubelet's and to the state files'.
#include "placement/api_pods.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "placement/join.h"
#include "test/placement/scene.h"

namespace placement {
namespace {

using podresources::Container;
using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

Container On(const std::string& cpus, const std::vector<podresources::Device>& devices = {}) {
  return {.name = "main", .cpus = Cpus(cpus), .memory = {}, .devices = devices, .claims = {}};
}

ApiPod Running(const std::string& name, const std::string& uid) {
  return {.namespace_name = "ml",
          .name = name,
          .uid = uid,
          .phase = "Running",
          .qos_class = "Guaranteed"};
}
ApiPod Ended(const std::string& name, const std::string& uid, const std::string& phase) {
  ApiPod pod = Running(name, uid);
  pod.phase = phase;
  return pod;
}

TEST(JoinWithApiPods, TellsTheUidOfAPodWithoutALogFolder) {
  Scene scene(TwoNodes());
  scene.Add("llm-0", "uid-1", {On("4-7")});
  scene.Add("web-0", "uid-2", {On("")});
  scene.facts.state.pod_logs.reset();
  scene.facts.api_pods = {{Running("llm-0", "uid-1"), Running("web-0", "uid-2")}};
  const Observation seen = scene.Look();
  EXPECT_EQ(FindPod(seen, "llm-0")->uid, "uid-1");
  EXPECT_THAT(seen.placement.known_pods, ElementsAre("uid-1", "uid-2"));
  EXPECT_THAT(Codes(seen), Not(Contains("PodUidsUnknown")));
  EXPECT_EQ(ConditionOf(seen, "StateKnown"), "True AllRead");
}

TEST(JoinWithoutApiPods, MissesTheLogFolders) {
  Scene scene(TwoNodes());
  scene.Add("llm-0", "uid-1", {On("4-7")});
  scene.facts.state.pod_logs.reset();
  const Observation seen = scene.Look();
  EXPECT_THAT(Codes(seen), Contains("PodUidsUnknown"));
  EXPECT_EQ(ConditionOf(seen, "StateKnown"), "False FilesMissing");
}

TEST(Conditions, SaidNothingOfWhatTheKubeletAndTheApiServerDidNotTell) {
  Scene scene(TwoNodes());
  scene.Add("llm-0", "uid-1", {On("4-7")});
  EXPECT_EQ(ConditionOf(scene.Look(), "ConfigKnown"), "True AllKnown");
  EXPECT_EQ(ConditionOf(scene.Look(), "NodeUnreadable"), "");
  const std::string why = "missing permission: ";
  scene.facts.config.diagnostics = {{"ConfigzUnreadable", "", why + "get nodes/configz"}};
  scene.facts.diagnostics = {{"NodePodsUnreadable", "", why + "watch pods"},
                             {"NodeUnreadable", "", why + "watch nodes"}};
  const Observation seen = scene.Look();
  EXPECT_EQ(ConditionOf(seen, "ConfigKnown"), "True KnownByFiles");
  EXPECT_EQ(ConditionOf(seen, "StateKnown"), "True PodsByLogFolders");
  EXPECT_EQ(ConditionOf(seen, "NodeUnreadable"), "True PermissionMissing");
  std::string messages;
  for (const Condition& condition : seen.placement.conditions) messages += condition.message + "\n";
  EXPECT_THAT(messages, AllOf(HasSubstr(why + "get nodes/configz"), HasSubstr(why + "watch pods"),
                              HasSubstr(why + "watch nodes")));
  scene.facts.config.topology_policy.value.reset();
  EXPECT_EQ(ConditionOf(scene.Look(), "ConfigKnown"), "False PartlyUnknown");
}

TEST(JoinWithApiPods, CountsAPodThatTheApiServerDoesNotHave) {
  Scene scene(TwoNodes());
  scene.Add("llm-0", "uid-1", {On("4-7")});
  scene.facts.api_pods = {{Running("web-0", "uid-2")}};
  const Observation seen = scene.Look();
  ASSERT_NE(FindPod(seen, "llm-0"), nullptr);
  EXPECT_EQ(FindPod(seen, "llm-0")->containers.at(0).cpus, Cpus("4-7"));
  EXPECT_EQ(seen.placement.numa_nodes.at(0).free_cpus, Cpus("1-3,8-15"));
}

TEST(JoinWithApiPods, TellsTheLivingOfTwoFoldersOfAPodThatHoldsNothing) {
  Scene scene(TwoNodes());
  scene.Add("web-0", "uid-1", {On("")});
  scene.facts.state.pod_logs->push_back({"ml", "web-0", "uid-2"});
  scene.facts.api_pods = {{Running("web-0", "uid-2")}};
  EXPECT_THAT(scene.Look().placement.known_pods, ElementsAre("uid-2"));
}

TEST(JoinWithApiPods, KnowsBothUidsOfAStaticPod) {
  const std::string hash = "2ddda20ca430515db1a4a8714007dd04";
  Scene scene(TwoNodes());
  scene.Add("etcd-gpu-7", hash, {On("4-7")});
  scene.Enforce(hash, "c1", "4-7", "0");
  ApiPod mirror = Running("etcd-gpu-7", "uid-of-the-mirror");
  mirror.kubelet_uid = hash;
  scene.facts.api_pods = {{mirror}};
  const Observation seen = scene.Look();
  EXPECT_EQ(FindPod(seen, "etcd-gpu-7")->uid, "uid-of-the-mirror");
  EXPECT_EQ(FindPod(seen, "etcd-gpu-7")->kubelet_uid, hash);
  EXPECT_THAT(seen.placement.known_pods, ElementsAre("uid-of-the-mirror"));
  EXPECT_TRUE(FindPod(seen, "etcd-gpu-7")->containers[0].kernel.has_value());
  EXPECT_EQ(seen.placement.numa_nodes[0].free_cpus, Cpus("1-3,8-15"));
}

TEST(JoinWithApiPods, DoesNotBelieveAUidThatTheStateFilesRefute) {
  Scene scene(TwoNodes());
  scene.Add("llm-0", "uid-new", {On("4-7")});
  scene.facts.api_pods = {{Running("llm-0", "uid-old")}};  // we have not heard of the new one yet
  EXPECT_EQ(FindPod(scene.Look(), "llm-0")->uid, "uid-new");
}

TEST(JoinWithApiPods, NamesTheContainersOfCgroupsThatNoLinkNames) {
  Scene scene(TwoNodes());
  scene.Add("llm-0", "uid-1", {On("4-7")});
  scene.Enforce("uid-1", "c1", "0-31", "0-1");  // not its CPUs: only its name can tell
  scene.facts.container_names.clear();
  EXPECT_EQ(FindPod(scene.Look(), "llm-0")->alignment, Alignment::kAligned);
  ApiPod pod = Running("llm-0", "uid-1");
  pod.containers = {{"c1", "main"}};
  scene.facts.api_pods = {{pod}};
  EXPECT_EQ(FindPod(scene.Look(), "llm-0")->alignment, Alignment::kDrifted);
}

// kubernetes#132020: kubelets before 1.34.
TEST(ApiPods, ThatHaveEndedHoldNothingAlthoughTheKubeletListsThem) {
  for (const char* phase : {"Succeeded", "Failed"}) {
    Scene scene(TwoNodes());
    scene.AddDevice(Gpu("GPU-a", {0}));
    scene.Add("web-1", "uid-web", {On("2-3")});
    scene.facts.assignments->pods.push_back(PodOf("job-1", {On("2-3", {Gpu("GPU-a", {0})})}));
    scene.facts.assignments->diagnostics = {{"HeldTwice", "pod ml/web-1", "CPUs 2-3 …"}};
    scene.facts.api_pods = {{Ended("job-1", "uid-job", phase), Running("web-1", "uid-web")}};
    const Observation seen = scene.Look();
    EXPECT_EQ(FindPod(seen, "job-1"), nullptr);
    EXPECT_EQ(FindPod(seen, "web-1")->containers[0].cpus, Cpus("2-3"));
    EXPECT_EQ(seen.placement.numa_nodes[0].free_cpus, Cpus("1,4-15"));
    EXPECT_EQ(FindResource(seen, "node-0", "nvidia.com/gpu")->available, 1);
    EXPECT_THAT(seen.placement.known_pods, ElementsAre("uid-web"));
    EXPECT_THAT(Codes(seen), Contains("EndedPodListed"));
    EXPECT_THAT(Codes(seen), Not(Contains("HeldTwice")));
  }
}

TEST(ApiPods, ThatHaveEndedGiveBackWhatTheStateFilesStillHaveOfThem) {
  Scene scene(TwoNodes());
  scene.Add("job-1", "uid-job", {On("2-3")});
  scene.facts.api_pods = {{Ended("job-1", "uid-job", "Succeeded")}};
  EXPECT_EQ(scene.Look().placement.numa_nodes[0].free_cpus, Cpus("1-15"));
}

TEST(ApiPods, OfWhichANewOneWasMadeAreNotTakenForIt) {
  Scene scene(TwoNodes());
  scene.Add("job-1", "uid-new", {On("2-3")});
  scene.facts.api_pods = {{Ended("job-1", "uid-old", "Failed")}};  // not heard of the new one yet
  const Observation seen = scene.Look();
  EXPECT_EQ(FindPod(seen, "job-1")->uid, "uid-new");
  EXPECT_EQ(seen.placement.numa_nodes[0].free_cpus, Cpus("1,4-15"));
}

// kubernetes#100211: kubelets up to 1.20 list the shared pool for who has no CPUs of his own.
TEST(ApiPods, ThatAreNotGuaranteedHaveNoExclusiveCpus) {
  Scene scene(TwoNodes());
  scene.Add("llm-0", "uid-1", {On("4-7")});
  scene.Add("web-0", "uid-2", {On("")});
  scene.facts.assignments->pods[1].containers[0].cpus = Cpus("0-3,8-31");
  ApiPod burstable = Running("web-0", "uid-2");
  burstable.qos_class = "Burstable";
  scene.facts.api_pods = {{Running("llm-0", "uid-1"), burstable}};
  const Observation seen = scene.Look();
  EXPECT_EQ(FindPod(seen, "web-0"), nullptr);
  EXPECT_THAT(seen.placement.known_pods, ElementsAre("uid-1", "uid-2"));
  EXPECT_EQ(seen.placement.numa_nodes[0].free_cpus, Cpus("1-3,8-15"));
  EXPECT_THAT(Codes(seen), Contains("SharedPoolListed"));
}

TEST(ApiPods, KeepCpusThatTheStateFileHasAsSomebodysOwn) {
  Scene scene(TwoNodes());
  scene.Add("llm-0", "uid-new", {On("4-7")});
  ApiPod burstable = Running("llm-0", "uid-old");
  burstable.qos_class = "Burstable";  // the one that had the name before
  scene.facts.api_pods = {{burstable}};
  EXPECT_EQ(FindPod(scene.Look(), "llm-0")->containers[0].cpus, Cpus("4-7"));
}

TEST(ApiPods, ChangeNothingWhereTheKubeletIsRightWhateverTheirOrder) {
  Scene scene(TwoNodes());
  scene.Add("llm-0", "uid-1", {On("4-7")});
  scene.Add("llm-1", "uid-2", {On("16-19")});
  scene.Add("web-0", "uid-3", {On("")});
  const Observation without = scene.Look();
  scene.facts.api_pods = {
      {Running("web-0", "uid-3"), Running("llm-1", "uid-2"), Running("llm-0", "uid-1")}};
  EXPECT_EQ(scene.Look(), without);
  std::ranges::reverse(*scene.facts.api_pods);
  EXPECT_EQ(scene.Look(), without);
  scene.facts.api_pods = std::vector<ApiPod>();  // nothing heard of any of them yet
  EXPECT_EQ(scene.Look(), without);
}

}  // namespace
}  // namespace placement
