#include "hwinfo/hwloc_merge.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/hwinfo/machine_tree.h"

namespace hwinfo {
namespace {

using base::CpuSet;
using base::NumaMask;
using testing::HasSubstr;

constexpr PciAddress kGpu = {.domain = 0, .bus = 0x1b, .device = 0, .function = 0};

NumaNode Node(int id, const CpuSet& cpus, const std::string& type = "") {
  NumaNode node;
  node.id = id;
  node.nearest_cpus = cpus;
  node.memory_bytes = 1024;
  node.memory_type = type;
  return node;
}

// Two nodes with the CPUs 0 and 1, and memory near each.
HwlocView TwoNodesAndTheirMemory() {
  HwlocView view;
  view.online = {0, 1};
  view.complete = {0, 1};
  view.cpus = {{.id = 0, .siblings = {0}}, {.id = 1, .siblings = {1}}};
  view.nodes = {Node(0, {0}), Node(1, {1}), Node(2, {0}), Node(3, {1})};
  return view;
}

Topology OfTwoNodes() {
  Topology topology;
  topology.cpus = {{.id = 0, .siblings = {0}}, {.id = 1, .siblings = {1}}};
  for (const int id : {0, 1}) {
    NumaNode node;
    node.id = id;
    node.cpus = {id};
    topology.numa_nodes.push_back(node);
  }
  return topology;
}

Topology WithGpu(std::optional<int> numa_node) {
  Topology topology = OfTwoNodes();
  PciDevice gpu;
  gpu.address = kGpu;
  gpu.numa_node = numa_node;
  gpu.locality = numa_node ? LocalitySource::kNumaNode : LocalitySource::kUnknown;
  topology.devices = {gpu};
  return topology;
}

HwlocView Anchored(const NumaMask& nodes) {
  HwlocView view;
  view.pci[kGpu].numa_nodes = nodes;
  return view;
}

TEST(HwlocMerge, ACpuIsOnOneNodeOnlySoMemoryNearIsNotGivenTheSameCpus) {
  const std::vector<NumaNode> nodes = NodesFromHwloc(TwoNodesAndTheirMemory());
  EXPECT_EQ(nodes[0].cpus, CpuSet({0}));
  EXPECT_EQ(nodes[1].cpus, CpuSet({1}));
  EXPECT_EQ(nodes[2].cpus, CpuSet());
  EXPECT_EQ(nodes[2].nearest_cpus, CpuSet({0}));
}

TEST(HwlocMerge, HighBandwidthMemoryWithALowerIdDoesNotTakeTheCpus) {
  HwlocView view = TwoNodesAndTheirMemory();
  view.nodes = {Node(0, {0}, "HBM"), Node(1, {0}), Node(2, {0, 1}), Node(3, {1})};
  const std::vector<NumaNode> nodes = NodesFromHwloc(view);
  EXPECT_EQ(nodes[0].cpus, CpuSet());
  EXPECT_EQ(nodes[1].cpus, CpuSet({0}));
  EXPECT_EQ(nodes[2].cpus, CpuSet()) << "the smaller nodes have its CPUs";
  EXPECT_EQ(nodes[3].cpus, CpuSet({1}));
}

TEST(HwlocMerge, NoMemoryAnywhereIsMemoryThatTheFileDoesNotKnow) {
  HwlocView view = TwoNodesAndTheirMemory();
  view.nodes[1].memory_bytes = 0;
  EXPECT_EQ(NodesFromHwloc(view)[1].memory_bytes, 0);
  for (NumaNode& node : view.nodes) node.memory_bytes = 0;
  EXPECT_EQ(NodesFromHwloc(view)[1].memory_bytes, std::nullopt);
}

TEST(HwlocMerge, CpusThatAFileLeavesOutAreNamed) {
  HwlocView view = TwoNodesAndTheirMemory();
  view.complete = {0, 1, 2, 3};
  view.complete_cpus[3] = {1, 3};
  const Topology topology = FromHwloc(view);
  EXPECT_THAT(test::FindDiagnostic(topology.diagnostics, "CpusNotShown").message,
              HasSubstr("CPUs 2-3 "));
  EXPECT_THAT(test::FindDiagnostic(topology.diagnostics, "CpusNotShown", "node 3").message,
              HasSubstr("CPUs 3 "));
}

TEST(HwlocMerge, AnAnchorOnOneNodeSettlesWhatSysfsLeavesOpen) {
  Topology topology = WithGpu(std::nullopt);
  AddAnchors(Anchored({1}), topology);
  EXPECT_EQ(topology.devices[0].numa_node, 1);
  EXPECT_EQ(topology.devices[0].locality, LocalitySource::kHwloc);
  EXPECT_EQ(topology.devices[0].hwloc_numa_nodes, NumaMask({1}));
}

TEST(HwlocMerge, AnAnchorOnSeveralNodesOrNoneSettlesNothing) {
  for (const NumaMask& nodes : {NumaMask({0, 1}), NumaMask({})}) {
    Topology topology = WithGpu(std::nullopt);
    AddAnchors(Anchored(nodes), topology);
    EXPECT_EQ(topology.devices[0].numa_node, std::nullopt);
    EXPECT_EQ(topology.devices[0].locality, LocalitySource::kUnknown);
    EXPECT_EQ(topology.devices[0].hwloc_numa_nodes, nodes);
  }
}

TEST(HwlocMerge, OfAnAnchorOnlyNodesWithCpusCount) {
  Topology topology = WithGpu(std::nullopt);
  AddAnchors(Anchored({1, 2, 3}), topology);
  EXPECT_EQ(topology.devices[0].numa_node, 1);
  EXPECT_EQ(topology.devices[0].hwloc_numa_nodes, NumaMask({1}));
}

TEST(HwlocMerge, WhereSysfsAndAnAnchorDisagreeSysfsWinsAndBothAreKept) {
  Topology topology = WithGpu(0);
  AddAnchors(Anchored({1}), topology);
  EXPECT_EQ(topology.devices[0].numa_node, 0);
  EXPECT_EQ(topology.devices[0].locality, LocalitySource::kNumaNode);
  EXPECT_EQ(topology.devices[0].hwloc_numa_nodes, NumaMask({1}));
  EXPECT_EQ(test::FindDiagnostic(topology.diagnostics, "LocalityDiffers"),
            (base::Diagnostic{"LocalityDiffers", "0000:1b:00.0",
                              "sysfs puts the device on NUMA node 0, hwloc on 1"}));
}

TEST(HwlocMerge, AnAnchorAroundTheNodeIsNoDisagreement) {
  Topology topology = WithGpu(0);
  AddAnchors(Anchored({0, 1}), topology);
  EXPECT_EQ(topology.diagnostics, base::Diagnostics{});
}

TEST(HwlocMerge, WhatSysfsSaysIsNotReplaced) {
  Topology topology = OfTwoNodes();
  HwlocView view = TwoNodesAndTheirMemory();
  view.online = {0};
  view.cpus = {{.id = 0, .socket = 7, .siblings = {0}}};
  view.nodes = {Node(0, {0, 1}, "HBM")};
  AddHwloc(view, topology);
  EXPECT_EQ(topology.cpus[0].socket, -1);
  EXPECT_EQ(topology.numa_nodes[0].cpus, CpuSet({0}));
  EXPECT_EQ(topology.numa_nodes[0].memory_type, "HBM");
  EXPECT_EQ(test::FindDiagnostic(topology.diagnostics, "HwlocCpusDiffer").message,
            "hwloc shows the CPUs 0, sysfs shows 0-1");
  EXPECT_EQ(test::FindDiagnostic(topology.diagnostics, "HwlocNodesDiffer", "node 0").message,
            "hwloc gives the node the CPUs 0-1, sysfs 0");
  EXPECT_THAT(test::FindDiagnostic(topology.diagnostics, "HwlocCoresDiffer").message,
              HasSubstr("CPUs 0 "));
}

TEST(HwlocMerge, KindsOfCoresAreTaken) {
  Topology topology = OfTwoNodes();
  HwlocView view = TwoNodesAndTheirMemory();
  view.cpus[0].kind = 1;
  view.cpus[1].kind = 0;
  AddHwloc(view, topology);
  EXPECT_EQ(topology.cpus[0].kind, 1);
  EXPECT_EQ(topology.cpus[1].kind, 0);
}

}  // namespace
}  // namespace hwinfo
