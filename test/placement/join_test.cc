#include "placement/join.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/placement/scene.h"

namespace placement {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Not;

podresources::Container OnCpus(const std::string& cpus) {
  return {.name = "main", .cpus = Cpus(cpus), .memory = {}, .devices = {}, .claims = {}};
}

TEST(Join, GivesAPodTheUidWhoseEntryEqualsWhatItHolds) {
  Scene scene(TwoNodes());
  scene.Add("llm-0", "uid-1", {OnCpus("4-7")});
  const Joined joined = JoinPods(*scene.facts.assignments, scene.facts.state);
  ASSERT_EQ(joined.pods.size(), 1U);
  EXPECT_EQ(joined.pods[0].uid, "uid-1");
  EXPECT_THAT(joined.active, ElementsAre("uid-1"));
  EXPECT_THAT(joined.diagnostics, IsEmpty());
}

TEST(Join, DoesNotLetARecreatedPodInheritTheUidOfTheDeadOne) {
  Scene scene(TwoNodes());
  scene.Add("llm-0", "uid-dead", {OnCpus("4-7")});
  scene.facts.assignments->pods[0].containers[0].cpus =
      Cpus("20-23");  // the new one, no folder yet
  const Joined joined = JoinPods(*scene.facts.assignments, scene.facts.state);
  EXPECT_EQ(joined.pods[0].uid, "");
  EXPECT_THAT(joined.active, IsEmpty());
  ASSERT_EQ(joined.diagnostics.size(), 1U);
  EXPECT_EQ(joined.diagnostics[0].code, "PodUidUnknown");
  EXPECT_EQ(joined.diagnostics[0].subject, "pod ml/llm-0");
}

TEST(Join, TellsTheLivingOfTwoFoldersByTheStateFile) {
  Scene scene(TwoNodes());
  scene.Add("llm-0", "uid-new", {OnCpus("4-7")});
  scene.facts.state.pod_logs->push_back({"ml", "llm-0", "uid-old"});
  scene.facts.state.cpu->entries["uid-old"]["main"] = Cpus("8-9");
  const Joined joined = JoinPods(*scene.facts.assignments, scene.facts.state);
  EXPECT_EQ(joined.pods[0].uid, "uid-new");
  EXPECT_THAT(joined.active, ElementsAre("uid-new"));
}

TEST(Join, GivesAPodThatHoldsNothingTheUidOfItsOnlyFolder) {
  Scene scene(TwoNodes());
  scene.Add("web-0", "uid-1", {OnCpus("")});
  EXPECT_EQ(JoinPods(*scene.facts.assignments, scene.facts.state).pods[0].uid, "uid-1");
  scene.facts.state.pod_logs->push_back({"ml", "web-0", "uid-2"});
  EXPECT_EQ(JoinPods(*scene.facts.assignments, scene.facts.state).pods[0].uid, "");
}

TEST(Join, KnowsAStaticPodByTheKubeletsOwnUid) {
  const std::string hash = "2ddda20ca430515db1a4a8714007dd04";
  Scene scene(TwoNodes());
  scene.Add("etcd-gpu-7", hash, {OnCpus("4-7")});
  const Joined joined = JoinPods(*scene.facts.assignments, scene.facts.state);
  EXPECT_EQ(joined.pods[0].uid, "");
  EXPECT_EQ(joined.pods[0].kubelet_uid, hash);
  EXPECT_THAT(joined.active, ElementsAre(hash));
  EXPECT_THAT(scene.Look().placement.known_pods, IsEmpty());
}

TEST(Join, KeepsTheEntryOfAPodActiveWhoseFolderIsMissing) {
  Scene scene(TwoNodes());
  scene.Add("llm-0", "uid-1", {OnCpus("4-7")});
  scene.facts.state.pod_logs->clear();
  const Joined joined = JoinPods(*scene.facts.assignments, scene.facts.state);
  EXPECT_EQ(joined.pods[0].uid, "");
  EXPECT_THAT(joined.active, ElementsAre("uid-1"));
}

TEST(Join, SaysOnceThatTheFoldersCannotBeRead) {
  Scene scene(TwoNodes());
  scene.Add("llm-0", "uid-1", {OnCpus("4-7")});
  scene.Add("llm-1", "uid-2", {OnCpus("8-9")});
  scene.facts.state.pod_logs.reset();
  const Joined joined = JoinPods(*scene.facts.assignments, scene.facts.state);
  EXPECT_THAT(joined.active, ElementsAre("uid-1", "uid-2"));
  ASSERT_EQ(joined.diagnostics.size(), 1U);
  EXPECT_EQ(joined.diagnostics[0].code, "PodUidsUnknown");
}

TEST(Join, TakesDevicesAloneAsProofOnlyFromTheCheckpoint) {
  Scene scene(TwoNodes());
  podresources::Container container = OnCpus("");
  container.devices = {Gpu("GPU-a", {0})};
  scene.Add("llm-0", "uid-1", {container});
  EXPECT_EQ(JoinPods(*scene.facts.assignments, scene.facts.state).pods[0].uid, "uid-1");
  scene.facts.state.devices.reset();
  EXPECT_EQ(JoinPods(*scene.facts.assignments, scene.facts.state).pods[0].uid, "");
}

TEST(Join, IsNotMisledByAnInitContainerThatOnlyTheStateFileHas) {
  Scene scene(TwoNodes());
  scene.Add("llm-0", "uid-1", {OnCpus("4-5")});
  scene.facts.state.cpu->entries["uid-1"]["init"] = Cpus("4-7");
  EXPECT_EQ(JoinPods(*scene.facts.assignments, scene.facts.state).pods[0].uid, "uid-1");
}

TEST(Join, ListsAllPodsWhoseUidIsKnownAlsoThoseThatHoldNothing) {
  Scene scene(TwoNodes());
  scene.Add("b", "uid-b", {OnCpus("")});
  scene.Add("a", "uid-a", {OnCpus("4-7")});
  const Observation seen = scene.Look();
  EXPECT_THAT(seen.placement.known_pods, ElementsAre("uid-a", "uid-b"));
  EXPECT_EQ(FindPod(seen, "b"), nullptr);
  EXPECT_THAT(Codes(seen), Not(Contains("PodUidUnknown")));
}

}  // namespace
}  // namespace placement
