#include <gtest/gtest.h>

#include <string>

#include "test/scheduler/nrt_of.h"
#include "test/scheduler/room.h"

// Nodes that are known less well: their agents are silent or older, or there is none.
namespace scheduler::ledger {
namespace {

using admission::Alike;
using admission::NodeSpec;
using std::chrono::minutes;
using std::chrono::seconds;

// Two NUMA nodes of 16 CPUs, 4 GPUs and 64 GiB each, single-numa-node.
NodeSpec TwoNodes() { return {.numa = Alike(2, {.gpus = 4})}; }

class LedgerOfSilentAgents : public testing::Test {
 protected:
  LedgerOfSilentAgents() { room.Observe(); }
  Room room{TwoNodes()};
};

TEST_F(LedgerOfSilentAgents, TrustsASilentAgentLessStepByStep) {
  EXPECT_EQ(room.view().confidence, Confidence::kObserved);
  room.Wait(seconds(89));
  EXPECT_EQ(room.view().confidence, Confidence::kObserved);
  room.Wait(seconds(1));
  EXPECT_EQ(room.view().confidence, Confidence::kStale);
  room.Wait(minutes(9));
  EXPECT_EQ(room.view().confidence, Confidence::kSilent);
  const Prediction prediction =
      Predict(room.view(), admission::MakeRequest(admission::PodOf("p", "1 CPU 1Gi")));
  EXPECT_EQ(prediction.certainty, Certainty::kYes);
  EXPECT_EQ(Sentence(prediction),
            "the kubelet would admit the pod; its agent has been silent for more than 10 minutes");
  room.Observe();
  EXPECT_EQ(room.view().confidence, Confidence::kObserved);
}

TEST_F(LedgerOfSilentAgents, TakesALeaseThatIsToldAgainForNoSignOfLife) {
  const base::Time renewed = room.now;
  room.Wait(seconds(80));
  room.Apply(AgentAlive{"n", renewed});  // the watch broke, and all is listed anew
  room.Wait(seconds(10));
  EXPECT_EQ(room.view().confidence, Confidence::kStale);
}

TEST_F(LedgerOfSilentAgents, KeepsASignOfLifeThatIsToldBeforeTheNode) {
  Ledger ledger;  // which begins; its watches come in any order
  ledger.Apply({room.now, AgentAlive{"n", room.now}});
  EXPECT_TRUE(ledger.Take().nodes().empty());
  ledger.Apply({room.now, PlacementChanged{room.Published()}});
  EXPECT_EQ(ledger.Take().nodes().front()->confidence, Confidence::kObserved);
}

TEST_F(LedgerOfSilentAgents, TakesAnAgentThatCannotAskTheKubeletForASilentOne) {
  room.facts.conditions = {{"PodResourcesReachable", "False", "NotAnswering", ""}};
  room.Observe();
  EXPECT_EQ(room.view().confidence, Confidence::kStale);
}

TEST(LedgerOfOlderAgents, FillsInWhatTheObjectLacksAndSaysSo) {
  Room room(TwoNodes());
  placement::NodePlacement old = room.Published();
  for (placement::NumaNodePlacement& numa : old.numa_nodes) {
    numa.core_groups.clear();
    numa.memory_group.reset();
  }
  old.kubelet.topology_scope = "";
  room.Apply(PlacementChanged{old});
  ASSERT_EQ(room.view().notes.size(), 3U);
  EXPECT_EQ(room.view().notes[0].code, "CoresMissing");
  EXPECT_EQ(room.view().notes[1].code, "MemoryGroupMissing");
  EXPECT_EQ(room.view().notes[2].code, "ScopeMissing");
  EXPECT_EQ(room.view().base->machine->grade, admission::Grade::kCoarse);
  EXPECT_EQ(room.Ask("16 CPU 8Gi 4 GPU"), "Yes");
}

TEST(LedgerOfOlderAgents, LowersTheGradeForThosePodsAloneThatNeedWhatIsMissing) {
  Room room(TwoNodes());
  const auto grade = [&](const std::string& words) {
    return Predict(room.view(), admission::MakeRequest(admission::PodOf("p", words))).grade;
  };
  placement::NodePlacement old = room.Published();
  old.numa_nodes.front().core_groups.clear();
  room.Apply(PlacementChanged{old});
  EXPECT_EQ(grade("4 CPU 8Gi 1 GPU"), admission::Grade::kCoarse);
  EXPECT_EQ(grade("500m CPU 8Gi 1 GPU"), admission::Grade::kExact) << "it shares CPUs";
  old = room.Published();
  old.kubelet.topology_scope = "";
  room.Apply(PlacementChanged{old});
  EXPECT_EQ(grade("4 CPU 8Gi 1 GPU"), admission::Grade::kExact)
      << "one container: scopes are alike";
  EXPECT_EQ(grade("4 CPU 8Gi 1 GPU; 1 CPU 1Gi"), admission::Grade::kCoarse);
  old.kubelet.version = "";
  room.Apply(PlacementChanged{old});
  EXPECT_EQ(grade("500m CPU 8Gi"), admission::Grade::kCoarse) << "rules differ by release";
}

TEST(LedgerOfOlderAgents, SaysNothingOfANodeWhosePolicyIsNotTold) {
  Room room(TwoNodes());
  room.Apply(NodeChanged{"n", "uid-1", "boot-0", {}});
  placement::NodePlacement old = room.Published();
  old.kubelet.topology_policy = "";
  room.Apply(PlacementChanged{old});
  EXPECT_EQ(room.Ask("16 CPU 8Gi 4 GPU"), "Unknown NoData");
  EXPECT_EQ(room.view().notes.front().message, "it does not tell the topology manager's policy");
}

class LedgerWithoutAgent : public testing::Test {
 protected:
  LedgerWithoutAgent() { Publish(); }
  void Publish() { room.Apply(TopologyChanged{Nrt()}); }
  placement::NodeResourceTopology Nrt() {
    placement::NodeResourceTopology nrt = admission::NrtOf(room.facts, room.kubelet.state);
    nrt.name = "n";
    return nrt;
  }
  Room room{TwoNodes()};
};

TEST_F(LedgerWithoutAgent, ChargesThePodsOfTheApiByPrediction) {
  room.BindElsewhere("p", "12 CPU 8Gi 1 GPU");
  room.Runs("p");
  EXPECT_EQ(room.view().confidence, Confidence::kPredicted);
  EXPECT_EQ(room.FreeCpus(), "4 16");
  EXPECT_EQ(room.Ask("6 CPU 8Gi 4 GPU"), "Yes");
  EXPECT_EQ(room.Ask("16 CPU 8Gi 4 GPU; 6 CPU 8Gi"), "No Refused");
}

TEST_F(LedgerWithoutAgent, ChargesAPodOnceThatTheExporterCountsToo) {
  room.Bind("p", "12 CPU 8Gi 1 GPU");
  room.Admit("p");
  Publish();
  EXPECT_EQ(room.FreeCpus(), "4 16");
  room.Runs("p");
  EXPECT_EQ(room.FreeCpus(), "4 16");
  room.Vanishes("p");
  EXPECT_EQ(room.FreeCpus(), "16 16") << "though the exporter is a minute late";
}

TEST_F(LedgerWithoutAgent, KeepsTheWordOfAnExporterThatWasFasterThanTheNewNode) {
  room.Apply(NodeChanged{"n", "uid-1", "boot-0", {}});
  Publish();
  room.Apply(NodeChanged{"n", "uid-2", "boot-1", {}});
  EXPECT_EQ(room.view().confidence, Confidence::kPredicted) << "it may never write it again";
}

TEST_F(LedgerWithoutAgent, BelievesTheExporterWherePodsAreIfItCountsTheSame) {
  room.Bind("a", "12 CPU 8Gi");
  room.Bind("b", "6 CPU 8Gi");
  room.Admit("b");
  room.Admit("a");  // in another order than we expect: b is on 0, a on 1
  EXPECT_EQ(room.FreeCpus(), "4 10");
  Publish();
  EXPECT_EQ(room.FreeCpus(), "10 4");
}

}  // namespace
}  // namespace scheduler::ledger
