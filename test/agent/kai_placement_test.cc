#include "agent/kai_placement.h"

#include <gtest/gtest.h>

#include <map>

#include "kube/json.h"
#include "test/placement/scene.h"
#include "test/support/status.h"

namespace agent {
namespace {

using placement::HeldDevices;
using placement::NodePlacement;
using placement::NodeResourceTopology;
using placement::PlacedContainer;
using placement::PlacedMemory;
using placement::PlacedPod;

constexpr std::int64_t kGi = std::int64_t{1} << 30;

// Two NUMA nodes of 8 CPUs; memory for pods is 64 GiB on each, and of node 0 all is taken.
class KaiPlacementsTest : public testing::Test {
 protected:
  KaiPlacementsTest() {
    for (int id = 0; id < 2; ++id) {
      placement::NumaNodePlacement node;
      node.id = id;
      for (int cpu = 8 * id; cpu < 8 * id + 8; ++cpu) node.cpus.Insert(cpu);
      node.memory = {{.type = "memory",
                      .capacity = 65 * kGi,
                      .allocatable = 64 * kGi,
                      .free = id == 0 ? 0 : 32 * kGi}};
      placement_.numa_nodes.push_back(node);
      nrt_.zones.push_back({.name = "node-" + std::to_string(id),
                            .type = placement::kZoneType,
                            .costs = {},
                            .attributes = {},
                            .resources = {{"cpu", 8, 8, 8},
                                          {"memory", 65 * kGi, 64 * kGi, 64 * kGi},
                                          {"nvidia.com/gpu", 2, 2, 2}}});
    }
  }
  void AddGpu(const std::string& id, const base::NumaMask& numa_nodes, bool healthy = true) {
    placement::PlacedDevice gpu;
    gpu.resource = "nvidia.com/gpu";
    gpu.id = id;
    gpu.numa_nodes = numa_nodes;
    gpu.healthy = healthy;
    placement_.devices.push_back(gpu);
  }
  PlacedPod& AddPod(const std::string& name, std::vector<PlacedContainer> containers) {
    PlacedPod pod;
    pod.namespace_name = "ml";
    pod.name = name;
    pod.uid = name + "-uid";
    pod.containers = std::move(containers);
    placement_.pods.push_back(std::move(pod));
    return placement_.pods.back();
  }
  // Of the pod of that name.
  std::string ValueOf(const std::string& name) const {
    for (const KaiPlacement& placement : KaiPlacements(placement_, nrt_)) {
      if (placement.name == name) return placement.value;
    }
    return "(no such pod)";
  }

