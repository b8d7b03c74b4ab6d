#include "scheduler/admission/coarse.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <string>
#include <utility>
#include <vector>

#include "scheduler/admission/admit.h"
#include "test/scheduler/nrt_of.h"
#include "test/support/status.h"

namespace scheduler::admission {
namespace {

using placement::NodeResourceTopology;
using placement::NrtResource;
using placement::NrtZone;
using ::test::StatusIs;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

constexpr std::int64_t kGiB = std::int64_t{1} << 30;
constexpr const char* kGpu = "nvidia.com/gpu";

// A node as Node Feature Discovery and the resource-topology-exporter publish it: policy and scope,
// zones with amounts, and nothing else.
NodeResourceTopology Published(const std::string& policy, std::vector<NrtZone> zones) {
  NodeResourceTopology nrt;
  nrt.name = "gpu-7";
  nrt.attributes = {{"topologyManagerPolicy", policy}, {"topologyManagerScope", "container"}};
  nrt.zones = std::move(zones);
  return nrt;
}

NrtZone Zone(const std::string& name, std::vector<NrtResource> resources) {
  return {.name = name,
          .type = "Node",
          .costs = {},
          .attributes = {},
          .resources = std::move(resources)};
}

// A Guaranteed pod of one container; resources of 0 are left out.
Request Asks(std::int64_t cpus, std::int64_t gib, std::int64_t gpus) {
  kube::Container container;
  container.name = "main";
  container.limits = {{kube::kCpu, cpus * 1000}, {kube::kMemory, gib * kGiB}};
  if (gpus > 0) container.limits[kGpu] = gpus;
  kube::Pod pod;
  pod.containers = {container};
  kube::ApplyDefaults(pod);
  pod.qos = kube::ComputeQos(pod);
  return MakeRequest(pod);
}

std::string Says(const CoarseState& coarse, const Request& request) {
  return KubeletReason(Admit(coarse.state, request));
}

std::vector<std::string> Codes(const CoarseState& coarse) {
  std::vector<std::string> codes;
  for (const base::Diagnostic& assumption : coarse.assumptions) codes.push_back(assumption.code);
  return codes;
}

TEST(CoarseState, RefusesAPodWhoseGpuAndCpusAreFreeOnDifferentNodes) {
  ASSERT_OK_AND_ASSIGN(
      const CoarseState coarse,
      CoarseStateFrom(
          Published("single-numa-node", {Zone("node-0", {{"cpu", 8, 7, 2}, {kGpu, 2, 2, 2}}),
                                         Zone("node-1", {{"cpu", 8, 8, 8}, {kGpu, 2, 2, 0}})})));
  EXPECT_EQ(coarse.state.machine->grade, Grade::kCoarse);
  EXPECT_EQ(Says(coarse, Asks(4, 1, 1)), "TopologyAffinityError");
  EXPECT_EQ(Says(coarse, Asks(2, 1, 2)), "");
  EXPECT_EQ(Says(coarse, Asks(8, 1, 0)), "");
}

TEST(CoarseState, CountsReservedCpusForTheWidthAndNotAsFree) {
  ASSERT_OK_AND_ASSIGN(
      const CoarseState coarse,
      CoarseStateFrom(Published(
          "restricted", {Zone("node-0", {{"cpu", 8, 7, 7}}), Zone("node-1", {{"cpu", 8, 7, 7}})})));
  EXPECT_EQ(Says(coarse, Asks(7, 1, 0)), "");
  EXPECT_EQ(Says(coarse, Asks(8, 1, 0)), "TopologyAffinityError");  // one node has 8 CPUs
  EXPECT_EQ(Says(coarse, Asks(9, 1, 0)), "");
}

TEST(CoarseState, CountsFailedDevicesForTheWidthAndNotAsFree) {
  ASSERT_OK_AND_ASSIGN(
      const CoarseState coarse,
      CoarseStateFrom(Published(
          "restricted", {Zone("node-0", {{kGpu, 4, 3, 3}}), Zone("node-1", {{kGpu, 4, 3, 3}})})));
  EXPECT_EQ(Says(coarse, Asks(0, 0, 3)), "");
  EXPECT_EQ(Says(coarse, Asks(0, 0, 4)), "TopologyAffinityError");
  EXPECT_EQ(Says(coarse, Asks(0, 0, 5)), "");
}

TEST(CoarseState, TakesWhatAPodGetsOffTheZones) {
  ASSERT_OK_AND_ASSIGN(
      CoarseState coarse,
      CoarseStateFrom(
          Published("single-numa-node", {Zone("node-0", {{"cpu", 8, 8, 8}, {kGpu, 2, 2, 1}}),
                                         Zone("node-1", {{"cpu", 8, 8, 8}, {kGpu, 2, 2, 1}})})));
  const Request request = Asks(4, 1, 1);
  for (const char* uid : {"a", "b"}) {
    Verdict verdict = Admit(coarse.state, request);
    EXPECT_TRUE(verdict.admitted());
    Commit(uid, std::move(verdict), coarse.state);
  }
  EXPECT_EQ(Says(coarse, request), "TopologyAffinityError");
  Remove(coarse.state, "a");
  EXPECT_EQ(Says(coarse, request), "");
}

TEST(CoarseState, AlignsNoResourceThatNoZoneLists) {
  ASSERT_OK_AND_ASSIGN(
      const CoarseState coarse,
      CoarseStateFrom(
          Published("single-numa-node", {Zone("node-0", {{kGpu, 2, 2, 2}}), Zone("node-1", {})})));
  EXPECT_EQ(Says(coarse, Asks(200, 4000, 2)), "");
  EXPECT_THAT(Codes(coarse), Contains("CpuManagerAssumed"));
  EXPECT_THAT(Codes(coarse), Contains("MemoryManagerAssumed"));
}

// So do the exporters write a node with the CPU manager off: no CPUs in zones with devices, none
// allocatable in the others.
TEST(CoarseState, AlignsNoCpusWhereNoZoneHasSomeToGive) {
  ASSERT_OK_AND_ASSIGN(
      const CoarseState coarse,
      CoarseStateFrom(Published("single-numa-node", {Zone("node-0", {{kGpu, 4, 4, 4}}),
                                                     Zone("node-1", {{"cpu", 16, 0, 0}})})));
  EXPECT_EQ(Says(coarse, Asks(12, 1, 1)), "");
}

TEST(CoarseState, TakesAResourceThatOneZoneLacksAsNotThere) {
  ASSERT_OK_AND_ASSIGN(const CoarseState coarse,
                       CoarseStateFrom(Published(
                           "single-numa-node",
                           {Zone("node-0", {{"cpu", 8, 8, 8}, {"memory", 8 * kGiB, 8 * kGiB, 0}}),
                            Zone("node-1", {{"cpu", 8, 8, 8}})})));
  EXPECT_EQ(Says(coarse, Asks(4, 2, 0)), "UnexpectedAdmissionError");
}

TEST(CoarseState, BelievesThePublishersWordOnTheManagers) {
  NodeResourceTopology nrt = Published(
      "single-numa-node", {Zone("node-0", {{"cpu", 8, 8, 1}, {"memory", kGiB, kGiB, 0}})});
  nrt.attributes.push_back({"cpuManagerPolicy", "none"});
  nrt.attributes.push_back({"memoryManagerPolicy", "None"});
  ASSERT_OK_AND_ASSIGN(const CoarseState coarse, CoarseStateFrom(nrt));
  EXPECT_EQ(Says(coarse, Asks(4, 4, 0)), "");
  EXPECT_THAT(Codes(coarse), Not(Contains("CpuManagerAssumed")));
}

TEST(CoarseState, FollowsMemoryGroupsWhereTheyAreTold) {
  NodeResourceTopology nrt =
      Published("single-numa-node", {Zone("node-0", {{"memory", 8 * kGiB, 8 * kGiB, 6 * kGiB}}),
                                     Zone("node-1", {{"memory", 8 * kGiB, 8 * kGiB, 8 * kGiB}})});
  ASSERT_OK_AND_ASSIGN(const CoarseState assumed, CoarseStateFrom(nrt));
  EXPECT_EQ(Says(assumed, Asks(1, 4, 0)), "");
  EXPECT_THAT(Codes(assumed), Contains("MemoryGroupsAssumed"));
  for (NrtZone& zone : nrt.zones) zone.attributes = {{"memoryGroup", "0-1"}};
  ASSERT_OK_AND_ASSIGN(const CoarseState told, CoarseStateFrom(nrt));
  EXPECT_EQ(Says(told, Asks(1, 4, 0)), "TopologyAffinityError");
  EXPECT_THAT(Codes(told), Not(Contains("MemoryGroupsAssumed")));
}

TEST(CoarseState, ReadsPolicyAndScopeFromTheDeprecatedField) {
  const struct {
    const char* word;
    TopologyPolicy policy;
    TopologyScope scope;
  } cases[] = {
      {"SingleNUMANodePodLevel", TopologyPolicy::kSingleNumaNode, TopologyScope::kPod},
      {"SingleNUMANodeContainerLevel", TopologyPolicy::kSingleNumaNode, TopologyScope::kContainer},
      {"RestrictedPodLevel", TopologyPolicy::kRestricted, TopologyScope::kPod},
      {"Restricted", TopologyPolicy::kRestricted, TopologyScope::kContainer},
      {"BestEffortContainerLevel", TopologyPolicy::kBestEffort, TopologyScope::kContainer},
      {"None", TopologyPolicy::kNone, TopologyScope::kContainer},
  };
  for (const auto& expected : cases) {
    NodeResourceTopology nrt = Published("", {Zone("node-0", {{"cpu", 8, 8, 8}})});
    nrt.attributes.clear();
    nrt.topology_policies = {expected.word};
    ASSERT_OK_AND_ASSIGN(const CoarseState coarse, CoarseStateFrom(nrt));
    EXPECT_EQ(coarse.state.machine->settings.topology_policy, expected.policy) << expected.word;
    EXPECT_EQ(coarse.state.machine->settings.topology_scope, expected.scope) << expected.word;
  }
}

TEST(CoarseState, PrefersTheAttributesToTheDeprecatedField) {
  NodeResourceTopology nrt = Published("restricted", {Zone("node-0", {{"cpu", 8, 8, 8}})});
  nrt.topology_policies = {"SingleNUMANodePodLevel"};
  ASSERT_OK_AND_ASSIGN(const CoarseState coarse, CoarseStateFrom(nrt));
  EXPECT_EQ(coarse.state.machine->settings.topology_policy, TopologyPolicy::kRestricted);
  EXPECT_EQ(coarse.state.machine->settings.topology_scope, TopologyScope::kContainer);
}

TEST(CoarseState, IsNoDataWithoutAPolicyOrWithoutZonesOfNumaNodes) {
  constexpr auto kNoData = absl::StatusCode::kNotFound;
  const std::vector<NrtZone> zones = {Zone("node-0", {{"cpu", 8, 8, 8}})};
  EXPECT_THAT(CoarseStateFrom({}), StatusIs(kNoData, HasSubstr("no zone")));
  EXPECT_THAT(CoarseStateFrom(Published("restricted", {})), StatusIs(kNoData, HasSubstr("gpu-7")));
  EXPECT_THAT(CoarseStateFrom(Published("", zones)), StatusIs(kNoData, HasSubstr("policy")));
  EXPECT_THAT(CoarseStateFrom(Published("strictest", zones)),
              StatusIs(kNoData, HasSubstr("strictest")));
  NrtZone socket = zones[0];
  socket.type = "Socket";
  EXPECT_THAT(CoarseStateFrom(Published("restricted", {socket})),
              StatusIs(kNoData, HasSubstr("no zone")));
}

TEST(CoarseState, LeavesOutZonesThatAreNoNumaNodes) {
  NrtZone cache = Zone("node-0-l3-0", {{"cpu", 4, 4, 4}});
  NrtZone socket = Zone("node-1", {{"cpu", 8, 8, 8}});
  socket.type = "Socket";
  ASSERT_OK_AND_ASSIGN(const CoarseState coarse,
                       CoarseStateFrom(Published(
                           "restricted", {Zone("node-0", {{"cpu", 8, 8, 8}}), cache, socket})));
  EXPECT_EQ(coarse.state.machine->numa_count(), 1);
  EXPECT_THAT(Codes(coarse), Contains("ZoneIgnored"));
}

TEST(CoarseState, CorrectsAmountsThatContradictSoThatLessIsFree) {
  ASSERT_OK_AND_ASSIGN(
      const CoarseState coarse,
      CoarseStateFrom(
          Published("single-numa-node", {Zone("node-0", {{"cpu", 4, 6, 9}, {kGpu, 2, 2, -1}})})));
  EXPECT_EQ(coarse.state.machine->cpu.cpus, 6);
  EXPECT_EQ(coarse.state.pool.cpus.Count(), 6);
  EXPECT_EQ(Says(coarse, Asks(1, 1, 1)), "TopologyAffinityError");
  EXPECT_THAT(coarse.assumptions,
              Contains(base::Diagnostic{"AmountCorrected", "node-0 cpu",
                                        "taken as capacity 6, allocatable 6, available 6"}));
  EXPECT_THAT(coarse.assumptions,
              Contains(base::Diagnostic{"AmountCorrected", "node-0 nvidia.com/gpu",
                                        "taken as capacity 2, allocatable 2, available 0"}));
}

TEST(CoarseState, TakesAnAmountThatIsNotToldAsFreeAndNotAsZero) {
  ASSERT_OK_AND_ASSIGN(const CoarseState coarse,
                       CoarseStateFrom(Published(
                           "single-numa-node",
                           {Zone("node-0", {{"cpu", 8, 7, std::nullopt},
                                            {kGpu, std::nullopt, std::nullopt, std::nullopt}})})));
  EXPECT_EQ(Says(coarse, Asks(7, 1, 1)), "");
  EXPECT_THAT(Codes(coarse), Contains("AmountAssumed"));
  EXPECT_THAT(Codes(coarse), Contains("ResourceIgnored"));
}

TEST(CoarseState, IsAnErrorWhereTheObjectContradictsItselfBeyondRepair) {
  const NrtZone zone = Zone("node-0", {{"cpu", 8, 8, 8}});
  constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
  EXPECT_THAT(CoarseStateFrom(Published("restricted", {zone, zone})),
              StatusIs(kInvalid, HasSubstr("NUMA node 0 has two zones")));
  EXPECT_THAT(CoarseStateFrom(
                  Published("restricted", {Zone("node-0", {{"cpu", 8, 8, 8}, {"cpu", 4, 4, 4}})})),
              StatusIs(kInvalid, HasSubstr("zone node-0 lists cpu twice")));
  EXPECT_THAT(
      CoarseStateFrom(Published("restricted", {Zone("node-0", {{"cpu", INT64_MAX, 8, 8}}),
                                               Zone("node-1", {{"cpu", INT64_MAX, 8, 8}})})),
      StatusIs(kInvalid, HasSubstr("more than 8192 CPUs")));
  EXPECT_THAT(CoarseStateFrom(Published("restricted", {Zone("node-0", {{kGpu, INT64_MAX, 8, 8}})})),
              StatusIs(kInvalid, HasSubstr("more than 8192 devices")));
}

TEST(CoarseState, SaysThatNumaNodesAbove63AreBeyondTheKubelet) {
  NrtZone above = Zone("node-64", {});
  above.type = placement::kZoneTypeAbove63;
  ASSERT_OK_AND_ASSIGN(const CoarseState coarse,
                       CoarseStateFrom(Published("restricted", {Zone("node-0", {}), above})));
  EXPECT_EQ(coarse.state.machine->limit, Limit::kNumaIdAbove63);
}

TEST(CoarseState, DoesNotTakeSilenceOnReservedCpusForNone) {
  ASSERT_OK_AND_ASSIGN(
      const CoarseState coarse,
      CoarseStateFrom(Published("restricted", {Zone("node-0", {{kube::kCpu, 4, 4, 4}})})));
  EXPECT_EQ(coarse.state.machine->limit, Limit::kNone);
}

TEST(CoarseState, AllowsAsManyNumaNodesAsAKubeletRunsWith) {
  std::vector<NrtZone> zones;
  for (int id = 0; id < 12; ++id) zones.push_back(Zone("node-" + std::to_string(id), {}));
  ASSERT_OK_AND_ASSIGN(const CoarseState coarse, CoarseStateFrom(Published("restricted", zones)));
  EXPECT_EQ(coarse.state.machine->settings.max_allowable_numa_nodes, 12);
  EXPECT_THAT(Codes(coarse), Contains("MaxNumaNodesAssumed"));
}

// Two of four GPUs name no NUMA node: they never align, but a policy that does not insist gives
// them out.
TEST(CoarseState, AddsTheDevicesThatTheNodeHasBeyondItsZones) {
  const NodeFacts node{.allocatable = kube::Resources{{kGpu, 4}}, .kubelet_version = "v1.37.2"};
  for (const auto& [policy, answer] :
       {std::pair("best-effort", ""), std::pair("restricted", "TopologyAffinityError")}) {
    const NodeResourceTopology nrt = Published(policy, {Zone("node-0", {{kGpu, 2, 2, 2}})});
    ASSERT_OK_AND_ASSIGN(const CoarseState coarse, CoarseStateFrom(nrt, node));
    EXPECT_EQ(Says(coarse, Asks(0, 0, 3)), answer);
    EXPECT_THAT(Codes(coarse), Contains("DevicesWithoutNumaNode"));
  }
}

TEST(CoarseState, TakesTheKubeletsVersionFromTheNode) {
  const NodeResourceTopology nrt = Published("restricted", {Zone("node-0", {{kGpu, 2, 2, 2}})});
  ASSERT_OK_AND_ASSIGN(const CoarseState assumed, CoarseStateFrom(nrt));
  EXPECT_EQ(assumed.state.machine->settings.minor_version, 0);  // as 37, and not verified
  EXPECT_FALSE(Answer(assumed.state, Asks(0, 0, 1)).verified_version);
  EXPECT_THAT(Codes(assumed), Contains("KubeletVersionAssumed"));
  ASSERT_OK_AND_ASSIGN(const CoarseState told,
                       CoarseStateFrom(nrt, {.allocatable = {}, .kubelet_version = "v1.35.4"}));
  EXPECT_EQ(told.state.machine->settings.minor_version, 35);
  EXPECT_THAT(Codes(told), Not(Contains("KubeletVersionAssumed")));
}

// A node on which every resource is listed in the zones and no rule applies that counts do not
// tell: two threads a core, but no option that asks for whole ones.
placement::NodePlacement AnyNode() {
  placement::NodePlacement node;
  node.kubelet.version = "v1.37.2";
  node.kubelet.topology_policy = "single-numa-node";
  node.kubelet.topology_scope = *rc::gen::element<std::string>("container", "pod");
  node.kubelet.cpu_policy = "static";
  node.kubelet.memory_policy = "Static";
  node.kubelet.reserved_cpus = base::CpuSet{0};
  const int nodes = *rc::gen::inRange(1, 5);
  const int cores = *rc::gen::inRange(1, 5);
  for (int id = 0; id < nodes; ++id) {
    placement::NumaNodePlacement numa;
    numa.id = id * 2;
    placement::CoreGroup group{.socket = id / 2, .l3 = id, .cores = {}};
    for (int core = id * cores; core < (id + 1) * cores; ++core) {
      group.cores.push_back({core, nodes * cores + core});
      numa.cpus |= group.cores.back();
    }
    numa.core_groups = {group};
    numa.free_cpus = numa.cpus - *node.kubelet.reserved_cpus;
    const std::int64_t bytes = *rc::gen::inRange(1, 9) * kGiB;
    numa.memory = {{"memory", bytes + kGiB, kGiB, bytes, bytes}};
    for (int gpu = *rc::gen::inRange(id == 0 ? 1 : 0, 4); gpu > 0; --gpu) {
      placement::PlacedDevice device;
      device.resource = kGpu;
      device.id = "GPU-" + std::to_string(id) + std::to_string(gpu);
      device.numa_nodes = {numa.id};
      device.healthy = *rc::gen::weightedElement<bool>({{5, true}, {1, false}});
      node.devices.push_back(std::move(device));
    }
    node.numa_nodes.push_back(std::move(numa));
  }
  return node;
}

Request AnyRequest() {
  return Asks(*rc::gen::inRange(0, 8), *rc::gen::inRange(0, 9), *rc::gen::inRange(0, 4));
}

TEST(CoarsePrediction, EqualsTheExactOneForOneContainerUnderSingleNumaNode) {
  EXPECT_TRUE(rc::check([] {
    const placement::NodePlacement node = AnyNode();
    absl::StatusOr<NodeState> exact = StateFrom(node);
    RC_ASSERT(exact.ok());
    for (int pods = *rc::gen::inRange(0, 6); pods > 0; --pods) {
      const Request request = AnyRequest();
      Commit(std::to_string(pods), Admit(*exact, request), *exact);
    }
    const absl::StatusOr<CoarseState> coarse = CoarseStateFrom(NrtOf(node, *exact));
    RC_ASSERT(coarse.ok());
    const Request request = AnyRequest();
    const Verdict told = Admit(*exact, request);
    RC_ASSERT(Says(*coarse, request) == KubeletReason(told));
    RC_TAG(KubeletReason(told));
  }));
}

}  // namespace
}  // namespace scheduler::admission
