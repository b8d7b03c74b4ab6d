#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>

#include "placement/alignment.h"
#include "placement/encode.h"
#include "test/placement/any.h"
#include "test/placement/scene.h"
#include "test/reference/fewest_nodes.h"
#include "test/reference/free_amounts.h"

namespace placement {
namespace {

TEST(FewestNumaNodes, AgreesWithTryingEverySet) {
  EXPECT_TRUE(rc::check([] {
    std::vector<Installed> nodes;
    Demand demand;
    for (int i = *rc::gen::inRange(1, 8); i > 0; --i) {
      nodes.push_back({.id = i,
                       .cpus = *rc::gen::inRange(0, 8),
                       .memory = {{"memory", *rc::gen::inRange(0, 8)}},
                       .devices = {{"g", *rc::gen::inRange(0, 3)}}});
    }
    demand.cpus = *rc::gen::inRange(0, 30);
    demand.memory["memory"] = *rc::gen::inRange(0, 20);
    demand.devices["g"] = *rc::gen::inRange(0, 6);
    const int naive = reference::FewestNumaNodes(demand, nodes);
    const int all = static_cast<int>(nodes.size());
    RC_PRE(naive >= 0);
    RC_ASSERT(FewestNumaNodes(demand, nodes, all) == std::max(1, naive));
  }));
}

TEST(Observe, DoesNotDependOnTheOrderOfAnyList) {
  EXPECT_TRUE(rc::check([] {
    Scene scene = *AnyScene();
    const Observation before = scene.Look();
    std::ranges::reverse(scene.facts.assignments->pods);
    std::ranges::reverse(scene.facts.assignments->allocatable->devices);
    std::ranges::reverse(scene.facts.assignments->allocatable->memory);
    std::ranges::reverse(*scene.facts.state.pod_logs);
    std::ranges::reverse(scene.facts.device_hardware);
    std::ranges::reverse(scene.facts.known_devices);
    const Observation after = scene.Look();
    RC_ASSERT(after == before);
    RC_ASSERT(ToYaml(after) == ToYaml(before));
  }));
}

TEST(Observe, AgreesWithCountingByHand) {
  EXPECT_TRUE(rc::check([] {
    const Scene scene = *AnyScene();
    const Observation seen = scene.Look();
    for (const NumaNodePlacement& node : seen.placement.numa_nodes) {
      RC_ASSERT(node.free_cpus == reference::FreeCpus(scene.facts, node.id));
      const NrtResource* gpus =
          FindResource(seen, "node-" + std::to_string(node.id), "nvidia.com/gpu");
      RC_ASSERT(gpus != nullptr);
      RC_ASSERT(gpus->available.value() == reference::FreeDevices(scene.facts, node.id));
    }
    std::int64_t free = 0;
    for (const NumaNodePlacement& node : seen.placement.numa_nodes) {
      free += node.memory.at(0).free.value_or(-1);
    }
    RC_ASSERT(free == reference::FreeMemoryInAll(scene.facts));
  }));
}

TEST(Observe, NeverShowsMoreThanThereIsOrLessThanNothing) {
  EXPECT_TRUE(rc::check([] {
    const Observation seen = (*AnyScene()).Look();
    for (const NrtZone& zone : seen.nrt->zones) {
      for (const NrtResource& resource : zone.resources) {
        RC_ASSERT(0 <= resource.available.value());
        RC_ASSERT(resource.available.value() <= resource.allocatable.value());
        RC_ASSERT(resource.allocatable.value() <= resource.capacity.value());
      }
    }
    int cpus = 0;
    std::int64_t memory = 0;
    for (const PlacedPod& pod : seen.placement.pods) {
      for (const PlacedContainer& container : pod.containers) {
        cpus += container.cpus.size();
        for (const PlacedMemory& block : container.memory) memory += block.bytes;
      }
    }
    RC_ASSERT(cpus <= 32);
    RC_ASSERT(memory <= 128 * kGiB);
  }));
}

}  // namespace
}  // namespace placement
