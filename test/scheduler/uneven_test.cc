#include <gtest/gtest.h>

#include <vector>

#include "test/scheduler/scene.h"

// Machines whose cores, sockets or memory groups are not alike: the kubelet's averages and accounts
// go astray on them, and the prediction with them.
namespace scheduler::admission {
namespace {

placement::NodePlacement WithCores(const std::vector<base::CpuSet>& cores, const NodeSpec& spec) {
  placement::NodePlacement node = NodeOf(spec);
  placement::NumaNodePlacement& numa = node.numa_nodes.front();
  numa.core_groups.front().cores = cores;
  numa.cpus = {};
  for (const base::CpuSet& core : cores) numa.cpus |= core;
  numa.free_cpus = numa.cpus - *node.kubelet.reserved_cpus;
  return node;
}

// Five CPUs on three cores make an average of one CPU: core 3-4, of which 4 is reserved, has one
// left and counts as a whole core, so both its threads are given out. The kubelet leaves reserved
// CPUs out whenever it looks for available ones (GetAvailableCPUs).
TEST(UnevenMachine, KeepsAReservedCpuReservedAfterAPodHeldIt) {
  Scene node(WithCores({{0}, {1, 2}, {3, 4}},
                       {.numa = {{.id = 0, .cpus = 4}}, .policy = "none", .reserved_cpus = "0,4"}));
  EXPECT_EQ(node.Add("p", "2 CPU 1Gi"), "admitted");
  EXPECT_EQ(node.Cpus("p"), "3-4");
  node.Remove("p");
  EXPECT_EQ(node.Published().numa_nodes.front().free_cpus->ToString(), "1-3");
}

// Pods a and c share the group of NUMA nodes 0 and 1. When a is gone, the merged mask {0} gives b a
// block of its own on node 0, which leaves the group. Then c's 5 GiB, all of them on node 1, are
// released in ascending order: 3 of them off b's account on node 0. Node 1 never gets them back
// (kubelet 1.37, releaseMemory).
TEST(MemoryGroup, LosesMemoryForGoodWhenANodeLeftItWhileItWasInUse) {
  Scene node({.numa = {{.id = 0, .memory = "8Gi"},
                       {.id = 1, .memory = "16Gi", .taken_cpus = 16},
                       {.id = 2, .memory = "4Gi", .taken_cpus = 16}},
              .policy = "best-effort"});
  EXPECT_EQ(node.Add("a", "2 CPU 17Gi"), "admitted on 0-1, not preferred");
  EXPECT_EQ(node.Add("c", "2 CPU 5Gi"), "admitted on 0-1, not preferred");
  node.Remove("a");
  EXPECT_EQ(node.Add("b", "2 CPU 3Gi"), "admitted on 0, not preferred");
  EXPECT_EQ(node.MemoryNodes("b"), "0");
  node.Remove("c");
  node.Remove("b");
  const placement::NodePlacement empty = node.Published();
  EXPECT_EQ(empty.numa_nodes[0].memory.front().free, std::int64_t{8} << 30);
  EXPECT_EQ(empty.numa_nodes[1].memory.front().free, std::int64_t{13} << 30);
  EXPECT_EQ(empty.numa_nodes[1].memory_assignments, 0);
}

}  // namespace
}  // namespace scheduler::admission
