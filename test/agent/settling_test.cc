#include "agent/settling.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace agent {
namespace {

using placement::Facts;
using placement::NodePlacement;
using placement::PlacedDevice;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr base::Instant kStart{std::chrono::hours(1)};

// A kubelet that lists these pods, and all of whose pods have folders of logs: "a" is ml/a.
Facts Listing(const std::vector<std::string>& names, const std::vector<std::string>& folders) {
  Facts facts;
  podresources::Assignments assignments;
  for (const std::string& name : names) {
    assignments.pods.push_back(
        {.namespace_name = "ml", .name = name, .containers = {}, .cpus = {}, .memory = {}});
  }
  facts.assignments = assignments;
  facts.state.pod_logs.emplace();
  for (const std::string& name : folders) {
    facts.state.pod_logs->push_back({.namespace_name = "ml", .name = name, .uid = "uid-" + name});
  }
  return facts;
}

void GiveCgroups(Facts& facts, const std::vector<std::string>& names) {
  facts.enforced = hwinfo::Enforced();
  for (const std::string& name : names) {
    hwinfo::ContainerCgroup container;
    container.pod_uid = "uid-" + name;
    facts.enforced->containers.push_back(container);
  }
}

const std::set<std::string> kExpected = {"uid-a", "uid-b"};

TEST(UnlistedPods, AreThoseWithACgroupThatTheListLacks) {
  Facts facts = Listing({}, {"a", "b"});
  GiveCgroups(facts, {"a", "b"});
  EXPECT_THAT(UnlistedPods(kExpected, facts, {}, true), ElementsAre("uid-a", "uid-b"));
  facts = Listing({"a"}, {"a", "b"});
  GiveCgroups(facts, {"a", "b"});
  EXPECT_THAT(UnlistedPods(kExpected, facts, {}, true), ElementsAre("uid-b"));
}

TEST(UnlistedPods, AreNoneThatHaveEndedMeanwhile) {
  Facts facts = Listing({"a"}, {"a", "b"});
  GiveCgroups(facts, {"a"});
  EXPECT_THAT(UnlistedPods(kExpected, facts, {}, true), IsEmpty()) << "its logs stay for a while";
}

TEST(UnlistedPods, AreToldByTheirLogsWhereNoPodHasACgroup) {
  Facts facts = Listing({}, {"a"});
  EXPECT_THAT(UnlistedPods(kExpected, facts, {}, true), ElementsAre("uid-a"));
  GiveCgroups(facts, {});
  EXPECT_THAT(UnlistedPods(kExpected, facts, {}, true), ElementsAre("uid-a"));
}

// A static pod runs already, and the others are about to.
TEST(UnlistedPods, AreToldByTheirLogsAfterTheMachineRestarted) {
  Facts facts = Listing({"static"}, {"a", "b", "static"});
  GiveCgroups(facts, {"static"});
  EXPECT_THAT(UnlistedPods(kExpected, facts, {}, false), ElementsAre("uid-a", "uid-b"));
}

TEST(UnlistedPods, AreNotThoseThatAreListedUnderAUidThatCouldNotBeTold) {
  Facts facts = Listing({"a", "b"}, {"a", "b"});
  GiveCgroups(facts, {"a", "b"});
  EXPECT_THAT(UnlistedPods(kExpected, facts, NodePlacement(), true), IsEmpty());
}

TEST(UnlistedPods, AreAllOfAnEmptyListAndNoneOfAnotherWithoutLogs) {
  Facts facts = Listing({}, {});
  facts.state.pod_logs.reset();
  GiveCgroups(facts, {"a"});
  EXPECT_THAT(UnlistedPods(kExpected, facts, {}, true), ElementsAre("uid-a"));
  facts = Listing({"other"}, {});
  facts.state.pod_logs.reset();
  GiveCgroups(facts, {"a"});
  EXPECT_THAT(UnlistedPods(kExpected, facts, {}, true), IsEmpty());
}

// Where the folders cannot be read and the API server may be asked.
TEST(UnlistedPods, AreToldByThePodsOfTheApiServer) {
  Facts facts = Listing({"a", "static"}, {});
  facts.state.pod_logs.reset();
  facts.api_pods = {{{.namespace_name = "ml", .name = "a", .uid = "uid-a"},
                     {.namespace_name = "ml", .name = "b", .uid = "uid-b"},
                     {.namespace_name = "ml",
                      .name = "static",
                      .uid = "uid-of-the-mirror",
                      .kubelet_uid = "uid-static"}}};
  const std::set<std::string> expected = {"uid-a", "uid-b", "uid-gone", "uid-static"};
  EXPECT_THAT(UnlistedPods(expected, facts, {}, false), ElementsAre("uid-b"));
  GiveCgroups(facts, {"a", "b", "static"});
  EXPECT_THAT(UnlistedPods(expected, facts, {}, true), ElementsAre("uid-b"));
}

TEST(PodsOf, KnowsPodsWithAndWithoutResourcesAndStaticOnes) {
  NodePlacement placement;
  placement.known_pods = {"uid-a"};
  placement.pods.resize(1);
  placement.pods[0].kubelet_uid = "uid-static";
  EXPECT_THAT(PodsOf(placement), ElementsAre("uid-a", "uid-static"));
}

PlacedDevice Device(const std::string& id, const std::string& resource = "nvidia.com/gpu") {
  PlacedDevice device;
  device.resource = resource;
  device.id = id;
  return device;
}

Facts Healthy(const std::vector<std::string>& ids) {
  Facts facts = Listing({}, {});
  facts.assignments->allocatable.emplace();
  for (const std::string& id : ids) {
    facts.assignments->allocatable->devices.push_back(
        {.resource = "nvidia.com/gpu", .id = id, .numa_nodes = {}});
  }
  return facts;
}

std::vector<std::string> Ids(const std::vector<PlacedDevice>& devices) {
  std::vector<std::string> ids;
  for (const PlacedDevice& device : devices) ids.push_back(device.id);
  return ids;
}

const std::vector<PlacedDevice> kLast = {Device("gpu-0"), Device("gpu-1")};

TEST(StillCounted, AreAllWhereNobodySaysOtherwise) {
  EXPECT_THAT(Ids(StillCounted(kLast, Healthy({"gpu-0"}), {}, {}, kStart)),
              ElementsAre("gpu-0", "gpu-1"));
}

TEST(StillCounted, AreNoMoreThanTheNodesCapacityHasRoomFor) {
  const Facts facts = Healthy({"mig-0", "mig-1"});
  EXPECT_THAT(StillCounted(kLast, facts, Capacity{{"nvidia.com/gpu", 2}}, {}, kStart), IsEmpty())
      << "the plugin made others of its hardware";
  EXPECT_THAT(Ids(StillCounted(kLast, facts, Capacity{{"nvidia.com/gpu", 4}}, {}, kStart)),
              ElementsAre("gpu-0", "gpu-1"));
}

TEST(StillCounted, WereNoneOfAResourceWhoseCapacityMakesNoSense) {
  Facts facts = Healthy({});
  facts.state.devices.emplace();
  const Capacity capacity = {{"nvidia.com/gpu", std::nullopt}};
  EXPECT_THAT(Ids(StillCounted(kLast, facts, capacity, {}, kStart)), ElementsAre("gpu-0", "gpu-1"));
}

TEST(StillCounted, AreNoneOfAResourceThatTheNodesCapacityDoesNotName) {
  EXPECT_THAT(StillCounted(kLast, Healthy({}), Capacity{{"cpu", 8}}, {}, kStart), IsEmpty());
}

TEST(StillCounted, EndAfterFiveMinutesWhereNeitherCapacityNorCheckpointIsKnown) {
  const Facts facts = Healthy({});
  MissingSince missing;
  NoteMissing(kLast, facts, kStart, missing);
  const auto after = [&](std::chrono::seconds time) {
    return Ids(StillCounted(kLast, facts, {}, missing, kStart + time));
  };
  EXPECT_THAT(after(std::chrono::seconds(299)), ElementsAre("gpu-0", "gpu-1"));
  EXPECT_THAT(after(std::chrono::seconds(300)), IsEmpty());
}

TEST(StillCounted, BeginAnewWhenTheResourceHasBeenThereInBetween) {
  MissingSince missing;
  NoteMissing(kLast, Healthy({}), kStart, missing);
  NoteMissing(kLast, Healthy({"gpu-0"}), kStart + std::chrono::seconds(100), missing);
  EXPECT_THAT(missing, IsEmpty());
}

TEST(StillCounted, AreNoDevicesOfDraDrivers) {
  EXPECT_THAT(StillCounted({Device("pool/gpu-0", "gpu.nvidia.com")}, Healthy({}), {}, {}, kStart),
              IsEmpty());
}

}  // namespace
}  // namespace agent
