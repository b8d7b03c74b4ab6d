#include <gtest/gtest.h>

#include <string>

#include "test/scheduler/nrt_of.h"
#include "test/scheduler/room.h"

// Trouble that NUMA-aware schedulers have had with their accounts, each as an input and what comes
// of it here. C… are the numbers of the case collection; "Cache…" are ways in which
// scheduler-plugins' OverReserve cache gets stuck or wrong, "Issue…" reports of users.
namespace scheduler::ledger {
namespace {

using admission::Alike;
using admission::NodeSpec;
using std::chrono::minutes;
using std::chrono::seconds;

NodeSpec TwoNodes() { return {.numa = Alike(2, {.gpus = 4})}; }

class LedgerCase : public testing::Test {
 protected:
  LedgerCase() { room.Observe(); }
  placement::NodeResourceTopology Nrt() {
    placement::NodeResourceTopology nrt = admission::NrtOf(room.facts, room.kubelet.state);
    nrt.name = "n";
    return nrt;
  }
  Room room{TwoNodes()};
};

// ---- Group (h)

TEST_F(LedgerCase, C127WithoutAFingerprintPodsAreComparedOneByOne) {
  room.Apply(PlacementGone{"n"});
  room.Apply(TopologyChanged{Nrt()});  // no fingerprint in it
  room.Bind("p", "12 CPU 8Gi 1 GPU");
  EXPECT_EQ(room.FreeCpus(), "4 16") << "the scheduler has one more: it is not started yet, kept";
  room.kubelet.Add("theirs", "2 CPU 8Gi");
  room.Apply(TopologyChanged{Nrt()});
  EXPECT_EQ(room.FreeCpus(), "4 16") << "the agent has another one: kept pessimistic";
}

TEST_F(LedgerCase, C129LaterContainersFindWhatEarlierOnesLeft) {
  Room four({.numa = Alike(2, {.cpus = 4})});
  four.Observe();
  EXPECT_EQ(four.Ask("3 CPU 1Gi; 3 CPU 1Gi; 2 CPU 1Gi"), "No Refused");
  four.Bind("p", "3 CPU 1Gi; 3 CPU 1Gi");
  EXPECT_EQ(four.Charged("p"), "Bound on 0-1");
  EXPECT_EQ(four.FreeCpus(), "1 1");
}

TEST_F(LedgerCase, C131AJustBoundPodIsChargedBeforeAnyObservation) {
  room.Bind("p", "4 CPU 8Gi 4 GPU");
  room.Bind("q", "4 CPU 8Gi 4 GPU");
  EXPECT_EQ(room.Ask("1 CPU 1Gi 1 GPU"), "No PodsWait");
}

TEST_F(LedgerCase, C131AJustDeletedPodIsFreeOnceTheKubeletLetsGo) {
  room.Bind("p", "4 CPU 8Gi 4 GPU");
  room.Bind("q", "4 CPU 8Gi 4 GPU");
  room.Admit("p");
  room.Admit("q");
  room.Observe();
  room.Terminates("p");
  EXPECT_EQ(room.Ask("4 CPU 8Gi 4 GPU"), "No Refused");
  room.Release("p");
  room.Observe();
  EXPECT_EQ(room.Ask("4 CPU 8Gi 4 GPU"), "No Refused") << "the API still has it";
  room.Vanishes("p");
  EXPECT_EQ(room.Ask("4 CPU 8Gi 4 GPU"), "Yes");
}

TEST_F(LedgerCase, C133InitContainersAndSidecarsCountAtAdmissionAndShrinkAfterwards) {
  Room one({.numa = {{.cpus = 64, .memory = "64Gi"}}, .scope = "pod"});
  one.Observe();
  one.Bind("p", "sidecar 2 CPU 2Gi; init 20 CPU 20Gi; 10 CPU 10Gi");
  EXPECT_EQ(one.FreeCpus(), "42") << "22 at admission";
  one.Admit("p");
  one.Observe();
  EXPECT_EQ(one.FreeCpus(), "42") << "CPUs of a finished init container stay with the pod";
  EXPECT_EQ(one.Ask("1 CPU 52Gi"), "Yes") << "its memory does not: 12 GiB are left to the pod";
  EXPECT_EQ(one.Ask("1 CPU 53Gi"), "No Refused");
}

TEST_F(LedgerCase, C135AForeignPodIsChargedAndTheNodeIsNotBlocked) {
  room.BindElsewhere("theirs", "4 CPU 8Gi 2 GPU");
  EXPECT_EQ(room.Charged("theirs"), "Bound on 0");
  EXPECT_EQ(room.Ask("4 CPU 8Gi 2 GPU"), "Yes");
  EXPECT_EQ(room.Ask("4 CPU 8Gi 4 GPU"), "Yes");
}

// ---- The OverReserve cache

TEST_F(LedgerCase, CacheANodeThatRefusesNobodyIsRefreshedAllTheSame) {
  room.kubelet.Add("big", "16 CPU 8Gi 4 GPU");
  room.Observe();
  room.kubelet.Remove("big");
  room.Observe();
  EXPECT_EQ(room.Ask("16 CPU 8Gi 4 GPU"), "Yes");
}

TEST_F(LedgerCase, CacheAnEndedPodLeavesNothingReserved) {
  room.Bind("p", "16 CPU 8Gi 4 GPU");
  room.Admit("p");
  room.Observe();
  room.Release("p");
  room.Observe();
  room.Succeeds("p");
  EXPECT_EQ(room.FreeCpus(), "16 16");
  EXPECT_TRUE(room.view().waiting.empty());
}

TEST_F(LedgerCase, CacheAPodThatHangsInPendingIsSeenAllTheSame) {
  room.Bind("p", "16 CPU 8Gi 4 GPU");  // ImagePullBackOff: admitted, and never Running
  room.Admit("p");
  room.Observe();
  EXPECT_EQ(room.Charged("p"), "Observed on 0");
}

TEST_F(LedgerCase, CacheATerminalPodThatAnOldKubeletListsBlocksNothingElse) {
  room.Bind("p", "16 CPU 8Gi 2 GPU");
  room.Admit("p");
  room.Observe();
  room.Succeeds("p");
  EXPECT_EQ(room.Charged("p"), "Observed on 0") << "until it is not listed any more";
  EXPECT_EQ(room.Ask("16 CPU 8Gi 4 GPU"), "Yes");
}

TEST_F(LedgerCase, CacheAPodOfTheSameNameIsAnotherPod) {
  room.Bind("web-0/old", "4 CPU 8Gi 1 GPU");
  room.Admit("web-0/old");
  room.Observe();
  room.Vanishes("web-0/old");
  room.Bind("web-0/new", "8 CPU 8Gi 3 GPU");
  EXPECT_EQ(room.FreeGpus(), "0 4") << "the old one is still held, the new one is charged";
}

TEST_F(LedgerCase, CacheAPodOfOurOwnNameThatSomebodyElseBoundIsForeign) {
  room.BindElsewhere("p", "4 CPU 8Gi 1 GPU");
  EXPECT_EQ(room.Count(DivergenceKind::kForeignPod), 1);
  EXPECT_EQ(room.FreeGpus(), "3 4");
}

TEST_F(LedgerCase, CacheANewPolicyDropsNoPodThatIsOnItsWay) {
  room.Bind("p", "12 CPU 8Gi 1 GPU");
  room.facts.kubelet.topology_policy = "restricted";
  room.Observe();
  EXPECT_EQ(room.Charged("p"), "Bound on 0");
  EXPECT_EQ(room.FreeCpus(), "4 16");
}

TEST_F(LedgerCase, CacheTheTimeBetweenBindAndObservationIsNoGap) {
  room.Lease("p", "4 CPU 8Gi 4 GPU");
  EXPECT_EQ(room.FreeGpus(), "0 4");
  room.Bind("p", "4 CPU 8Gi 4 GPU");
  EXPECT_EQ(room.FreeGpus(), "0 4");
  room.Admit("p");
  EXPECT_EQ(room.FreeGpus(), "0 4");
  room.Observe();
  EXPECT_EQ(room.FreeGpus(), "0 4");
}

TEST_F(LedgerCase, CacheAPodWithoutExclusiveCpusTakesNone) {
  room.Bind("burstable", "8 CPU 1Gi limit 9 CPU 2Gi");
  EXPECT_EQ(room.FreeCpus(), "16 16");
  EXPECT_EQ(room.Charged("burstable"), "");
}

TEST_F(LedgerCase, CacheAResourceThatNoDevicePluginOffersHoldsNothingBack) {
  room.Bind("p", "1 example.com/dongle");
  EXPECT_EQ(room.Charged("p"), "");
  EXPECT_EQ(room.Ask("16 CPU 8Gi 4 GPU"), "Yes");
}

// ---- Reports of users

TEST_F(LedgerCase, Issue967AnObjectThatCameAfterTheSchedulerCounts) {
  Ledger late;
  late.Apply({room.now, NodeChanged{"n", "uid", "boot-0", {}}});
  EXPECT_EQ(Predict(*late.Take().Find("n"), {}).certainty, Certainty::kUnknown);
  late.Apply({room.now, TopologyChanged{Nrt()}});
  EXPECT_EQ(late.Take().Find("n")->confidence, Confidence::kPredicted);
}

TEST_F(LedgerCase, Issue979AnInitContainerWithADeviceStallsNothing) {
  room.Bind("p", "init 1 CPU 1Gi 1 GPU; 4 CPU 8Gi");
  room.Admit("p");
  room.Observe();
  EXPECT_EQ(room.Charged("p"), "Observed on 0");
  EXPECT_EQ(room.Ask("1 CPU 1Gi 4 GPU"), "Yes");
}

TEST_F(LedgerCase, Issue958ARaceBetweenBindAndObservationLeavesNothingStuck) {
  room.Lease("p", "4 CPU 8Gi 1 GPU");
  room.Bind("p", "4 CPU 8Gi 1 GPU");
  room.Observe();  // of before
  room.Admit("p");
  room.Release("p");
  room.Vanishes("p");
  room.Observe();
  room.Wait(seconds(30));
  room.Renew();
  EXPECT_EQ(room.FreeGpus(), "4 4");
  EXPECT_TRUE(room.view().waiting.empty());
}

TEST_F(LedgerCase, Issue1015OneUnknownPodIsChargedWhereItIsAndNothingElseStops) {
  room.kubelet.Add("unknown", "4 CPU 8Gi 1 GPU");
  room.Observe();
  EXPECT_EQ(room.FreeGpus(), "3 4");
  EXPECT_EQ(room.Ask("4 CPU 8Gi 3 GPU"), "Yes");
}

TEST_F(LedgerCase, Issue249ANodeThatPublishesNoMemoryRefusesNobodyForIt) {
  Room none({.numa = Alike(2, {.gpus = 4}), .memory_policy = "None"});
  placement::NodeResourceTopology nrt = admission::NrtOf(none.facts, none.kubelet.state);
  nrt.name = "n";
  none.Apply(TopologyChanged{nrt});
  EXPECT_EQ(none.Ask("4 CPU 500Gi 1 GPU"), "Yes");
}

TEST_F(LedgerCase, Issue1254AChangedPolicyIsFollowed) {
  EXPECT_EQ(room.Ask("4 CPU 8Gi 5 GPU"), "No Refused");
  room.facts.kubelet.topology_policy = "best-effort";
  placement::NodePlacement changed = room.Published();
  room.Apply(PlacementChanged{changed});
  EXPECT_EQ(room.Ask("4 CPU 8Gi 5 GPU"), "Yes");
}

TEST_F(LedgerCase, Issue5500OnePodEndsWhileAnotherStarts) {
  room.Bind("old", "16 CPU 8Gi 4 GPU");
  room.Admit("old");
  room.Observe();
  room.Release("old");
  room.Succeeds("old");  // the API is faster than the agent
  room.Bind("new", "16 CPU 8Gi 4 GPU");
  room.Admit("new");  // where the old one was
  room.Observe();
  EXPECT_EQ(room.Charged("old"), "");
  EXPECT_EQ(room.Charged("new"), "Observed on 0");
  EXPECT_EQ(room.FreeGpus(), "0 4");
}

TEST_F(LedgerCase, Issue2273WhatIsLeasedAtFilterEndsWithThePodWhoeverBindsIt) {
  room.Lease("p", "4 CPU 8Gi 4 GPU");
  room.Lease("p", "4 CPU 8Gi 4 GPU");  // filtered again: one lease, not two
  EXPECT_EQ(room.FreeGpus(), "0 4");
  room.Wait(seconds(2));
  EXPECT_EQ(room.FreeGpus(), "4 4");
}

TEST_F(LedgerCase, Issue646EphemeralStorageMakesNoCountNegative) {
  room.Bind("p", "4 CPU 8Gi 100Gi ephemeral-storage");
  EXPECT_EQ(room.FreeCpus(), "12 16");
  room.Admit("p");
  room.Observe();
  EXPECT_EQ(room.FreeCpus(), "12 16");
}

TEST_F(LedgerCase, Issue2013MemoryThatSpansNumaNodesIsChargedAndBindsThemTogether) {
  Room two({.numa = Alike(2, {.memory = "64Gi"}), .policy = "restricted"});
  two.Observe();
  two.Bind("p", "18 CPU 100Gi");
  EXPECT_EQ(two.Ask("1 CPU 20Gi"), "No PodsWait");
  two.Admit("p");
  two.Observe();
  EXPECT_EQ(two.Charged("p"), "Observed on 0-1");
  EXPECT_EQ(two.Ask("1 CPU 20Gi"), "No Refused") << "28Gi are free, and no node gives any alone";
}

TEST_F(LedgerCase, Issue84869ARefusedPodsTemplateIsNotSentThereAgainAndAgain) {
  room.BindElsewhere("p1", "4 CPU 8Gi 1 GPU");
  room.Fails("p1", "UnexpectedAdmissionError");
  EXPECT_EQ(room.Ask("4 CPU 8Gi 1 GPU"), "No RefusedRecently");
}

TEST_F(LedgerCase, AGangsSiblingsCountEachOthersLeases) {
  for (const char* uid : {"w0", "w1"}) room.Lease(uid, "4 CPU 8Gi 4 GPU");
  EXPECT_EQ(room.Ask("4 CPU 8Gi 4 GPU"), "Depends PodsWait");
}

}  // namespace
}  // namespace scheduler::ledger
