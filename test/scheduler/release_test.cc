#include "scheduler/admission/release.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "scheduler/admission/cpu_take.h"
#include "test/scheduler/scene.h"
#include "test/support/status.h"

namespace scheduler::admission {
namespace {

TEST(Release, ThatIsNotKnownCountsAs37AndOthersAsTheNearest) {
  EXPECT_EQ(MirroredRelease(0), 37);
  EXPECT_EQ(MirroredRelease(29), 35);
  EXPECT_EQ(MirroredRelease(36), 36);
  EXPECT_EQ(MirroredRelease(40), 38);
}

// Six NUMA nodes of one socket, with one, two or three threads a core.
placement::NodePlacement SixUnevenNodes() {
  const std::vector<std::vector<base::CpuSet>> cores = {
      {{0}, {1, 15}},
      {{2, 16}, {3, 17}, {4, 18}, {5, 19, 28}, {6, 20}},
      {{7, 21}, {8, 22, 29}},
      {{9, 23}, {10, 24}},
      {{11, 25}, {12, 26}, {13, 27}},
      {{14}}};
  placement::NodePlacement node;
  for (std::size_t id = 0; id < cores.size(); ++id) {
    placement::NumaNodePlacement numa;
    numa.id = static_cast<int>(id);
    numa.core_groups.push_back({.socket = 0, .l3 = numa.id, .cores = cores[id]});
    for (const base::CpuSet& core : cores[id]) numa.cpus |= core;
    node.numa_nodes.push_back(std::move(numa));
  }
  node.kubelet.cpu_policy = "static";
  for (const char* option : {"full-pcpus-only", "distribute-cpus-across-numa",
                             "distribute-cpus-across-cores", "align-by-socket"}) {
    node.kubelet.cpu_options[option] = "true";
  }
  return node;
}

std::string Take26(placement::NodePlacement node, const std::string& version) {
  node.kubelet.version = version;
  const auto built = BuildMachine(node);
  if (!built.ok()) return built.status().ToString();
  const TakenCpus taken = TakeCpus(*built->machine, built->machine->cpu.all, 26, 0);
  if (taken.outcome == TakenCpus::Outcome::kEndless) return "endless";
  if (taken.outcome == TakenCpus::Outcome::kNotEnough) return "not enough";
  base::CpuSet cpus;
  taken.cpus.ForEach([&](int id) { cpus.Insert(id); });
  return cpus.ToString();
}

// As takeByTopologyNUMADistributed of each release answers.
TEST(Release, DecidesWhichOf30CpusAre26AndWhetherTheSearchEnds) {
  EXPECT_EQ(Take26(SixUnevenNodes(), "v1.35.4"), "0-17,21-27,29");
  EXPECT_EQ(Take26(SixUnevenNodes(), "v1.36.3"), "0-17,21-27,29");
  EXPECT_EQ(Take26(SixUnevenNodes(), "v1.37.2"), "endless");
  EXPECT_EQ(Take26(SixUnevenNodes(), "v1.38.0-beta.0"), "0-13,16-27");
}

// The merge sees the huge pages of an init container since 1.38 only; before, they widen the mask
// in the allocation.
TEST(Release, DecidesWhetherAnInitContainersHugePagesCountForThePod) {
  const std::string pod = "init 1 CPU 1Gi 3Gi hugepages-1Gi; 1 CPU 1Gi";
  placement::NodePlacement node =
      NodeOf({.numa = Alike(2, {.hugepages = {{"hugepages-1Gi", "2Gi"}}}), .scope = "pod"});
  node.kubelet.version = "v1.37.2";
  EXPECT_EQ(Scene(node).Ask(pod), "admitted on 0");
  node.kubelet.version = "v1.38.0-beta.0";
  EXPECT_EQ(Scene(node).Ask(pod), "TopologyAffinityError");
}

// A wide mask with a node that has no GPU is no hint of a GPU since 1.36.
TEST(Release, DecidesWhetherBestEffortMayWidenToNodesWithoutDevices) {
  placement::NodePlacement node = NodeOf({.numa = {{.id = 0, .gpus = 1}, {.id = 1}, {.id = 2}},
                                          .policy = "best-effort",
                                          .memory_policy = "None"});
  const std::string pod = "20 CPU 1Gi 1 GPU";
  node.kubelet.version = "v1.35.4";
  EXPECT_EQ(Scene(node).Ask(pod), "admitted on 0-1, not preferred");
  node.kubelet.version = "v1.36.3";
  EXPECT_EQ(Scene(node).Ask(pod), "admitted on 0, not preferred");
}

}  // namespace
}  // namespace scheduler::admission
