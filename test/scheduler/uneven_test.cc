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

}  // namespace
}  // namespace scheduler::admission
