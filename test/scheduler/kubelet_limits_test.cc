#include "scheduler/admission/kubelet_limits.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "scheduler/admission/admit.h"
#include "test/scheduler/scene.h"
#include "test/support/status.h"

// What the kubelet has no answer to (release 1.37.2). "fatal" ones must keep the pod away.
namespace scheduler::admission {
namespace {

using testing::HasSubstr;

Verdict Answer(const placement::NodePlacement& node, const std::string& words) {
  return Admit(Scene(node).state, MakeRequest(PodOf("a", words)));
}

// "", or the limit and whether it is fatal.
std::string Limits(const placement::NodePlacement& node, const std::string& words = "nothing") {
  const Verdict verdict = Answer(node, words);
  EXPECT_EQ(verdict.limit != Limit::kNone, verdict.reason == Reason::kKubeletCannot);
  EXPECT_EQ(verdict.rejected(),
            verdict.limit != Limit::kNone ? IsFatal(verdict.limit) : !verdict.admitted());
  return ToString(verdict.limit) + std::string(IsFatal(verdict.limit) ? ", fatal" : "");
}

std::string Sentence(const placement::NodePlacement& node, const std::string& words = "nothing") {
  return LimitSentence(*Scene(node).state.machine, Answer(node, words).limit);
}

TEST(KubeletLimits, LeaveOrdinaryNodesAndPodsAlone) {
  const placement::NodePlacement node = NodeOf({.numa = Alike(2, {.cpus = 8, .gpus = 2}),
                                                .policy = "restricted",
                                                .reserved_cpus = "0,4",
                                                .reserved_memory = "1Gi"});
  EXPECT_EQ(Limits(node, "4 CPU 1Gi 1 GPU"), "");
  EXPECT_EQ(Limits(node, "40 CPU 1Gi"), "") << "that is an ordinary rejection";
}

TEST(KubeletLimits, ItDoesNotStartOnMoreThanEightNumaNodesUnlessAllowed) {
  EXPECT_EQ(Limits(NodeOf({.numa = Alike(8, {})})), "");
  EXPECT_EQ(Limits(NodeOf({.numa = Alike(9, {})})), "TooManyNumaNodes");
  EXPECT_EQ(Sentence(NodeOf({.numa = Alike(9, {})})),
            "the kubelet would not start with more than 8 NUMA nodes and policy single-numa-node");
  EXPECT_EQ(Limits(NodeOf({.numa = Alike(9, {}), .policy = "none"})), "");
  const auto allowing = [](const std::string& most) {
    return NodeOf({.numa = Alike(9, {}), .topology_options = {{"max-allowable-numa-nodes", most}}});
  };
  EXPECT_EQ(Limits(allowing("9")), "");
  EXPECT_EQ(Limits(allowing("8")), "TooManyNumaNodes");
  EXPECT_EQ(Limits(allowing("7")), "TopologyOptions") << "not below 8";
  EXPECT_EQ(Limits(allowing("nine")), "TopologyOptions");
  EXPECT_EQ(Limits(allowing("99999999999")), "");
}

TEST(KubeletLimits, ItDoesNotStartWithTopologyOptionsThatItDoesNotKnowUnlessThePolicyIsNone) {
  const auto node = [](const std::string& policy, const std::string& name,
                       const std::string& value) {
    return NodeOf({.policy = policy, .topology_options = {{name, value}}});
  };
  EXPECT_EQ(Limits(node("restricted", "prefer-closest-numa-nodes", "T")), "");
  EXPECT_EQ(Limits(node("restricted", "prefer-closest-numa-nodes", "yes")), "TopologyOptions");
  EXPECT_EQ(Limits(node("restricted", "fast", "true")), "TopologyOptions");
  EXPECT_EQ(Limits(node("none", "fast", "true")), "");
  EXPECT_EQ(Sentence(node("restricted", "fast", "true")),
            "the kubelet would not start with topology manager option fast=true");
}

TEST(KubeletLimits, ItDoesNotStartWithPoliciesThatItDoesNotKnow) {
  EXPECT_EQ(Limits(NodeOf({.policy = "strict"})), "UnknownPolicy");
  EXPECT_EQ(Limits(NodeOf({.scope = "node"})), "UnknownPolicy");
  EXPECT_EQ(Limits(NodeOf({.cpu_policy = "dynamic"})), "UnknownPolicy");
  EXPECT_EQ(Limits(NodeOf({.memory_policy = "static"})), "UnknownPolicy");
  EXPECT_EQ(Limits(NodeOf({.policy = "", .scope = "", .cpu_policy = "", .memory_policy = ""})), "")
      << "not told is not wrong";
}

TEST(KubeletLimits, ItDoesNotStartWithCpuOptionsThatItRefuses) {
  using Options = std::map<std::string, std::string>;
  const auto with = [](const Options& options) {
    return Limits(NodeOf({.policy = "restricted", .cpu_options = options}));
  };
  const std::string refused = "CpuOptions";
  EXPECT_EQ(with({{"full-pcpus-only", "true"}, {"distribute-cpus-across-numa", "true"}}), "");
  EXPECT_EQ(with({{"full-pcpus-only", "true"}, {"prefer-align-cpus-by-uncorecache", "1"}}), "");
  EXPECT_EQ(with({{"full-pcpus-only", "maybe"}}), refused);
  EXPECT_EQ(with({{"fast", "true"}}), refused);
  EXPECT_EQ(with({{"distribute-cpus-across-cores", "true"}}), "");
  EXPECT_EQ(with({{"distribute-cpus-across-cores", "true"}, {"full-pcpus-only", "false"}}), "");
  EXPECT_EQ(with({{"distribute-cpus-across-cores", "true"}, {"full-pcpus-only", "true"}}), refused);
  EXPECT_EQ(with({{"distribute-cpus-across-cores", "true"}, {"distribute-cpus-across-numa", "t"}}),
            refused);
  EXPECT_EQ(
      with({{"distribute-cpus-across-cores", "true"}, {"prefer-align-cpus-by-uncorecache", "1"}}),
      refused);
  EXPECT_EQ(
      with({{"prefer-align-cpus-by-uncorecache", "1"}, {"distribute-cpus-across-numa", "true"}}),
      refused);
  EXPECT_EQ(Limits(NodeOf({.cpu_policy = "none", .cpu_options = {{"full-pcpus-only", "false"}}})),
            refused)
      << "policy none takes no options at all";
}

TEST(KubeletLimits, ItDoesNotStartWithOptionsWhoseGateIsOff) {
  placement::NodePlacement node =
      NodeOf({.policy = "restricted", .cpu_options = {{"align-by-socket", "true"}}});
  EXPECT_EQ(Limits(node), "") << "a gate that was not told is not off";
  node.kubelet.feature_gates["CPUManagerPolicyAlphaOptions"] = "false";
  EXPECT_EQ(Limits(node), "CpuOptions");
  node.kubelet.cpu_options = {{"distribute-cpus-across-numa", "true"}};
  EXPECT_EQ(Limits(node), "");
  node.kubelet.feature_gates["CPUManagerPolicyBetaOptions"] = "false";
  EXPECT_EQ(Limits(node), "CpuOptions");
  node.kubelet.cpu_options = {{"prefer-align-cpus-by-uncorecache", "true"}};
  EXPECT_EQ(Limits(node), "") << "stable since 1.36";
  node.kubelet.version = "v1.35.4";
  EXPECT_EQ(Limits(node), "CpuOptions");
}

TEST(KubeletLimits, ItDoesNotStartWithAlignBySocketOnSingleNumaNodeOrWithMoreSocketsThanNodes) {
  const std::map<std::string, std::string> by_socket = {{"align-by-socket", "true"}};
  EXPECT_EQ(Limits(NodeOf({.policy = "restricted", .cpu_options = by_socket})), "");
  EXPECT_EQ(Limits(NodeOf({.policy = "single-numa-node", .cpu_options = by_socket})), "CpuOptions");
  placement::NodePlacement node =
      NodeOf({.numa = {{.id = 0, .cpus = 8}}, .policy = "restricted", .cpu_options = by_socket});
  node.numa_nodes[0].core_groups.push_back(node.numa_nodes[0].core_groups[0]);
  node.numa_nodes[0].core_groups[0].cores.resize(2);
  node.numa_nodes[0].core_groups[1].cores.erase(
      node.numa_nodes[0].core_groups[1].cores.begin(),
      node.numa_nodes[0].core_groups[1].cores.begin() + 2);
  node.numa_nodes[0].core_groups[1].socket = 1;
  EXPECT_EQ(Limits(node), "CpuOptions") << "two sockets, one NUMA node";
}

TEST(KubeletLimits, ItDoesNotStartWithoutReservations) {
  placement::NodePlacement node = NodeOf({.reserved_cpus = "0", .reserved_memory = "1Gi"});
  EXPECT_EQ(Limits(node), "");
  node.kubelet.reserved_cpus = base::CpuSet();
  EXPECT_EQ(Limits(node), "NoReservedCpus");
  node.kubelet.reserved_cpus = std::nullopt;
  EXPECT_EQ(Limits(node), "") << "not told is not none";
  node.kubelet.reserved_memory[0].numa_node = 5;
  EXPECT_EQ(Limits(node), "ReservedMemory");
  EXPECT_THAT(Sentence(node), HasSubstr("reserved on NUMA node 5, which is not there"));
  node.kubelet.reserved_memory.clear();
  EXPECT_EQ(Limits(node), "ReservedMemory");
  node.kubelet.config_source = "state";
  EXPECT_EQ(Limits(node), "") << "not told is not none";
}

TEST(KubeletLimits, AnIdAbove63CrashesEveryPodUnlessThePolicyIsNone) {
  const std::vector<NumaSpec> sparse = {{.id = 0}, {.id = 64}};
  EXPECT_EQ(Limits(NodeOf({.numa = {{.id = 0}, {.id = 63}}, .policy = "restricted"})), "");
  EXPECT_EQ(Limits(NodeOf({.numa = sparse, .policy = "restricted"})), "NumaIdAbove63, fatal");
  EXPECT_EQ(Limits(NodeOf({.numa = sparse, .policy = "single-numa-node"})), "NumaIdAbove63, fatal");
  const placement::NodePlacement none = NodeOf({.numa = sparse, .policy = "none"});
  EXPECT_EQ(Limits(none, "2 CPU limit 2 CPU"), "");
  EXPECT_EQ(Limits(none, "2 CPU 1Gi"), "NumaIdAbove63, fatal") << "the memory manager makes masks";
  EXPECT_EQ(
      Limits(NodeOf({.numa = sparse, .policy = "none", .memory_policy = "None"}), "2 CPU 1Gi"), "");
}

TEST(KubeletLimits, MoreThan64NumaNodesAreAVerdictAndNoError) {
  const std::vector<NumaSpec> many = Alike(65, {.cpus = 2, .memory = "1Gi"});
  EXPECT_EQ(Limits(NodeOf({.numa = many, .policy = "none"})), "MoreThan64NumaNodes");
  EXPECT_EQ(Limits(NodeOf({.numa = many, .policy = "none"}), "2 CPU 1Gi"), "NumaIdAbove63, fatal");
  EXPECT_EQ(Limits(NodeOf({.numa = many, .policy = "restricted"})), "TooManyNumaNodes");
  const placement::NodePlacement allowed =
      NodeOf({.numa = many,
              .policy = "restricted",
              .topology_options = {{"max-allowable-numa-nodes", "65"}}});
  EXPECT_EQ(Limits(allowed), "NumaIdAbove63, fatal");

  Scene scene(allowed);
  EXPECT_EQ(scene.Add("a", "1 CPU 1Gi"), "KubeletCannot");
  scene.Remove("a");
  placement::NodePlacement published = allowed;
  WriteState(scene.state, published);
  EXPECT_EQ(published, allowed) << "nothing is written that is not known";
  placement::NodePlacement twice = allowed;
  twice.numa_nodes[64].id = 0;
  EXPECT_THAT(StateFrom(twice), test::StatusIs(absl::StatusCode::kInvalidArgument,
                                               HasSubstr("NUMA node 0 is listed twice")));
}

TEST(KubeletLimits, AManagerHangsThatWouldListTheSetsOfMoreThan24Nodes) {
  std::vector<NumaSpec> numa = Alike(25, {.cpus = 0, .memory = "1Gi"});
  numa[0].cpus = 8;
  numa[0].gpus = 1;
  NodeSpec spec = {.numa = numa,
                   .policy = "restricted",
                   .topology_options = {{"max-allowable-numa-nodes", "25"}}};
  EXPECT_EQ(Limits(NodeOf(spec), "2 CPU 1Gi"), "TooManyMasks") << "memory: of all nodes";
  EXPECT_EQ(Limits(NodeOf(spec), "1 GPU"), "") << "devices: of nodes that host some";
  spec.memory_policy = "None";
  EXPECT_EQ(Limits(NodeOf(spec), "2 CPU 1Gi"), "") << "CPUs: of nodes with CPUs";
  placement::NodePlacement older = NodeOf(spec);
  older.kubelet.version = "v1.35.4";
  EXPECT_EQ(Limits(older, "1 GPU"), "TooManyMasks") << "devices: of all nodes before 1.36";
  for (NumaSpec& node : spec.numa) node.cpus = 2;
  EXPECT_EQ(Limits(NodeOf(spec), "2 CPU 1Gi"), "TooManyMasks");
  spec.policy = "none";
  EXPECT_EQ(Limits(NodeOf(spec), "2 CPU 1Gi"), "") << "nobody lists";
  spec.memory_policy = "Static";
  EXPECT_EQ(Limits(NodeOf(spec), "2 CPU 1Gi"), "TooManyMasks") << "its own default hint";
}

TEST(KubeletLimits, AHugePageSizeThatANumaNodeLacksCrashesTheMemoryManager) {
  const std::vector<NumaSpec> numa = {{.id = 0, .hugepages = {{"hugepages-1Gi", "4Gi"}}},
                                      {.id = 1}};
  const placement::NodePlacement node = NodeOf({.numa = numa, .policy = "restricted"});
  const std::string fatal = "MissingHugePages, fatal";
  EXPECT_EQ(Limits(node, "2 CPU 1Gi"), "");
  EXPECT_EQ(Limits(node, "2 CPU 1Gi 1Gi hugepages-1Gi"), fatal);
  EXPECT_EQ(Limits(node, "2 CPU 1Gi 0 hugepages-1Gi"), fatal) << "0 is a request";
  EXPECT_EQ(Limits(node, "2 CPU 1Gi 2Mi hugepages-2Mi"), fatal) << "no node has it";
  EXPECT_EQ(Limits(node, "1 CPU 1Gi 1Gi hugepages-1Gi limit 2 CPU 1Gi 1Gi hugepages-1Gi"), "")
      << "only Guaranteed pods are asked about";
  EXPECT_EQ(Limits(NodeOf({.numa = numa, .policy = "none"}), "2 CPU 1Gi 1Gi hugepages-1Gi"), fatal);
  EXPECT_EQ(Limits(NodeOf({.numa = numa, .memory_policy = "None"}), "2 CPU 1Gi 1Gi hugepages-1Gi"),
            "");
  placement::NodePlacement untold = node;
  untold.numa_nodes[1].memory.clear();
  EXPECT_EQ(Limits(untold, "2 CPU 1Gi 1Gi hugepages-1Gi"), "") << "tables that were not told";
}

TEST(KubeletLimits, AContainerThatIsRejectedBeforeKeepsTheKubeletFromTheCrash) {
  const placement::NodePlacement node =
      NodeOf({.numa = {{.id = 0, .hugepages = {{"hugepages-1Gi", "4Gi"}}}, {.id = 1}}});
  EXPECT_EQ(Limits(node, "40 CPU 1Gi; 2 CPU 1Gi 1Gi hugepages-1Gi"), "");
  EXPECT_EQ(Limits(node, "4 CPU 1Gi; 2 CPU 1Gi 1Gi hugepages-1Gi"), "MissingHugePages, fatal");
}

// Under scope pod the merge goes by the memory types of app containers alone.
TEST(KubeletLimits, AnInitContainersHugePagesUnderScopePodCrashOnlyOnTheNodesThatAreLookedAt) {
  NodeSpec spec = {.numa = {{.id = 0, .hugepages = {{"hugepages-1Gi", "4Gi"}}}, {.id = 1}},
                   .scope = "pod"};
  const std::string pod = "init 2 CPU 1Gi 1Gi hugepages-1Gi; 2 CPU 1Gi";
  EXPECT_EQ(Limits(NodeOf(spec), pod), "") << "merged to node 0, which has the table";
  spec.numa[0].taken_cpus = 16;
  EXPECT_EQ(Limits(NodeOf(spec), pod), "MissingHugePages, fatal") << "merged to node 1";
  spec.numa[0].taken_cpus = 0;
  EXPECT_EQ(Limits(NodeOf(spec), "init 2 CPU 1Gi 5Gi hugepages-1Gi; 2 CPU 1Gi"),
            "MissingHugePages, fatal")
      << "node 0 does not suffice, so that all sets of nodes are looked at";
}

TEST(KubeletLimits, PreferClosestCrashesWhereTwoMasksAreCompared) {
  NodeSpec spec = {.numa = {{.id = 0}, {.id = 8}},
                   .policy = "restricted",
                   .topology_options = {{"prefer-closest-numa-nodes", "true"}}};
  const std::string fatal = "Distances, fatal";
  EXPECT_EQ(Limits(NodeOf(spec), "4 CPU 1Gi"), fatal) << "{0} and {8}, both preferred";
  EXPECT_EQ(Limits(NodeOf(spec), "nothing"), "") << "one mask only";
  EXPECT_EQ(Limits(NodeOf(spec), "20 CPU 1Gi"), fatal) << "memory alone makes {0} and {8}";
  spec.memory_policy = "None";
  EXPECT_EQ(Limits(NodeOf(spec), "20 CPU 1Gi"), "") << "{0,8} only";
  spec.numa[1].taken_cpus = 16;
  EXPECT_EQ(Limits(NodeOf(spec), "4 CPU 1Gi"), "") << "{0} is the only one of one node";
  spec.policy = "single-numa-node";
  spec.numa[1].taken_cpus = 0;
  EXPECT_EQ(Limits(NodeOf(spec), "4 CPU 1Gi"), "") << "never measures distances";
  spec.policy = "restricted";
  spec.topology_options.clear();
  EXPECT_EQ(Limits(NodeOf(spec), "4 CPU 1Gi"), "");
}

TEST(KubeletLimits, PreferClosestReadsTheWrongNodesDistanceWhereIdsHaveGaps) {
  // A row lists the nodes 0, 2 and 3. Where node 2 is looked up stands the distance to node 3, and
  // node 3 is looked up beyond the row.
  placement::NodePlacement node =
      NodeOf({.numa = {{.id = 0}, {.id = 2}, {.id = 3}},
              .policy = "restricted",
              .topology_options = {{"prefer-closest-numa-nodes", "1"}}});
  node.numa_nodes[0].distances = {{0, 10}, {2, 21}, {3, 31}};
  const Scene scene(node);
  EXPECT_EQ(scene.state.machine->distances[0][1], 31);
  EXPECT_EQ(scene.state.machine->beyond_distances, Mask{0b100});
}

TEST(KubeletLimits, AVerdictSaysWhetherTheReleaseIsTheVerifiedOne) {
  placement::NodePlacement node = NodeOf({});
  EXPECT_TRUE(Answer(node, "2 CPU 1Gi").verified_version);
  for (const std::string version : {"v1.36.3", "v1.38.0-beta.0", "v2.37.0", "", "v1.", "v1.x"}) {
    node.kubelet.version = version;
    EXPECT_FALSE(Answer(node, "2 CPU 1Gi").verified_version) << version;
  }
  node.kubelet.version = "v1.37.0+vendor";
  EXPECT_TRUE(Answer(node, "2 CPU 1Gi").verified_version);
}

}  // namespace
}  // namespace scheduler::admission
