#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <map>
#include <string>

#include "hwinfo/read.h"
#include "test/hwinfo/machine_tree.h"
#include "test/support/shared.h"
#include "test/support/status.h"

// What must hold of any machine, each rule on the smallest machine that shows it.
namespace hwinfo {
namespace {

using base::CpuSet;
using base::NumaMask;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

Topology ReadTree(const test::TempTree& tree) {
  absl::StatusOr<Topology> topology = Read({.root = tree.root(), .xml = {}});
  EXPECT_OK(topology);
  return topology.ok() ? *std::move(topology) : Topology{};
}

std::string MessageOf(const Topology& topology, std::string_view code,
                      std::string_view subject = {}) {
  return test::FindDiagnostic(topology.diagnostics, code, subject).message;
}

std::string Cpus(const std::string& name) { return test::kCpuFolder + name; }
std::string Nodes(const std::string& name) { return test::kNodeFolder + name; }

TEST(TopologyRules, ATwoSocketMachineIsReadWhole) {
  test::TempTree tree;
  test::PutTwoSocketMachine(tree);
  tree.Put("proc/sys/kernel/random/boot_id", "6f0c\n");
  const Topology topology = ReadTree(tree);
  EXPECT_EQ(topology.boot_id, "6f0c");
  EXPECT_EQ(topology.OnlineCpus().ToString(), "0-7");
  EXPECT_THAT(topology.sockets,
              ElementsAre(Socket{.id = 0, .cpus = {0, 1, 4, 5}, .numa_nodes = {0}},
                          Socket{.id = 1, .cpus = {2, 3, 6, 7}, .numa_nodes = {1}}));
  ASSERT_EQ(topology.numa_nodes.size(), 2U);
  const NumaNode& node = topology.numa_nodes[1];
  EXPECT_EQ(node.id, 1);
  EXPECT_EQ(node.kind, NumaNodeKind::kDram);
  EXPECT_EQ(node.socket, 1);
  EXPECT_EQ(node.cpus, CpuSet({2, 3, 6, 7}));
  EXPECT_EQ(node.nearest_cpus, node.cpus);
  EXPECT_EQ(node.memory_bytes, std::int64_t{32} << 30);
  EXPECT_EQ(node.free_bytes, std::int64_t{16} << 30);
  EXPECT_THAT(node.distances, ElementsAre(Pair(0, 21), Pair(1, 10)));
  EXPECT_EQ(topology.cpus[6],
            (Cpu{.id = 6, .socket = 1, .core = 0, .numa_node = 1, .siblings = {2, 6}}));
}

TEST(TopologyRules, OwnCpuAffinityNeverNarrowsThePicture) {
  cpu_set_t before;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  if (CPU_COUNT(&before) < 2) GTEST_SKIP() << "this needs two CPUs";
  ASSERT_OK_AND_ASSIGN(Topology whole, Read({}));
  cpu_set_t one;
  CPU_ZERO(&one);
  for (int cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++cpu) {
    if (CPU_ISSET(cpu, &before)) CPU_SET(cpu, &one);
  }
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  absl::StatusOr<Topology> pinned = Read({});
  ASSERT_EQ(sched_setaffinity(0, sizeof before, &before), 0);
  ASSERT_OK(pinned);
  for (Topology* topology : {&whole, &*pinned}) {
    for (NumaNode& node : topology->numa_nodes) {
      node.free_bytes.reset();
      for (HugePages& pages : node.huge_pages) pages.free = 0;
    }
  }
  EXPECT_TRUE(*pinned == whole);
}

TEST(TopologyRules, OwnCgroupNeverNarrowsThePicture) {
  SKIP_WITHOUT_SHARED();
  const test::TempTree tree;
  // The recording's own cgroup is allowed 6 of its 32 CPUs and 6 of its 8 nodes.
  const std::string root =
      test::UnpackShared("machines/hwloc/fsroot/32amd64-4s2n4c-cgroup2.tar.bz2", tree);
  ASSERT_OK_AND_ASSIGN(const Topology topology, Read({.root = root, .xml = {}}));
  EXPECT_EQ(topology.OnlineCpus().ToString(), "0-31");
  EXPECT_EQ(topology.NumaNodeIds().ToString(), "0-7");
  EXPECT_EQ(MessageOf(topology, "HwlocCpusDiffer"), "");
  EXPECT_EQ(MessageOf(topology, "HwlocNodesDiffer"), "");
}

TEST(TopologyRules, NodeIdsMayHaveHolesAndBeAbove63AndDistanceRowsGoByOnlineNodes) {
  test::TempTree tree;
  test::PutTwoSocketMachine(tree);
  tree.Remove(Nodes("node1"));
  tree.Put(Nodes("online"), "0,8,250\n");
  test::PutNode(tree, 0, "0-1,4-5", 1024, "10 40 80");
  test::PutNode(tree, 8, "2-3,6-7", 1024, "41 10 81");
  test::PutNode(tree, 250, "", 1024, "82 83 10");
  const Topology topology = ReadTree(tree);
  EXPECT_EQ(topology.NumaNodeIds(), NumaMask({0, 8, 250}));
  EXPECT_EQ(topology.cpus[2].numa_node, 8);
  EXPECT_THAT(topology.FindNumaNode(8)->distances,
              ElementsAre(Pair(0, 41), Pair(8, 10), Pair(250, 81)));
  EXPECT_EQ(topology.NumaNodesOf(CpuSet({0, 7})), NumaMask({0, 8}));
}

TEST(TopologyRules, DistancesMayBeAsymmetric) {
  test::TempTree tree;
  test::PutTwoSocketMachine(tree);
  test::PutNode(tree, 0, "0-1,4-5", 1024, "10 17");
  test::PutNode(tree, 1, "2-3,6-7", 1024, "28 10");
  const Topology topology = ReadTree(tree);
  EXPECT_EQ(topology.FindNumaNode(0)->distances.at(1), 17);
  EXPECT_EQ(topology.FindNumaNode(1)->distances.at(0), 28);
}

TEST(TopologyRules, ANodeWithoutCpusIsNotGivenAny) {
  test::TempTree tree;
  test::PutTwoSocketMachine(tree);
  tree.Put(Nodes("online"), "0-2\n");
  test::PutNode(tree, 0, "0-1,4-5", 1024, "10 21 24");
  test::PutNode(tree, 1, "2-3,6-7", 1024, "21 10 14");
  test::PutNode(tree, 2, "", 4096, "24 14 10");
  const Topology topology = ReadTree(tree);
  const NumaNode& far = topology.numa_nodes[2];
  EXPECT_EQ(far.cpus, CpuSet());
  EXPECT_EQ(far.kind, NumaNodeKind::kMemoryOnly);
  EXPECT_EQ(far.memory_bytes, 4096 * 1024);
  // hwloc, by the distances, holds it to be near node 1's CPUs; so it is on their socket.
  EXPECT_EQ(far.nearest_cpus, CpuSet({2, 3, 6, 7}));
  EXPECT_EQ(far.socket, 1);
  EXPECT_EQ(topology.sockets[1].numa_nodes, NumaMask({1}));
  EXPECT_EQ(topology.NumaNodesOf(topology.OnlineCpus()), NumaMask({0, 1}));
}

TEST(TopologyRules, HighBandwidthMemoryDoesNotCountItsCpusTwice) {
  test::TempTree tree;
  test::PutTwoSocketMachine(tree);
  tree.Put(Nodes("online"), "0-3\n");
  test::PutNode(tree, 0, "0-1,4-5", 1024, "10 21 13 23");
  test::PutNode(tree, 1, "2-3,6-7", 1024, "21 10 23 13");
  test::PutNode(tree, 2, "", 512, "13 23 10 23");
  test::PutNode(tree, 3, "", 512, "23 13 23 10");
  const Topology topology = ReadTree(tree);
  int cpus = 0;
  for (const NumaNode& node : topology.numa_nodes) cpus += node.cpus.size();
  EXPECT_EQ(cpus, 8);
  EXPECT_EQ(topology.numa_nodes[2].nearest_cpus, topology.numa_nodes[0].cpus);
  EXPECT_EQ(topology.numa_nodes[2].socket, 0);
  EXPECT_EQ(topology.numa_nodes[3].socket, 1);
}

TEST(TopologyRules, ANodeWithoutMemoryKeepsItsCpus) {
  test::TempTree tree;
  test::PutTwoSocketMachine(tree);
  test::PutNode(tree, 1, "2-3,6-7", 0, "21 10");
  const Topology topology = ReadTree(tree);
  EXPECT_EQ(topology.numa_nodes[1].kind, NumaNodeKind::kCpuOnly);
  EXPECT_EQ(topology.numa_nodes[1].memory_bytes, 0);
  EXPECT_EQ(topology.numa_nodes[1].cpus, CpuSet({2, 3, 6, 7}));
}

TEST(TopologyRules, NodesThatAreOnlyPossibleAreNotThere) {
  test::TempTree tree;
  test::PutTwoSocketMachine(tree);
  tree.Put(Nodes("possible"), "0-3\n");
  EXPECT_EQ(ReadTree(tree).NumaNodeIds(), NumaMask({0, 1}));
}

TEST(TopologyRules, ANodeThatIsNotOnlineIsNotThereThoughItsFolderIs) {
  test::TempTree tree;
  test::PutTwoSocketMachine(tree);
  tree.Put(Nodes("online"), "1\n");
  test::PutNode(tree, 1, "2-3,6-7", 1024, "10");
  const Topology topology = ReadTree(tree);
  EXPECT_EQ(topology.NumaNodeIds(), NumaMask({1}));
  EXPECT_EQ(topology.cpus[0].numa_node, -1);
  EXPECT_THAT(MessageOf(topology, "CpusOnNoNumaNode"), HasSubstr("CPUs 0-1,4-5"));
}

TEST(TopologyRules, WithoutNumaNodesNode0StandsForTheHost) {
  test::TempTree tree;
  test::PutTwoSocketMachine(tree);
  tree.Remove("sys/devices/system/node");
  tree.Put("proc/meminfo", "MemTotal:       16384 kB\nMemFree:  8192 kB\n");
  tree.Put("sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", "5\n");
  tree.Put("sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages", "4\n");
  const Topology topology = ReadTree(tree);
  EXPECT_FALSE(topology.numa_visible);
  ASSERT_EQ(topology.numa_nodes.size(), 1U);
  const NumaNode& host = topology.numa_nodes[0];
  EXPECT_EQ(host.id, 0);
  EXPECT_EQ(host.cpus.ToString(), "0-7");
  EXPECT_EQ(host.memory_bytes, 16384 * 1024);
  EXPECT_EQ(host.socket, -1);
  EXPECT_THAT(host.huge_pages,
              ElementsAre(HugePages{.page_bytes = 2 << 20, .total = 5, .free = 4}));
  EXPECT_EQ(topology.cpus[7].numa_node, 0);
  EXPECT_NE(MessageOf(topology, "NumaNodesInvisible"), "");
}

TEST(TopologyRules, ANodeFolderWithoutNodesIsAsGoodAsNone) {
  test::TempTree tree;
  test::PutTwoSocketMachine(tree);
  tree.Remove("sys/devices/system/node");
  tree.Put(Nodes("online"), "0\n");
  EXPECT_FALSE(ReadTree(tree).numa_visible);
}

TEST(TopologyRules, HugePagesMayBeMissingOnSomeNodesAndInSomeSizes) {
  test::TempTree tree;
  test::PutTwoSocketMachine(tree);
  for (const char* size : {"hugepages-2048kB", "hugepages-1048576kB"}) {
    tree.Put(Nodes(fmt::format("node0/hugepages/{}/nr_hugepages", size)), "3\n");
    tree.Put(Nodes(fmt::format("node0/hugepages/{}/free_hugepages", size)), "1\n");
  }
  const Topology topology = ReadTree(tree);
  EXPECT_THAT(topology.numa_nodes[0].huge_pages,
              ElementsAre(HugePages{.page_bytes = 2 << 20, .total = 3, .free = 1},
                          HugePages{.page_bytes = 1 << 30, .total = 3, .free = 1}));
  EXPECT_THAT(topology.numa_nodes[1].huge_pages, IsEmpty());
  EXPECT_EQ(MessageOf(topology, "SysfsUnreadable"), "");
}

TEST(TopologyRules, OfflineCpusAreKeptApartAndACoreHasOnlyItsOnlineThreads) {
  test::TempTree tree;
  test::PutTwoSocketMachine(tree);
  tree.Put(Cpus("online"), "0-6\n");
  tree.Remove(Cpus("cpu7/topology"));
  tree.Put(Nodes("node1/cpulist"), "2-3,6\n");
  const Topology topology = ReadTree(tree);
  EXPECT_EQ(topology.offline_cpus, CpuSet({7}));
  EXPECT_EQ(topology.OnlineCpus().ToString(), "0-6");
  EXPECT_EQ(topology.cpus[3].siblings, CpuSet({3}));
  EXPECT_EQ(topology.numa_nodes[1].cpus, CpuSet({2, 3, 6}));
}

TEST(TopologyRules, OldKernelsWithoutAnOnlineFileShowOnlineCpusByTheirTopology) {
  test::TempTree tree;
  test::PutTwoSocketMachine(tree);
  tree.Remove(Cpus("online"));
  tree.Remove(Cpus("present"));
  tree.Remove(Cpus("cpu7/topology"));
  tree.Put(Cpus("cpu6/online"), "0\n");
  const Topology topology = ReadTree(tree);
  EXPECT_EQ(topology.OnlineCpus().ToString(), "0-5");
  EXPECT_EQ(topology.offline_cpus, CpuSet({6, 7}));
}

TEST(TopologyRules, IsolatedCpusAreNamedAndStayOnline) {
  test::TempTree tree;
  test::PutTwoSocketMachine(tree);
  tree.Put(Cpus("isolated"), "1,5\n");
  const Topology topology = ReadTree(tree);
  EXPECT_EQ(topology.isolated_cpus, CpuSet({1, 5}));
  EXPECT_TRUE(topology.OnlineCpus().Contains(5));
}

TEST(TopologyRules, CoreIdsRepeatFromSocketToSocket) {
  test::TempTree tree;
  test::PutTwoSocketMachine(tree);
  const Topology topology = ReadTree(tree);
  EXPECT_EQ(topology.cpus[0].core, topology.cpus[2].core);
  EXPECT_NE(topology.cpus[0].siblings, topology.cpus[2].siblings);
}

TEST(TopologyRules, SocketsAreNotNumaNodes) {
  test::TempTree tree;
  test::PutTwoSocketMachine(tree);
  tree.Put(Nodes("online"), "0-3\n");
  test::PutNode(tree, 0, "0,4", 1024, "10 12 21 21");
  test::PutNode(tree, 1, "1,5", 1024, "12 10 21 21");
  test::PutNode(tree, 2, "2,6", 1024, "21 21 10 12");
  test::PutNode(tree, 3, "3,7", 1024, "21 21 12 10");
  const Topology topology = ReadTree(tree);
  EXPECT_EQ(topology.sockets[0].numa_nodes, NumaMask({0, 1}));
  EXPECT_EQ(topology.sockets[1].numa_nodes, NumaMask({2, 3}));
  EXPECT_EQ(topology.numa_nodes[3].socket, 1);
}

TEST(TopologyRules, ANodeThatSpansSocketsHasNoSocketOfItsOwn) {
  test::TempTree tree;
  test::PutTwoSocketMachine(tree);
  tree.Put(Nodes("online"), "0\n");
  tree.Remove(Nodes("node1"));
  test::PutNode(tree, 0, "0-7", 1024, "10");
  const Topology topology = ReadTree(tree);
  EXPECT_EQ(topology.numa_nodes[0].socket, -1);
  EXPECT_EQ(topology.sockets[0].numa_nodes, NumaMask({0}));
  EXPECT_EQ(topology.sockets[1].numa_nodes, NumaMask({0}));
}

TEST(TopologyRules, PackageIdsAreTakenAsTheyAreUnlessTheyCannotBeIds) {
  test::TempTree tree;
  test::PutTwoSocketMachine(tree);
  for (const int cpu : {0, 1, 4, 5}) {
    tree.Put(Cpus(fmt::format("cpu{}/topology/physical_package_id", cpu)), "983297\n");
  }
  tree.Put(Cpus("cpu2/topology/physical_package_id"), "-1\n");
  tree.Put(Cpus("cpu3/topology/physical_package_id"), "4294967295\n");
  const Topology topology = ReadTree(tree);
  EXPECT_EQ(topology.cpus[0].socket, 983297);
  EXPECT_EQ(topology.cpus[2].socket, -1);
  EXPECT_EQ(topology.cpus[3].socket, -1);
  EXPECT_EQ(topology.numa_nodes[0].socket, 983297);
}

TEST(TopologyRules, OverlappingNodesKeepWhatTheyClaimAndTheKernelsLinksDecide) {
  test::TempTree tree;
  test::PutTwoSocketMachine(tree);
  for (const int node : {0, 1}) {
    test::PutNode(tree, node, "0-7", 1024, "10 10");
  }
  tree.Folder(Nodes("node1/cpu3")).Folder(Nodes("node0/cpu2"));
  const Topology topology = ReadTree(tree);
  EXPECT_EQ(topology.numa_nodes[0].cpus.ToString(), "0-7");
  EXPECT_EQ(topology.numa_nodes[1].cpus.ToString(), "0-7");
  EXPECT_EQ(topology.cpus[3].numa_node, 1);
  EXPECT_EQ(topology.cpus[2].numa_node, 0);
  EXPECT_EQ(topology.cpus[7].numa_node, 0) << "without a link, the lowest";
  EXPECT_THAT(MessageOf(topology, "NumaCpusOverlap"), HasSubstr("0-7"));
  // hwloc merges such nodes; what it says is kept beside what sysfs says.
  EXPECT_THAT(MessageOf(topology, "HwlocNodesDiffer"), HasSubstr("hwloc shows the NUMA nodes 0,"));
}

TEST(TopologyRules, MoreThan1024CpusAndMoreThan64NodesAreRead) {
  test::TempTree tree;
  constexpr int kCpus = 2048;
  std::string row;
  for (int node = 0; node < 128; ++node) row += "20 ";
  for (int cpu = 0; cpu < kCpus; ++cpu)
    test::PutCpu(tree, cpu, cpu / 256, cpu % 256, fmt::format("{}", cpu));
  for (int node = 0; node < 128; ++node) {
    test::PutNode(tree, node, fmt::format("{}-{}", node * 16, node * 16 + 15), 1024, row);
  }
  tree.Put(Cpus("online"), "0-2047\n").Put(Nodes("online"), "0-127\n");
  const Topology topology = ReadTree(tree);
  EXPECT_EQ(topology.cpus.size(), 2048U);
  EXPECT_EQ(topology.cpus[2047].numa_node, 127);
  EXPECT_EQ(topology.FindNumaNode(127)->cpus.ToString(), "2032-2047");
  EXPECT_EQ(topology.sockets.size(), 8U);
  EXPECT_THAT(MessageOf(topology, "ManyNumaNodes"), HasSubstr("128 NUMA nodes"));
}

TEST(TopologyRules, TheKubeletsLimitOfEightNodesIsSaidOnlyAboveIt) {
  test::TempTree tree;
  test::PutTwoSocketMachine(tree);
  for (int node = 0; node < 8; ++node) test::PutNode(tree, node, fmt::format("{}", node), 1024, "");
  tree.Put(Nodes("online"), "0-7\n");
  EXPECT_EQ(MessageOf(ReadTree(tree), "ManyNumaNodes"), "");
  tree.Put(Nodes("online"), "0-8\n");
  test::PutNode(tree, 8, "", 1024, "");
  EXPECT_NE(MessageOf(ReadTree(tree), "ManyNumaNodes"), "");
}

TEST(TopologyRules, TheL3WithoutAnIdIsNamedByItsLowestOnlineCpuWhateverItsIndex) {
  test::TempTree tree;
  test::PutTwoSocketMachine(tree);
  tree.Put(Cpus("online"), "1-7\n");
  const auto put = [&](int cpu, int index, const std::string& level, const std::string& shared) {
    const std::string folder = Cpus(fmt::format("cpu{}/cache/index{}/", cpu, index));
    tree.Put(folder + "level", level).Put(folder + "shared_cpu_list", shared);
  };
  for (const int cpu : {1, 4, 5}) put(cpu, 2, "3\n", "0-1,4-5\n");
  put(2, 3, "2\n", "2\n");
  put(2, 4, "3\n", "2-3\n");
  put(3, 4, "3\n", "2-3\n");
  const Topology topology = ReadTree(tree);
  std::map<int, int> l3;
  for (const Cpu& cpu : topology.cpus) l3[cpu.id] = cpu.l3;
  EXPECT_THAT(l3, ElementsAre(Pair(1, 1), Pair(2, 2), Pair(3, 2), Pair(4, 1), Pair(5, 1),
                              Pair(6, -1), Pair(7, -1)));
}

TEST(TopologyRules, TheL3IsNamedByTheKernelsIdIfAllHaveOne) {
  test::TempTree tree;
  test::PutTwoSocketMachine(tree);
  const auto put = [&](int cpu, const std::string& shared, const std::string& id) {
    const std::string folder = Cpus(fmt::format("cpu{}/cache/index3/", cpu));
    tree.Put(folder + "level", "3\n").Put(folder + "shared_cpu_list", shared);
    if (!id.empty()) tree.Put(folder + "id", id);
  };
  const auto l3_of_0_and_2 = [&] {
    const Topology topology = ReadTree(tree);
    return std::pair(topology.cpus.at(0).l3, topology.cpus.at(2).l3);
  };
  for (const int cpu : {0, 1, 4, 5}) put(cpu, "0-1,4-5\n", "16\n");
  for (const int cpu : {2, 3, 6, 7}) put(cpu, "2-3,6-7\n", "0\n");
  EXPECT_EQ(l3_of_0_and_2(), std::pair(16, 0));
  for (const int cpu : {0, 1, 4, 5})
    tree.Put(Cpus(fmt::format("cpu{}/cache/index3/id", cpu)), "-1");
  EXPECT_EQ(l3_of_0_and_2(), std::pair(0, 2));  // not 0 for both
}

TEST(TopologyRules, AGpusMemoryIsANodeOfItsOwnKindWithItsGpu) {
  test::TempTree tree;
  test::PutTwoSocketMachine(tree);
  tree.Put(Nodes("online"), "0-3\n");
  test::PutNode(tree, 0, "0-1,4-5", 1024, "10 40 80 80");
  test::PutNode(tree, 1, "2-3,6-7", 1024, "40 10 80 80");
  test::PutNode(tree, 2, "", 96L << 20, "80 80 10 80");
  test::PutNode(tree, 3, "", 0, "80 80 80 10");
  tree.Put("proc/driver/nvidia/gpus/0009:01:00.0/numa_status",
           "Node:                2\nStatus:              online\n");
  const Topology topology = ReadTree(tree);
  EXPECT_EQ(topology.numa_nodes[2].kind, NumaNodeKind::kGpuMemory);
  EXPECT_EQ(topology.numa_nodes[2].gpu, ParsePciAddress("0009:01:00.0"));
  EXPECT_EQ(topology.numa_nodes[2].memory_type, "GPUMemory");
  EXPECT_EQ(topology.numa_nodes[3].kind, NumaNodeKind::kEmpty);
  EXPECT_EQ(topology.numa_nodes[3].gpu, std::nullopt);
}

TEST(TopologyRules, GraceHas34NodesOfWhichTwoHaveCpus) {
  SKIP_WITHOUT_SHARED();
  const test::TempTree tree;
  const std::string root = test::UnpackShared("machines/synthetic/gb200-34nodes.tar.xz", tree);
  ASSERT_OK_AND_ASSIGN(const Topology topology, Read({.root = root, .xml = {}}));
  std::map<NumaNodeKind, NumaMask> kinds;
  for (const NumaNode& node : topology.numa_nodes) {
    kinds[node.kind].Insert(node.id);
    EXPECT_EQ(node.distances.size(), 34U);
  }
  EXPECT_EQ(kinds[NumaNodeKind::kDram], NumaMask({0, 1}));
  EXPECT_EQ(kinds[NumaNodeKind::kGpuMemory], NumaMask({2, 10, 18, 26}));
  EXPECT_EQ(kinds[NumaNodeKind::kEmpty].size(), 28);
  EXPECT_EQ(topology.FindNumaNode(18)->gpu, ParsePciAddress("0018:01:00.0"));
  // hwloc anchors the GPUs at their memory's nodes, too: only those with CPUs count.
  EXPECT_EQ(topology.FindDevice(*ParsePciAddress("0019:01:00.0"))->hwloc_numa_nodes, NumaMask({1}));
}

TEST(TopologyRules, ALocalityThatNobodySaysStaysUnknown) {
  SKIP_WITHOUT_SHARED();
  const test::TempTree tree;
  const std::string root = test::UnpackShared("machines/synthetic/hgx-vm-flat.tar.xz", tree);
  ASSERT_OK_AND_ASSIGN(const Topology topology, Read({.root = root, .xml = {}}));
  ASSERT_EQ(topology.devices.size(), 8U);
  for (const PciDevice& device : topology.devices) {
    EXPECT_EQ(device.sysfs_numa_node, -1);
    EXPECT_EQ(device.numa_node, std::nullopt);
    EXPECT_EQ(device.locality, LocalitySource::kUnknown);
    EXPECT_EQ(device.hwloc_numa_nodes, NumaMask({0, 1}));
  }
}

// As `numactl -H` shows two machines of the field.
TEST(TopologyRules, NodesAreAsNumactlShowsThem) {
  test::TempTree tree;
  test::PutCpu(tree, 0, 0, 0, "0");
  tree.Put(Cpus("online"), "0\n").Put(Nodes("online"), "0-1\n");
  test::PutNode(tree, 0, "0", 1L << 20, "10 20");
  test::PutNode(tree, 1, "", 5983L << 10, "20 10");
  const Topology topology = ReadTree(tree);
  EXPECT_EQ(topology.numa_nodes[0].cpus, CpuSet({0}));
  EXPECT_EQ(topology.numa_nodes[1].cpus, CpuSet());
  EXPECT_EQ(topology.numa_nodes[1].memory_bytes, std::int64_t{5983} << 20);
  EXPECT_THAT(topology.numa_nodes[1].distances, ElementsAre(Pair(0, 20), Pair(1, 10)));
}

TEST(TopologyRules, HwlocsErrorsStayOffTheTerminal) {
  test::TempTree tree;
  test::PutTwoSocketMachine(tree);
  test::PutNode(tree, 0, "0-2", 1024, "10 21");  // crosses a core and node 1
  testing::internal::CaptureStderr();
  ReadTree(tree);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST(TopologyRules, TheSameTreeGivesTheSameTopology) {
  test::TempTree tree;
  test::PutTwoSocketMachine(tree);
  EXPECT_TRUE(ReadTree(tree) == ReadTree(tree));
}

TEST(FingerprintHardware, ChangesWithCpusNodesAndPciFunctions) {
  test::TempTree tree;
  test::PutTwoSocketMachine(tree);
  const std::string before = FingerprintHardware(tree.Open());
  EXPECT_EQ(FingerprintHardware(tree.Open()), before);
  tree.Put(Cpus("online"), "0-6\n");
  const std::string fewer_cpus = FingerprintHardware(tree.Open());
  EXPECT_NE(fewer_cpus, before);
  tree.Put("sys/bus/pci/devices/0000:1b:00.0", "");
  const std::string a_gpu = FingerprintHardware(tree.Open());
  EXPECT_NE(a_gpu, fewer_cpus);
  tree.Folder("proc/driver/nvidia/gpus/0000:1b:00.0");
  EXPECT_NE(FingerprintHardware(tree.Open()), a_gpu);
}

}  // namespace
}  // namespace hwinfo
