#include "scheduler/ledger/ledger.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <string>

#include "test/scheduler/room.h"

// The accounts of one node, standing by standing. How it all goes together is tried in
// cluster_test.cc; trouble that others have had is in ledger_cases_test.cc.
namespace scheduler::ledger {
namespace {

using admission::Alike;
using admission::NodeSpec;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

// Two NUMA nodes of 16 CPUs, 4 GPUs and 64 GiB each, single-numa-node.
NodeSpec TwoNodes() { return {.numa = Alike(2, {.gpus = 4})}; }

class LedgerTest : public testing::Test {
 protected:
  LedgerTest() { room.Observe(); }
  Room room{TwoNodes()};
};

TEST_F(LedgerTest, ChargesABoundPodWhereTheKubeletWouldPutIt) {
  room.Bind("p", "12 CPU 8Gi 1 GPU");
  EXPECT_EQ(room.Charged("p"), "Bound on 0");
  EXPECT_EQ(room.FreeCpus(), "4 16");
  EXPECT_EQ(room.FreeGpus(), "3 4");
}

TEST_F(LedgerTest, LetsAnObservationReplaceThePrediction) {
  room.Bind("big", "12 CPU 8Gi");
  room.Bind("p", "6 CPU 8Gi");
  EXPECT_EQ(room.Charged("p"), "Bound on 1");
  room.Admit("p");  // before the other: it finds NUMA node 0 empty
  room.Observe();
  EXPECT_EQ(room.Charged("p"), "Observed on 0");
  EXPECT_EQ(room.Charged("big"), "Bound on 1");
  EXPECT_EQ(room.Count(DivergenceKind::kOtherNumaNode), 1);
  EXPECT_EQ(room.view().divergences.back().message, "it is on NUMA nodes 0, and was expected on 1");
}

TEST_F(LedgerTest, TakesAPodThatTheObservationLacksForOneThatIsNotSeenYet) {
  room.Bind("p", "4 CPU 8Gi 1 GPU");
  room.Observe();
  EXPECT_EQ(room.Charged("p"), "Bound on 0");
}

TEST_F(LedgerTest, WaitsUntilEveryContainerHoldsWhatItMust) {
  room.Bind("p", "4 CPU 8Gi; 4 CPU 8Gi 1 GPU");
  room.kubelet.Add("p", "4 CPU 8Gi");  // scope container: the second container is yet to come
  room.Observe();
  EXPECT_EQ(room.Charged("p"), "Bound on 0");
  EXPECT_EQ(room.FreeCpus(), "8 16") << "charged once, not one and a half times";
  room.Release("p");
  room.Admit("p");
  room.Observe();
  EXPECT_EQ(room.Charged("p"), "Observed on 0");
}

TEST_F(LedgerTest, BelievesOfARunningPodWhatTheAgentSawLongAfterItRan) {
  room.Bind("p", "4 CPU 8Gi 1 GPU");
  placement::NodePlacement seen = room.Published();
  seen.known_pods = {"p"};  // listed, and nothing is given to it yet
  room.Apply(PlacementChanged{seen});
  room.Renew();
  room.Runs("p");
  EXPECT_EQ(room.Charged("p"), "Admitted on 0") << "the observation may be older than its status";
  room.Wait(seconds(30));
  room.Renew();
  EXPECT_EQ(room.Charged("p"), "");
}

TEST_F(LedgerTest, KeepsATerminatingPodUntilTheKubeletHasLetGo) {
  room.Bind("p", "16 CPU 8Gi 4 GPU");
  room.Admit("p");
  room.Observe();
  room.Terminates("p");
  EXPECT_EQ(room.FreeGpus(), "0 4");
  room.Release("p");
  room.Observe();  // the kubelet is faster than the API
  room.Vanishes("p");
  EXPECT_EQ(room.FreeGpus(), "4 4");
  EXPECT_EQ(room.Count(DivergenceKind::kMissingPod), 0);
}

TEST_F(LedgerTest, KeepsAForceDeletedPodThatTheKubeletStillHolds) {
  room.Bind("p", "16 CPU 8Gi 4 GPU");
  room.Admit("p");
  room.Observe();
  room.Vanishes("p");
  EXPECT_EQ(room.Charged("p"), "Observed on 0");
  room.Release("p");
  room.Observe();
  EXPECT_EQ(room.Charged("p"), "");
  EXPECT_EQ(room.FreeGpus(), "4 4");
}

TEST_F(LedgerTest, KeepsADeletedPodThatNobodyHasSeenUntilTheAgentHasLookedAgain) {
  room.Bind("p", "4 CPU 8Gi 1 GPU");
  room.Vanishes("p");
  EXPECT_EQ(room.Charged("p"), "Bound on 0") << "the kubelet may just be admitting it";
  room.Wait(seconds(30));
  room.Renew();
  EXPECT_EQ(room.Charged("p"), "");
}

TEST_F(LedgerTest, WithoutAnAgentAtWorkAPodIsGoneWhenTheApiSaysSo) {
  room.Bind("p", "4 CPU 8Gi 1 GPU");
  room.Admit("p");
  room.Observe();
  room.Wait(minutes(3));
  room.Vanishes("p");
  EXPECT_EQ(room.Charged("p"), "");
  EXPECT_EQ(room.FreeGpus(), "4 4");
}

TEST_F(LedgerTest, ChargesAMissingPodWhereItWasAsFarAsNobodyElseIsThere) {
  room.Bind("p", "4 CPU 8Gi 2 GPU");
  room.Admit("p");
  room.Observe();
  room.Runs("p");
  room.Release("p");
  room.Bind("q", "4 CPU 8Gi 1 GPU");
  room.Admit("q");  // on the same CPUs, and one of the GPUs
  room.Observe();
  EXPECT_EQ(room.Charged("p"), "Missing on 0");
  EXPECT_EQ(room.FreeGpus(), "2 4");
  EXPECT_EQ(room.Count(DivergenceKind::kMissingPod), 0);
  room.Wait(seconds(30));
  room.Renew();
  EXPECT_EQ(room.Count(DivergenceKind::kMissingPod), 1);
}

TEST_F(LedgerTest, ChargesWhatTheKubeletHoldsForAPodThatTheApiDoesNotHave) {
  room.kubelet.Add("ghost", "4 CPU 8Gi 3 GPU");
  room.Observe();
  EXPECT_EQ(room.FreeGpus(), "1 4");
  EXPECT_EQ(room.Count(DivergenceKind::kUnknownPod), 0) << "the pod watch may be late";
  room.Wait(seconds(30));
  room.Renew();
  EXPECT_EQ(room.Count(DivergenceKind::kUnknownPod), 1);
  EXPECT_EQ(room.Ask("4 CPU 8Gi 4 GPU"), "Yes") << "one pod does not block a node";
}

TEST_F(LedgerTest, JoinsAPodWhoseUidTheAgentCouldNotTellByItsName) {
  room.Bind("p", "4 CPU 8Gi 1 GPU");
  room.Admit("p");
  placement::NodePlacement seen = room.Published();
  seen.pods.front().uid = "";
  seen.known_pods.clear();
  room.Apply(PlacementChanged{seen});
  EXPECT_EQ(room.FreeGpus(), "3 4") << "once, not twice";
  EXPECT_TRUE(room.view().waiting.empty());
}

TEST_F(LedgerTest, CountsLeasesOfPodsThatMayComeForTwoSeconds) {
  room.Lease("p", "16 CPU 8Gi 4 GPU");
  room.Lease("q", "16 CPU 8Gi 4 GPU");
  EXPECT_EQ(room.Ask("4 CPU 8Gi 1 GPU"), "Depends PodsWait");
  room.Wait(milliseconds(1999));
  EXPECT_EQ(room.Charged("q"), "Leased on 1");
  room.Wait(milliseconds(1));
  EXPECT_EQ(room.Ask("4 CPU 8Gi 1 GPU"), "Yes");
}

TEST_F(LedgerTest, EndsALeaseWhenThePodIsBoundFilteredAgainOrDeleted) {
  room.Lease("p", "4 CPU 8Gi 1 GPU");
  room.Bind("p", "4 CPU 8Gi 1 GPU");
  EXPECT_EQ(room.FreeGpus(), "3 4");
  EXPECT_EQ(room.Charged("p"), "Bound on 0");
  room.Lease("q", "4 CPU 8Gi 1 GPU");
  room.Apply(LeaseTaken{room.pods["q"], {"other"}, room.now + seconds(2)});
  EXPECT_EQ(room.Charged("q"), "");
  room.Lease("r", "4 CPU 8Gi 1 GPU");
  room.Vanishes("r");
  EXPECT_EQ(room.Charged("r"), "");
}

TEST_F(LedgerTest, SendsNoSuchPodAfterARejectionUntilTheNodeChanges) {
  const std::string words = "4 CPU 8Gi 1 GPU";
  room.Bind("p", words);
  room.Fails("p", "TopologyAffinityError");
  EXPECT_EQ(room.Charged("p"), "");
  EXPECT_EQ(room.Ask(words), "No RefusedRecently");
  EXPECT_EQ(room.Ask("5 CPU 8Gi 1 GPU"), "Yes") << "another shape";
  room.kubelet.Add("other", "1 CPU 1Gi");
  room.Observe();
  EXPECT_EQ(room.Ask(words), "Yes");
}

TEST_F(LedgerTest, SendsSuchPodsAgainToAKubeletOfAnotherConfiguration) {
  room.Bind("p", "4 CPU 8Gi 1 GPU");
  room.Fails("p", "TopologyAffinityError");
  EXPECT_EQ(room.Ask("4 CPU 8Gi 1 GPU"), "No RefusedRecently");
  room.facts.kubelet.topology_policy = "restricted";
  room.Observe();
  EXPECT_EQ(room.Ask("4 CPU 8Gi 1 GPU"), "Yes");
}

TEST_F(LedgerTest, SendsSuchPodsAgainAfterFiveMinutes) {
  room.Bind("p", "4 CPU 8Gi 1 GPU");
  room.Apply(PodRejected{"p", "TopologyAffinityError"});  // the Event is faster than the status
  room.Wait(minutes(5) - milliseconds(1));
  EXPECT_EQ(room.Ask("4 CPU 8Gi 1 GPU"), "No RefusedRecently");
  room.Wait(milliseconds(1));
  EXPECT_EQ(room.Ask("4 CPU 8Gi 1 GPU"), "Yes");
}

TEST_F(LedgerTest, KeepsARejectionThatItHadNotPredictedWithWhatItKnewThen) {
  room.Bind("p", "4 CPU 8Gi 1 GPU");
  room.Fails("p", "SMTAlignmentError");
  room.Fails("p", "SMTAlignmentError");
  room.kubelet.Add("other", "16 CPU 8Gi 4 GPU");
  room.Observe();
  ASSERT_EQ(room.ledger.wrong_answers().size(), 1U);
  const reconcile::WrongYes& wrong = room.ledger.wrong_answers().front();
  EXPECT_EQ(wrong.pod, "ns/p");
  EXPECT_EQ(wrong.node, "n");
  EXPECT_EQ(wrong.reason, "SMTAlignmentError");
  EXPECT_EQ(Predict(*wrong.view, wrong.shape->request).certainty, Certainty::kYes);
  EXPECT_EQ(room.Count(DivergenceKind::kRefusedAfterYes), 1);
}

TEST_F(LedgerTest, CountsARejectionAsNoSurpriseWhereItHadSaidNo) {
  room.BindElsewhere("p", "17 CPU 8Gi");
  room.Fails("p", "TopologyAffinityError");
  EXPECT_EQ(room.Count(DivergenceKind::kRefusedAfterYes), 0);
  EXPECT_EQ(room.Count(DivergenceKind::kForeignPod), 1);
}

TEST_F(LedgerTest, TellsForeignPodsFromThoseThatWereThereWhenItBegan) {
  room.Bind("ours", "1 CPU 1Gi");
  room.Lease("leased", "1 CPU 1Gi");
  room.BindElsewhere("leased", "1 CPU 1Gi");  // by the scheduler that we gave the lease for
  room.BindElsewhere("theirs", "1 CPU 1Gi");
  EXPECT_EQ(room.Count(DivergenceKind::kForeignPod), 1);
  EXPECT_EQ(room.Charged("theirs"), "Bound on 0") << "charged at once";
  Ledger again;
  for (const auto& [uid, pod] : room.pods) again.Apply({room.now, PodChanged{pod, true}});
  EXPECT_EQ(again.divergences()[static_cast<std::size_t>(DivergenceKind::kForeignPod)], 0);
}

TEST_F(LedgerTest, IsTheSameAfterARestartThatReadsTheApiAloneInAnyOrder) {
  room.Apply(NodeChanged{"n", "uid-1", "boot-0", {}});
  room.Bind("seen", "4 CPU 8Gi 1 GPU");
  room.Admit("seen");
  room.Observe();
  room.Bind("bound", "12 CPU 8Gi 1 GPU");
  room.BindElsewhere("foreign", "2 CPU 8Gi");
  room.Runs("foreign");
  Ledger again;
  for (const auto& [uid, pod] : room.pods) again.Apply({room.now, PodChanged{pod, true}});
  again.Apply({room.now, AgentAlive{"n", room.now}});
  again.Apply({room.now, PlacementChanged{room.Published()}});
  again.Apply({room.now, NodeChanged{"n", "uid-1", "boot-0", {}}});
  const Snapshot snapshot = again.Take();
  const NodeView& view = *snapshot.Find("n");
  EXPECT_EQ(view.confidence, Confidence::kObserved);
  ASSERT_EQ(view.waiting.size(), 2U);
  for (std::size_t i = 0; i < view.waiting.size(); ++i) {
    EXPECT_EQ(view.waiting[i].uid, room.view().waiting[i].uid);
    EXPECT_EQ(view.waiting[i].standing, room.view().waiting[i].standing);
    EXPECT_EQ(view.waiting[i].numa_nodes, room.view().waiting[i].numa_nodes);
  }
  EXPECT_EQ(view.base->pool, room.view().base->pool);
  EXPECT_EQ(view.expected->pool, room.view().expected->pool);
}

TEST_F(LedgerTest, NoticesThatTheKubeletIsAnotherThanBefore) {
  room.facts.kubelet.started_at = room.now + seconds(5);
  room.Observe();
  EXPECT_EQ(room.Count(DivergenceKind::kKubeletRestarted), 1);
  room.facts.kubelet.topology_policy = "restricted";
  room.Observe();
  EXPECT_EQ(room.Count(DivergenceKind::kConfigurationChanged), 1);
  EXPECT_EQ(room.Count(DivergenceKind::kCapacityChanged), 0);
  placement::NodePlacement fewer = room.Published();
  fewer.devices.pop_back();
  room.Apply(PlacementChanged{fewer});
  EXPECT_EQ(room.Count(DivergenceKind::kCapacityChanged), 1);
}

TEST_F(LedgerTest, ForgetsWhatItKnewOfANodeThatWasCreatedAnew) {
  room.Apply(NodeChanged{"n", "uid-1", "boot-0", {}});
  room.kubelet.Add("old", "4 CPU 8Gi 4 GPU");
  room.Observe();
  room.Apply(NodeChanged{"n", "uid-2", "boot-1", {}});
  EXPECT_EQ(room.Ask("1 CPU 1Gi"), "Unknown NoData");
  EXPECT_EQ(room.Count(DivergenceKind::kNodeRecreated), 1);
}

TEST_F(LedgerTest, KnowsANodeOfAnotherUidForANewOneThoughTheOldOneWasGone) {
  room.Apply(NodeChanged{"n", "uid-1", "boot-0", {}});
  room.Apply(NodeGone{"n"});
  room.Apply(NodeChanged{"n", "uid-1", "boot-0", {}});
  EXPECT_EQ(room.Count(DivergenceKind::kNodeRecreated), 0) << "it is the same: told anew";
  room.Apply(NodeGone{"n"});
  room.Apply(NodeChanged{"n", "uid-2", "boot-1", {}});
  EXPECT_EQ(room.Count(DivergenceKind::kNodeRecreated), 1);
}

TEST_F(LedgerTest, KeepsTheWordOfAnAgentThatWasFasterThanTheNewNode) {
  room.Apply(NodeChanged{"n", "uid-1", "boot-0", {}});
  room.facts.boot_id = "boot-1";
  room.Observe();
  room.Apply(NodeChanged{"n", "uid-2", "boot-1", {}});
  EXPECT_EQ(room.Ask("4 CPU 8Gi 4 GPU"), "Yes");
}

TEST_F(LedgerTest, FindsAForceDeletedPodAgainWhenTheAgentSpeaksUpInTime) {
  room.Bind("p", "4 CPU 8Gi 4 GPU");
  room.facts.conditions = {{"Settled", "False", "KubeletStarting", ""}};
  room.Observe();
  room.Vanishes("p");
  EXPECT_EQ(room.Charged("p"), "") << "without an agent at work the API has the last word";
  room.facts.conditions.clear();
  room.Observe();
  EXPECT_EQ(room.Charged("p"), "Bound on 0") << "the kubelet may just be admitting it";
}

TEST(Snapshot, StaysAsItWasWhateverHappensAfterwards) {
  Room room(TwoNodes());
  room.Observe();
  const Snapshot before = room.ledger.Take();
  const NodeView* view = before.Find("n");
  room.Bind("p", "12 CPU 8Gi 1 GPU");
  EXPECT_EQ(before.Find("n"), view);
  EXPECT_TRUE(view->waiting.empty());
  EXPECT_EQ(room.snapshot().Find("n")->waiting.size(), 1U);
}

TEST(Snapshot, ChangesOnlyTheNodesThatAnEventIsAbout) {
  Room room(TwoNodes());
  room.Observe();
  placement::NodePlacement other = room.Published();
  other.node_name = "m";
  room.Apply(PlacementChanged{other});
  const Snapshot before = room.ledger.Take();
  room.Bind("p", "12 CPU 8Gi 1 GPU");
  const Snapshot after = room.ledger.Take();
  EXPECT_EQ(before.Find("m"), after.Find("m"));
  EXPECT_NE(before.Find("n"), after.Find("n"));
  EXPECT_EQ(before.Find("m")->base->machine, before.Find("n")->base->machine) << "nodes alike";
}

TEST(Snapshot, LosesANodeWhoseObjectsAreGone) {
  Room room(TwoNodes());
  room.Apply(NodeChanged{"n", "uid-1", "boot-0", {}});
  room.Observe();
  room.Apply(NodeGone{"n"});
  EXPECT_NE(room.snapshot().Find("n"), nullptr) << "its agent's object goes with it, in a moment";
  room.Apply(PlacementGone{"n"});
  EXPECT_EQ(room.snapshot().Find("n"), nullptr);
}

}  // namespace
}  // namespace scheduler::ledger
