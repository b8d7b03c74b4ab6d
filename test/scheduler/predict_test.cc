#include "scheduler/ledger/predict.h"

#include <gtest/gtest.h>

#include <string>

#include "test/scheduler/room.h"

// What a node answers while pods wait on it.
namespace scheduler::ledger {
namespace {

using admission::Alike;
using admission::NodeSpec;

Room RoomOf(const NodeSpec& spec) {
  Room room(spec);
  room.Observe();
  return room;
}

TEST(Predict, SaysYesWhereThePodFitsWhereverTheOthersLand) {
  Room room = RoomOf({.numa = Alike(2, {.gpus = 4})});
  room.Bind("p", "4 CPU 8Gi 4 GPU");
  EXPECT_EQ(room.Ask("4 CPU 8Gi 4 GPU"), "Yes");
  room.Bind("q", "4 CPU 8Gi 4 GPU");
  EXPECT_EQ(room.Ask("4 CPU 8Gi 1 GPU"), "No PodsWait");
  EXPECT_EQ(room.Ask("4 CPU 8Gi"), "Yes");
}

TEST(Predict, FillsANodeWithPodsThatNobodyHasSeenYet) {
  Room room = RoomOf({.numa = Alike(2, {.gpus = 4})});
  for (const char* uid : {"a", "b", "c", "d", "e", "f", "g"}) {
    EXPECT_EQ(room.Ask("1 CPU 1Gi 1 GPU"), "Yes") << uid;
    room.Bind(uid, "1 CPU 1Gi 1 GPU");
  }
  EXPECT_EQ(room.Ask("1 CPU 1Gi 1 GPU"), "Yes");
  room.Bind("h", "1 CPU 1Gi 1 GPU");
  EXPECT_EQ(room.Ask("1 CPU 1Gi 1 GPU"), "No PodsWait");
}

TEST(Predict, DependsOnTheOrderInWhichOthersAreAdmitted) {
  Room room = RoomOf({.numa = {{.id = 0, .cpus = 16, .taken_cpus = 8}, {.id = 1, .cpus = 16}}});
  room.Bind("p", "4 CPU 8Gi");
  EXPECT_EQ(room.Charged("p"), "Bound on 0");
  // Were it admitted after a pod that goes to node 0 once something is gone there, it would be
  // on 1.
  EXPECT_EQ(room.Ask("12 CPU 8Gi"), "Yes");
  EXPECT_EQ(room.Ask("6 CPU 8Gi"), "Yes");
}

TEST(Predict, DoesNotTakeThePlaceOfAPodThatWasSentHereBefore) {
  // 12 CPUs fit on node 1 alone; the pod in question would be on node 1 too if it came first.
  Room room = RoomOf({.numa = {{.id = 0, .cpus = 16, .taken_cpus = 12}, {.id = 1, .cpus = 16}}});
  room.Bind("p", "12 CPU 8Gi");
  EXPECT_EQ(room.Ask("4 CPU 8Gi"), "Yes");
  EXPECT_EQ(room.Ask("5 CPU 8Gi"), "No PodsWait") << "admitted first it would refuse the other";
}

TEST(Predict, AsksWhatHappensIfRoomIsLeftMeanwhile) {
  // The first container goes to node 1, since node 0 has 1 CPU left; the second needs node 0's GPU.
  // If the pod that holds node 0's CPUs ends, the first takes them away from the second.
  Room room =
      RoomOf({.numa = {{.id = 0, .cpus = 2, .gpus = 1}, {.id = 1, .cpus = 4}}, .threads = 1});
  room.kubelet.Add("other", "1 CPU 1Gi");
  room.Observe();
  EXPECT_EQ(room.Ask("2 CPU 1Gi; 1 CPU 1Gi 1 GPU"), "Depends RoomMayMislead");
  EXPECT_EQ(room.Ask("1 CPU 1Gi 1 GPU; 2 CPU 1Gi"), "Yes");
}

TEST(Predict, AsksWhichDevicesAContainerMayGetOnAMachineOfOneNumaNode) {
  // The second container needs 5 GPUs of the NUMA node; the first may take some of them, or the two
  // that are on none.
  placement::NodePlacement node = admission::NodeOf({.numa = {{.id = 0, .gpus = 5}}});
  for (const char* id : {"elsewhere-0", "elsewhere-1"}) {
    admission::AddDevice(node, "nvidia.com/gpu", id, {});
  }
  Room room(node);
  room.Observe();
  EXPECT_EQ(room.Ask("1 CPU 1Gi 2 GPU; 1 CPU 1Gi 5 GPU"), "Depends DevicesDecide");
  EXPECT_EQ(room.Ask("1 CPU 1Gi 2 GPU; 1 CPU 1Gi 3 GPU"), "Yes");
}

TEST(Predict, AsksWhetherRoomLeadsMemoryApartWhateverThePolicy) {
  // The first container's huge pages are on nodes 1 and 2 since node 0 is taken alone, and the
  // second's memory joins them there. Were node 0 free, they would be on 0 and 1.
  const std::map<std::string, std::string> huge = {{"hugepages-1Gi", "3Gi"}};
  Room room({.numa = {{.id = 0, .memory = "4Gi", .hugepages = huge},
                      {.id = 1, .memory = "10Gi", .hugepages = huge},
                      {.id = 2, .memory = "15Gi", .hugepages = huge}},
             .policy = "none"});
  room.kubelet.Add("other", "1 CPU 1Gi");
  room.Observe();
  const std::string words = "1 CPU 3Gi 4Gi hugepages-1Gi; 1 CPU 17Gi";
  EXPECT_EQ(room.kubelet.Ask(words), "admitted");
  EXPECT_EQ(room.Ask(words), "Depends RoomMayMislead");
  EXPECT_EQ(room.Ask("1 CPU 17Gi"), "Yes");
  room.Release("other");
  EXPECT_EQ(room.kubelet.Ask(words), "UnexpectedAdmissionError");
}

TEST(Predict, CountsWhatInitContainersLeaveBehindWhereOthersDoNotTakeItOver) {
  Room room = RoomOf({.numa = {{.id = 0, .cpus = 8}},
                      .scope = "pod",
                      .cpu_options = {{"prefer-align-cpus-by-uncorecache", "true"}},
                      .threads = 1});
  room.Bind("p", "init 4 CPU 1Gi; 3 CPU 1Gi");
  EXPECT_EQ(room.Ask("2 CPU 1Gi"), "Depends PodsWait") << "it may get 4 CPUs, or all 7";
  EXPECT_EQ(room.Ask("1 CPU 1Gi"), "Yes");
}

TEST(Predict, CountsAWidePodOnEveryNumaNodeThatItMayTakeFrom) {
  Room room = RoomOf({.numa = Alike(2, {.gpus = 4}), .policy = "restricted"});
  room.Bind("p", "20 CPU 80Gi 5 GPU");  // 4 and 1, or 3 and 2: the plugin chooses
  EXPECT_EQ(room.Charged("p"), "Bound on 0-1");
  EXPECT_EQ(room.Ask("4 CPU 0Gi 2 GPU"), "Depends PodsWait");
  EXPECT_EQ(room.Ask("4 CPU 0Gi 4 GPU"), "No PodsWait");
}

TEST(Predict, CountsSumsWhereThePolicyRefusesNothing) {
  Room room =
      RoomOf({.numa = Alike(2, {.gpus = 4}), .policy = "best-effort", .memory_policy = "None"});
  room.Bind("p", "24 CPU 8Gi 6 GPU");
  EXPECT_EQ(room.Ask("8 CPU 8Gi 2 GPU"), "Yes");
  EXPECT_EQ(room.Ask("9 CPU 8Gi"), "No PodsWait");
}

TEST(Predict, TakesTheWorstCaseOfMorePodsThanItCanFollow) {
  Room room = RoomOf({.numa = Alike(4, {.cpus = 64, .memory = "512Gi"})});
  for (int i = 1; i <= 9; ++i) {
    room.Bind("p" + std::to_string(i), std::to_string(i) + " CPU 1Gi");
  }
  EXPECT_EQ(room.Ask("2 CPU 1Gi"), "Yes") << "45 CPUs on every NUMA node leave room";
  EXPECT_EQ(room.Ask("40 CPU 1Gi"), "Depends PodsWait");
}

TEST(Predict, DoesNotTakeAPodThatRunsUnseenToBeWhereItIsExpected) {
  Room room({.numa = {{.id = 0, .cpus = 10}, {.id = 1, .cpus = 12}}});
  room.Observe();
  room.Bind("big", "10 CPU 1Gi");
  room.Bind("small", "2 CPU 1Gi");
  EXPECT_EQ(room.Admit("small"), "admitted on 0");
  EXPECT_EQ(room.Admit("big"), "admitted on 1") << "it was expected on 0";
  room.Runs("big");
  EXPECT_EQ(room.Charged("big"), "Admitted on 0");
  EXPECT_EQ(room.Ask("9 CPU 1Gi"), "Depends PodsWait");
}

TEST(Predict, DoesNotCountWhatThePodItselfHasLeased) {
  Room room = RoomOf({.numa = Alike(1, {.gpus = 4})});
  room.Lease("asked", "4 CPU 8Gi 4 GPU");
  EXPECT_EQ(room.Ask("4 CPU 8Gi 4 GPU"), "Yes");
}

TEST(Predict, GivesAwayNoLeaseOfAPodOfWhichOneInitContainerAloneWantsSomething) {
  Room room = RoomOf(
      {.numa = Alike(2, {.gpus = 4}), .topology_options = {{"prefer-closest-numa-nodes", "true"}}});
  EXPECT_EQ(room.Ask("init 1 GPU; nothing"), "Yes");
  room.Lease("asked", "init 1 GPU; nothing");
  room.Lease("next", "2 GPU");
  EXPECT_EQ(room.Ask("init 1 GPU; nothing"), "Yes");
}

TEST(Predict, SaysNoOnlyIfAllChoicesOfDevicesWereTried) {
  // Of 3 kinds of GPUs there are more ways to take 12 than are tried.
  placement::NodePlacement node = admission::NodeOf(
      {.numa = Alike(2, {.cpus = 8, .gpus = 8}), .policy = "none", .memory_policy = "None"});
  for (const char* id : {"a", "b", "c", "d"}) admission::AddDevice(node, "nvidia.com/gpu", id, {});
  Room room(node);
  room.Observe();
  room.BindElsewhere("first", "8 CPU 1Gi");
  room.BindElsewhere("second", "12 CPU 1Gi 12 GPU");
  EXPECT_EQ(room.Ask("8 CPU 1Gi"), "Depends PodsWait") << "it fits after the first";
}

TEST(Predict, KeepsRoomForAPodThatFitsOnceOthersHaveLeft) {
  for (const char* policy : {"single-numa-node", "none"}) {
    Room room({.numa = {{.id = 0, .gpus = 4}}, .policy = policy});
    room.kubelet.Add("old", "4 CPU 8Gi 2 GPU");
    room.Observe();
    room.BindElsewhere("late", "4 CPU 8Gi 3 GPU");
    EXPECT_EQ(room.Charged("late"), "Bound nowhere") << policy;
    EXPECT_EQ(room.Ask("4 CPU 8Gi 2 GPU"), "Depends PodsWait") << policy;
  }
}

TEST(Predict, ForgetsNobodyWhoIsToBeRefusedAnyway) {
  Room room = RoomOf({.numa = Alike(1, {.gpus = 4})});
  room.BindElsewhere("hopeless", "4 CPU 8Gi 5 GPU");
  EXPECT_EQ(room.Charged("hopeless"), "Bound nowhere");
  EXPECT_EQ(room.Ask("4 CPU 8Gi 4 GPU"), "Yes");
}

}  // namespace
}  // namespace scheduler::ledger
