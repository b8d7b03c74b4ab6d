#include "cli/machine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "kube/yaml.h"
#include "scheduler/admission/state.h"
#include "test/support/files.h"
#include "test/support/status.h"

namespace cli {
namespace {

using placement::CoreGroup;
using placement::NumaNodePlacement;
using test::StatusIs;
using testing::ElementsAre;
using testing::HasSubstr;

absl::StatusOr<DescribedMachine> Parse(const std::string& yaml) {
  const auto documents = kube::YamlToJson(yaml);
  if (!documents.ok()) return documents.status();
  return ParseMachine(documents->front());
}

std::vector<std::string> Cores(const NumaNodePlacement& numa) {
  std::vector<std::string> cores;
  for (const CoreGroup& group : numa.core_groups) {
    for (const base::CpuSet& core : group.cores) cores.push_back(core.ToString());
  }
  return cores;
}

TEST(ParseMachine, NeedsNothingButItsNumaNodes) {
  ASSERT_OK_AND_ASSIGN(const DescribedMachine machine,
                       Parse("{kind: Machine, numaNodes: [{cpus: 0-3}, {cpus: 4-7}]}"));
  const placement::KubeletFacts& kubelet = machine.node.kubelet;
  EXPECT_EQ(kubelet.version, "v1.37.2");
  EXPECT_EQ(kubelet.topology_policy, "none");
  EXPECT_EQ(kubelet.topology_scope, "container");
  EXPECT_EQ(kubelet.cpu_policy, "static");
  EXPECT_EQ(kubelet.memory_policy, "None");
  EXPECT_EQ(kubelet.reserved_cpus, std::nullopt);
  ASSERT_EQ(machine.node.numa_nodes.size(), 2U);
  const NumaNodePlacement& second = machine.node.numa_nodes[1];
  EXPECT_EQ(second.id, 1);
  EXPECT_EQ(second.free_cpus, base::CpuSet({4, 5, 6, 7}));
  EXPECT_EQ(second.core_groups.front().socket, 1);
  EXPECT_THAT(Cores(second), ElementsAre("4", "5", "6", "7"));
  EXPECT_THAT(second.distances, ElementsAre(std::pair(0, 20), std::pair(1, 10)));
  EXPECT_OK(scheduler::admission::StateFrom(machine.node));
}

TEST(ParseMachine, PutsTheThreadsOfACoreTogether) {
  ASSERT_OK_AND_ASSIGN(const DescribedMachine split,
                       Parse("{kind: Machine, numaNodes: [{cpus: \"0-1,8-9\", threads: 2}, {cpus: "
                             "2-3, threads: 2}]}"));
  EXPECT_THAT(Cores(split.node.numa_nodes[0]), ElementsAre("0,8", "1,9"));
  EXPECT_THAT(Cores(split.node.numa_nodes[1]), ElementsAre("2-3"));
  ASSERT_OK_AND_ASSIGN(
      const DescribedMachine adjacent,
      Parse("{kind: Machine, siblings: adjacent, numaNodes: [{cpus: 0-3, threads: 2}]}"));
  EXPECT_THAT(Cores(adjacent.node.numa_nodes[0]), ElementsAre("0-1", "2-3"));
}

TEST(ParseMachine, CutsANodeIntoGroupsOfCoresThatShareAnL3) {
  ASSERT_OK_AND_ASSIGN(
      const DescribedMachine machine,
      Parse("{kind: Machine, numaNodes: [{cpus: 0-4, coresPerL3: 2, socket: 7}]}"));
  const std::vector<CoreGroup>& groups = machine.node.numa_nodes[0].core_groups;
  ASSERT_EQ(groups.size(), 3U);
  EXPECT_EQ(groups[2].cores.size(), 1U);
  EXPECT_EQ(groups[2].l3, 2);
  EXPECT_EQ(groups[2].socket, 7);
}

TEST(ParseMachine, ReadsEveryField) {
  ASSERT_OK_AND_ASSIGN(const DescribedMachine machine,
                       Parse(test::Slurp("test/fuzz/seeds/machine_fuzz/all-fields.yaml")));
  EXPECT_EQ(machine.node.node_name, "m");
  EXPECT_EQ(machine.node.kubelet.topology_options.at("prefer-closest-numa-nodes"), "true");
  EXPECT_EQ(machine.node.kubelet.topology_options.at("max-allowable-numa-nodes"), "8");
  EXPECT_EQ(machine.node.kubelet.cpu_options.at("full-pcpus-only"), "true");
  EXPECT_EQ(machine.node.kubelet.reserved_cpus, base::CpuSet({0, 4}));
  const NumaNodePlacement& node = machine.node.numa_nodes[0];
  ASSERT_EQ(node.memory.size(), 2U);
  EXPECT_EQ(node.memory[0].type, "hugepages-2Mi");
  EXPECT_EQ(node.memory[1].allocatable, (std::int64_t{3} << 30) - (8 << 20));
  // Every size is on every node.
  EXPECT_EQ(machine.node.numa_nodes[1].memory[0].type, "hugepages-2Mi");
  EXPECT_EQ(machine.node.numa_nodes[1].id, 8);
  ASSERT_EQ(machine.node.devices.size(), 3U);
  EXPECT_EQ(machine.node.devices[1].id, "gpu-1");
  EXPECT_EQ(machine.node.devices[1].numa_nodes, base::NumaMask{0});
  EXPECT_TRUE(machine.node.devices[2].numa_nodes.empty());
  EXPECT_EQ(machine.allocatable.at("cpu"), 7000);
  EXPECT_EQ(machine.allocatable.at("hugepages-2Mi"), 8 << 20);
}

TEST(ParseMachine, SaysWhatIsWrongAndWhere) {
  const auto refused = [](const std::string& yaml, const std::string& why) {
    EXPECT_THAT(Parse(yaml), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(why))) << yaml;
  };
  refused("{kind: Machine}", "numaNodes: is missing");
  refused("{kind: Machine, numaNodes: []}", "numaNodes: names no NUMA node");
  refused("{kind: Machine, polcy: none, numaNodes: [{}]}", "\"polcy\" is not known");
  refused("{kind: Machine, policy: strict, numaNodes: [{}]}", "policy: \"strict\" is none of none");
  refused("{kind: Machine, numaNodes: [{thread: 2}]}", "numaNodes[0]: \"thread\" is not known");
  refused("{kind: Machine, numaNodes: [{cpus: 0-2, threads: 2}]}",
          "numaNodes[0].threads: 3 CPUs do not make cores of 2 threads");
  refused("{kind: Machine, numaNodes: [{cpus: 0-2}, {cpus: 2-3}]}",
          "numaNodes[1].cpus: 2 are on another NUMA node as well");
  refused("{kind: Machine, numaNodes: [{id: 1}, {}]}", "numaNodes[1]: the id 1 is taken");
  refused("{kind: Machine, reservedCPUs: \"9\", numaNodes: [{cpus: 0-2}]}",
          "reservedCPUs: 9 are on no NUMA node");
  refused("{kind: Machine, memoryPolicy: Static, numaNodes: [{}]}",
          "numaNodes[0].memory: is missing");
  refused("{kind: Machine, numaNodes: [{memory: 1Gi, distances: [10, 20]}]}",
          "numaNodes[0].distances: has 2 entries for 1 NUMA nodes");
  refused("{kind: Machine, cpuOptions: {full-pcpu-only: true}, numaNodes: [{}]}",
          "cpuOptions.full-pcpu-only: is not known; there are full-pcpus-only,");
  refused("{kind: Machine, numaNodes: [{devices: {example.com/gpu: 1000000000}}]}",
          "numaNodes[0].devices.example.com/gpu: 1000000000 is not within 0 to 4096");
  refused("{kind: Machine, numaNodes: [{memory: -1Gi}]}", "numaNodes[0].memory: ");
  refused("{kind: Machine, numaNodes: [{memory: 1Gi, reservedMemory: 1Gi, hugepages-2Mi: 2Mi}]}",
          "numaNodes[0].memory: huge pages and reservedMemory are 1026Mi together, more than it");
  const std::string full = "{devices: {a.com/a: 4096, b.com/b: 4096}}";
  refused("{kind: Machine, numaNodes: [" + full + ", {devices: {a.com/a: 1}}]}",
          "numaNodes[1].devices.a.com/a: makes more than 8192 devices");
  for (const std::string version : {"v1.", "1.37", "v1.x", "v1.3x", "v2.0", ""}) {
    refused("{kind: Machine, kubeletVersion: \"" + version + "\", numaNodes: [{}]}",
            "kubeletVersion: is no release such as v1.37.2");
  }
  refused("{kind: Machine, apiVersion: cluster.x-k8s.io/v1beta1, numaNodes: [{}]}", "apiVersion: ");
}

}  // namespace
}  // namespace cli