  NodePlacement placement_;
  NodeResourceTopology nrt_;
};

PlacedContainer Container(base::CpuSet cpus, std::vector<PlacedMemory> memory = {},
                          std::vector<std::string> gpus = {}) {
  PlacedContainer container;
  container.name = "main";
  container.cpus = std::move(cpus);
  container.memory = std::move(memory);
  if (!gpus.empty()) container.devices = {HeldDevices{"nvidia.com/gpu", std::move(gpus)}};
  return container;
}

using Amounts = std::map<std::string, std::map<std::string, std::int64_t>>;  // zone, resource

void Subtract(const std::string& value, Amounts& amounts) {
  const std::string text = R"({"zones":)" + value + "}";
  ASSERT_OK_AND_ASSIGN(const kube::JsonObject root, kube::JsonObject::Parse(text));
  ASSERT_OK_AND_ASSIGN(const auto zones, root.Objects("zones"));
  for (const kube::JsonObject& zone : zones) {
    ASSERT_OK_AND_ASSIGN(const kube::JsonObject held, zone.Object("amount"));
    for (const std::string& resource : held.Names()) {
      amounts[*zone.Text("zone")][resource] -= std::stoll(*held.Text(resource));
    }
  }
}

Amounts LeftAfter(const std::vector<KaiPlacement>& pods, const NodeResourceTopology& nrt) {
  Amounts left;
  for (const placement::NrtZone& zone : nrt.zones) {
    for (const placement::NrtResource& resource : zone.resources) {
      left[zone.name][resource.name] = *resource.allocatable;
    }
  }
  for (const KaiPlacement& pod : pods) Subtract(pod.value, left);
  return left;
}

TEST_F(KaiPlacementsTest, SumUpAPodsContainersByZone) {
  AddGpu("GPU-1", {1});
  AddGpu("GPU-2", {1});
  AddPod("llm-0", {Container({8, 9, 10, 11}, {{"memory", 16 * kGi, {1}}}, {"GPU-1", "GPU-2"}),
                   Container({12})});
  EXPECT_EQ(
      KaiPlacements(placement_, nrt_),
      (std::vector<KaiPlacement>{{"ml", "llm-0", "llm-0-uid",
                                  R"([{"zone":"node-1","amount":{"cpu":"5","memory":"17179869184",)"
                                  R"("nvidia.com/gpu":"2"}}])"}}));
}

TEST_F(KaiPlacementsTest, CountAMemoryBlockOnSeveralNodesOnceAsTheKubeletTookIt) {
  AddPod("a", {Container({}, {{"memory", 48 * kGi, {0, 1}}})});
  AddPod("b", {Container({}, {{"memory", 48 * kGi, {0, 1}}})});
  EXPECT_EQ(ValueOf("a"), R"([{"zone":"node-0","amount":{"memory":"51539607552"}}])");
  EXPECT_EQ(ValueOf("b"),  // 16 and 32 GiB
            R"([{"zone":"node-0","amount":{"memory":"17179869184"}},)"
            R"({"zone":"node-1","amount":{"memory":"34359738368"}}])");
}

TEST_F(KaiPlacementsTest, CountADeviceOnSeveralNodesInEach) {
  AddGpu("GPU-1", {0, 1});
  AddPod("llm-0", {Container({}, {}, {"GPU-1"})});
  EXPECT_EQ(ValueOf("llm-0"), R"([{"zone":"node-0","amount":{"nvidia.com/gpu":"1"}},)"
                              R"({"zone":"node-1","amount":{"nvidia.com/gpu":"1"}}])");
}

TEST_F(KaiPlacementsTest, LeaveOutWhatIsNotAllocatableAnywhere) {
  AddGpu("failed", {0}, /*healthy=*/false);
  AddGpu("placeless", {});
  AddPod("llm-0", {Container({}, {}, {"failed", "placeless", "unknown"})});
  EXPECT_EQ(ValueOf("llm-0"), "");
}

TEST_F(KaiPlacementsTest, CountWhatAPodHasAsAWholeOnce) {
  PlacedContainer whole = Container({0, 1, 2, 3}, {{"memory", 8 * kGi, {1}}});
  whole.name = "";
  AddPod("llm-0", {whole, Container({0, 1}, {{"memory", 4 * kGi, {1}}})});
  EXPECT_EQ(ValueOf("llm-0"), R"([{"zone":"node-0","amount":{"cpu":"4"}},)"
                              R"({"zone":"node-1","amount":{"memory":"8589934592"}}])");
}

TEST_F(KaiPlacementsTest, NameOnlyZonesAndResourcesThatSchedulersRead) {
  nrt_.zones[0].type = placement::kZoneTypeAbove63;
  nrt_.zones[1].resources.erase(nrt_.zones[1].resources.begin());  // no cpu: the manager is off
  AddGpu("GPU-1", {1});
  AddPod("llm-0", {Container({0, 8}, {}, {"GPU-1"})});
  EXPECT_EQ(ValueOf("llm-0"), R"([{"zone":"node-1","amount":{"nvidia.com/gpu":"1"}}])");
}

TEST_F(KaiPlacementsTest, SortZonesByNameAsKaiDoes) {
  for (const int id : {2, 10}) {
    placement::NumaNodePlacement node;
    node.id = id;
    node.cpus = {8 * id};
    placement_.numa_nodes.push_back(node);
    nrt_.zones.push_back({.name = "node-" + std::to_string(id),
                          .type = placement::kZoneType,
                          .costs = {},
                          .attributes = {},
                          .resources = {{"cpu", 1, 1, 1}}});
  }
  AddPod("llm-0", {Container({16, 80})});
  EXPECT_EQ(ValueOf("llm-0"), R"([{"zone":"node-10","amount":{"cpu":"1"}},)"
                              R"({"zone":"node-2","amount":{"cpu":"1"}}])");
}

// What KAI does with it: allocatable less all that pods hold.
TEST(KaiPlacements, LeaveOfWhatIsAllocatableWhatIsAvailable) {
  using placement::Block;
  using placement::Gpu;
  placement::Scene scene(placement::TwoNodes(), "0,16");
  for (const base::NumaMask& nodes : {base::NumaMask{0}, {1}, {0, 1}}) {
    scene.AddDevice(Gpu("GPU-" + nodes.ToString(), nodes));
  }
  const auto container = [](const std::string& cpus, const base::NumaMask& nodes) {
    return podresources::Container{.name = "main",
                                   .cpus = placement::Cpus(cpus),
                                   .memory = {Block(50 * kGi, {0, 1})},
                                   .devices = {Gpu("GPU-" + nodes.ToString(), nodes)},
                                   .claims = {}};
  };
  scene.Add("wide", "uid-1", {container("1-4,17-20", {0, 1})});
  scene.Add("narrow", "uid-2", {container("5-6", {0})});
  const placement::Observation node = scene.Look();
  const auto left = LeftAfter(KaiPlacements(node.placement, *node.nrt), *node.nrt);
  for (const placement::NrtZone& zone : node.nrt->zones) {
    for (const placement::NrtResource& resource : zone.resources) {
      EXPECT_LT(resource.available, resource.allocatable) << zone.name << " " << resource.name;
      EXPECT_EQ(left.at(zone.name).at(resource.name), resource.available)
          << zone.name << " " << resource.name;
    }
  }
}

}  // namespace
}  // namespace agent
