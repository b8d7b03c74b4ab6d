#include "podresources/decode.h"

#include <rapidcheck.h>

#include <algorithm>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "podresources/replay.h"
#include "proto/podresources.pb.h"
#include "test/podresources/print.h"
#include "test/support/shared.h"
#include "test/support/status.h"

namespace podresources {
namespace {

using testing::ElementsAre;
using testing::Field;
using testing::IsEmpty;
using testing::SizeIs;

// What a recording of one container says; the allocatable reply is there and empty.
Assignments DecodeContainer(const std::string& fields) {
  absl::StatusOr<Assignments> decoded = ParseRecording(
      R"({"list": {"podResources": [{"namespace": "ml", "name": "llm-0",
          "containers": [{"name": "server", )" +
      fields + R"(}]}]}, "allocatable": {}})");
  EXPECT_OK(decoded);
  return decoded.ok() ? *decoded : Assignments();
}

Container OnlyContainer(const Assignments& assignments) {
  if (assignments.pods.size() != 1 || assignments.pods[0].containers.size() != 1) {
    ADD_FAILURE() << "not one container";
    return {};
  }
  return assignments.pods[0].containers[0];
}

Device Gpu(const std::string& id, base::NumaMask nodes, bool unknown = false) {
  return {"nvidia.com/gpu", id, std::move(nodes), unknown};
}

TEST(Decode, TakesAnEmptyNodeForNodeZeroAndNoTopologyForNoLocality) {
  const Container container = OnlyContainer(DecodeContainer(R"("devices": [
      {"resource_name": "nvidia.com/gpu", "device_ids": ["GPU-a"], "topology": {"nodes": [{}]}},
      {"resource_name": "nvidia.com/gpu", "device_ids": ["GPU-b"],
       "topology": {"nodes": [{"ID": "1"}]}},
      {"resource_name": "nvidia.com/gpu", "device_ids": ["GPU-c"], "topology": {"nodes": []}},
      {"resource_name": "x/y", "device_ids": ["z"]}])"));
  EXPECT_THAT(container.devices, ElementsAre(Gpu("GPU-a", {0}), Gpu("GPU-b", {1}), Gpu("GPU-c", {}),
                                             Device{"x/y", "z", {}, false}));
}

TEST(Decode, MakesOneDeviceOfTheEntriesForEachOfItsNodes) {
  const Container container = OnlyContainer(DecodeContainer(R"("devices": [
      {"resourceName": "nvidia.com/gpu", "deviceIds": ["b"], "topology": {"nodes": [{"ID": 1}]}},
      {"resourceName": "nvidia.com/gpu", "deviceIds": ["a"], "topology": {"nodes": [{}]}},
      {"resourceName": "nvidia.com/gpu", "deviceIds": ["b"], "topology": {"nodes": [{}]}}])"));
  EXPECT_THAT(container.devices, ElementsAre(Gpu("a", {0}), Gpu("b", {0, 1})));
}

TEST(Decode, SaysUnknownForNodesThatCannotBe) {
  const Assignments decoded = DecodeContainer(R"("devices": [
      {"resourceName": "nvidia.com/gpu", "deviceIds": ["a"], "topology": {"nodes": [{"ID": -1}]}},
      {"resourceName": "nvidia.com/gpu", "deviceIds": ["b"],
       "topology": {"nodes": [{"ID": 65536}, {"ID": 1}]}}])");
  EXPECT_THAT(OnlyContainer(decoded).devices, ElementsAre(Gpu("a", {}, true), Gpu("b", {1}, true)));
  EXPECT_THAT(decoded.diagnostics,
              ElementsAre(base::Diagnostic{"DeviceNodeUnknown", "nvidia.com/gpu",
                                           "2 devices name a NUMA node outside 0..65535, the first "
                                           "a; where they are is not known"}));
}

TEST(Decode, KeepsNodeIdsThatAreSparseOrAbove63) {
  const Container container = OnlyContainer(DecodeContainer(R"("devices": [
      {"resourceName": "nvidia.com/gpu", "deviceIds": ["a"], "topology": {"nodes": [{"ID": 252}]}}],
      "memory": [{"memoryType": "memory", "size": "1", "topology": {"nodes": [{"ID": 8}]}}])"));
  EXPECT_EQ(container.devices[0].numa_nodes, base::NumaMask({252}));
  EXPECT_EQ(container.memory[0].numa_nodes, base::NumaMask({8}));
}

TEST(Decode, TakesMemoryWithoutATypeForMemory) {
  const Container container = OnlyContainer(DecodeContainer(R"("memory": [
      {"memoryType": "hugepages-1Gi", "size": "1073741824", "topology": {"nodes": [{"ID": "1"}]}},
      {"size": "4096", "topology": {"nodes": [{}, {"ID": "1"}]}}])"));
  EXPECT_THAT(container.memory, ElementsAre(MemoryBlock{"hugepages-1Gi", 1073741824, {1}},
                                            MemoryBlock{"memory", 4096, {0, 1}}));
}

TEST(Decode, ClampsMemoryBeyondInt64AndSaysSo) {
  const Assignments decoded = DecodeContainer(R"("memory": [
      {"memoryType": "memory", "size": "18446744073709551615", "topology": {"nodes": [{}]}},
      {"memoryType": "memory", "size": "1", "topology": {"nodes": [{}]}}])");
  EXPECT_THAT(OnlyContainer(decoded).memory,
              ElementsAre(MemoryBlock{"memory", 9223372036854775807, {0}}));
  ASSERT_THAT(decoded.diagnostics, SizeIs(1));
  EXPECT_EQ(decoded.diagnostics[0].code, "MemoryClamped");
  EXPECT_EQ(decoded.diagnostics[0].subject, "pod ml/llm-0 container server");
}

TEST(Decode, LeavesOutMemoryNodesThatCannotBeAndSaysSo) {
  const Assignments decoded = DecodeContainer(
      R"("memory": [{"size": "1", "topology": {"nodes": [{"ID": "-1"}, {"ID": "1"}]}}])");
  EXPECT_THAT(OnlyContainer(decoded).memory, ElementsAre(MemoryBlock{"memory", 1, {1}}));
  EXPECT_THAT(decoded.diagnostics,
              ElementsAre(Field(&base::Diagnostic::code, "MemoryNodeUnknown")));
}

TEST(Decode, LeavesOutCpuIdsThatCannotBeAndSaysSo) {
  const Assignments decoded =
      DecodeContainer(R"("cpuIds": ["3", "-5", "9223372036854775807", "2", "-5"])");
  EXPECT_EQ(OnlyContainer(decoded).cpus, base::CpuSet({2, 3}));
  EXPECT_THAT(
      decoded.diagnostics,
      ElementsAre(base::Diagnostic{"CpuIdOutOfRange", "pod ml/llm-0 container server",
                                   "2 CPU ids are outside 0..65535 and left out, the lowest -5"}));
}

TEST(Decode, KeepsClaimsWithTheirDevicesAndThoseWhoseDevicesAreNotTold) {
  const Container container = OnlyContainer(DecodeContainer(R"("dynamicResources": [
      {"claimName": "old", "claimNamespace": "ml"},
      {"claimName": "gpus", "claimNamespace": "ml", "claimResources": [
        {"driverName": "gpu.nvidia.com", "poolName": "node-7", "deviceName": "gpu-1",
         "cdiDevices": [{"name": "k8s.gpu.nvidia.com/claim=b"}, {"name": "a"}, {"name": "a"}]},
        {"driverName": "gpu.nvidia.com", "poolName": "node-7", "deviceName": "gpu-0",
         "shareId": "s1"}]}])"));
  EXPECT_THAT(container.claims,
              ElementsAre(ClaimDevice{"ml", "gpus", "gpu.nvidia.com", "node-7", "gpu-0", "s1", {}},
                          ClaimDevice{"ml",
                                      "gpus",
                                      "gpu.nvidia.com",
                                      "node-7",
                                      "gpu-1",
                                      "",
                                      {"a", "k8s.gpu.nvidia.com/claim=b"}},
                          ClaimDevice{"ml", "old", "", "", "", "", {}}));
}

TEST(Decode, KeepsPodLevelFieldsApartFromTheContainers) {
  ASSERT_OK_AND_ASSIGN(
      const Assignments decoded,
      ParseRecording(R"({"list": {"podResources": [{"namespace": "ml", "name": "llm-0",
          "cpuIds": ["4", "5"], "memory": [{"memoryType": "memory", "size": "8"}],
          "containers": [{"name": "server", "cpuIds": ["4"]}]}]}, "allocatable": {}})"));
  ASSERT_THAT(decoded.pods, SizeIs(1));
  EXPECT_EQ(decoded.pods[0].cpus, base::CpuSet({4, 5}));
  EXPECT_THAT(decoded.pods[0].memory, ElementsAre(MemoryBlock{"memory", 8, {}}));
  EXPECT_EQ(decoded.pods[0].containers[0].cpus, base::CpuSet({4}));
}

TEST(Decode, KeepsPodsThatHoldNothingSinceTheFingerprintNeedsThem) {
  ASSERT_OK_AND_ASSIGN(const Assignments decoded, ParseRecording(R"({"list": {"podResources": [
          {"namespace": "b", "name": "y"}, {"namespace": "a", "name": "z"},
          {"namespace": "a", "name": "x"}]}, "allocatable": {}})"));
  std::vector<std::string> names;
  for (const Pod& pod : decoded.pods) names.push_back(pod.namespace_name + "/" + pod.name);
  EXPECT_THAT(names, ElementsAre("a/x", "a/z", "b/y"));
  EXPECT_THAT(decoded.diagnostics, IsEmpty());
}

TEST(Decode, TellsAnEmptyAllocatableReplyFromNone) {
  const v1::ListPodResourcesResponse list;
  const v1::AllocatableResourcesResponse allocatable;
  EXPECT_EQ(Decode(list, &allocatable).allocatable, Allocatable());
  const Assignments without = Decode(list, nullptr);
  EXPECT_EQ(without.allocatable, std::nullopt);
  EXPECT_THAT(without.diagnostics,
              ElementsAre(Field(&base::Diagnostic::code, "AllocatableUnavailable")));
}

TEST(Decode, MergesContainersOfOneNameAndSaysSo) {
  ASSERT_OK_AND_ASSIGN(
      const Assignments decoded,
      ParseRecording(R"({"list": {"podResources": [{"namespace": "ml", "name": "llm-0",
          "containers": [{"name": "b", "cpuIds": ["1"]}, {"name": "a"},
                         {"name": "b", "cpuIds": ["2"]}]}]}, "allocatable": {}})"));
  ASSERT_THAT(decoded.pods[0].containers, SizeIs(2));
  EXPECT_EQ(decoded.pods[0].containers[0].name, "b");
  EXPECT_EQ(decoded.pods[0].containers[0].cpus, base::CpuSet({1, 2}));
  EXPECT_THAT(decoded.diagnostics,
              ElementsAre(Field(&base::Diagnostic::code, "ContainerListedTwice")));
}

TEST(Decode, ReadsWhatARealKubeletSent) {
  SKIP_WITHOUT_SHARED();
  for (const std::string name : {"fake4", "vm"}) {
    const std::string base = "kube/samples/podresources/" + name;
    v1::ListPodResourcesResponse list;
    v1::AllocatableResourcesResponse allocatable;
    ASSERT_TRUE(list.ParseFromString(test::ReadShared(base + "-list.pb")));
    ASSERT_TRUE(allocatable.ParseFromString(test::ReadShared(base + "-alloc.pb")));
    const Assignments decoded = Decode(list, &allocatable);
    EXPECT_THAT(decoded.pods, testing::Not(IsEmpty()));
    EXPECT_THAT(decoded.diagnostics, IsEmpty()) << name;
    // Byte order is random and JSON was recorded by a call of its own: the facts must be equal.
    ASSERT_OK_AND_ASSIGN(
        const Assignments from_json,
        ParseRecording("{\"list\": " + test::ReadShared(base + "-list.json") +
                       ", \"allocatable\": " + test::ReadShared(base + "-alloc.json") + "}"));
    EXPECT_EQ(decoded, from_json) << name;
  }
}

TEST(Decode, ReadsTheMachineOfFourNodes) {
  SKIP_WITHOUT_SHARED();
  v1::ListPodResourcesResponse list;
  ASSERT_TRUE(list.ParseFromString(test::ReadShared("kube/samples/podresources/fake4-list.pb")));
  const Assignments decoded = Decode(list, nullptr);
  const auto pod = std::ranges::find(decoded.pods, std::string("a-fake-node"), &Pod::name);
  ASSERT_NE(pod, decoded.pods.end());
  ASSERT_THAT(pod->containers, SizeIs(1));
  EXPECT_EQ(pod->containers[0].cpus, base::CpuSet({1, 2, 17, 18}));
  EXPECT_THAT(pod->containers[0].memory, ElementsAre(MemoryBlock{"memory", 4294967296, {0}}));
  EXPECT_THAT(pod->containers[0].devices,
              ElementsAre(Device{"example.com/gpu", "gpu0", {0}, false},
                          Device{"example.com/gpu", "gpu4", {0}, false}));
}

// A reply with everything that may repeat or change places. Ids are drawn from few, so that pods,
// devices and CPUs meet; containers of one pod have names of their own, as their order is a fact.
v1::TopologyInfo* Fill(v1::TopologyInfo* topology) {
  for (const int id : *rc::gen::container<std::vector<int>>(rc::gen::inRange(-1, 4))) {
    topology->add_nodes()->set_id(id);
  }
  return topology;
}

template <class Message>
void FillHeld(Message& message) {
  for (const int id : *rc::gen::container<std::vector<int>>(rc::gen::inRange(-1, 8))) {
    message.add_cpu_ids(id);
  }
  for (int i = *rc::gen::inRange(0, 4); i > 0; --i) {
    v1::ContainerDevices* devices = message.add_devices();
    devices->set_resource_name(*rc::gen::element<std::string>("x/gpu", "x/nic"));
    for (int n = *rc::gen::inRange(0, 3); n > 0; --n) {
      devices->add_device_ids(std::to_string(*rc::gen::inRange(0, 4)));
    }
    Fill(devices->mutable_topology());
  }
  for (int i = *rc::gen::inRange(0, 3); i > 0; --i) {
    v1::ContainerMemory* memory = message.add_memory();
    memory->set_memory_type(*rc::gen::element<std::string>("", "memory", "hugepages-1Gi"));
    memory->set_size(*rc::gen::element<std::uint64_t>(1, 4096, 1ULL << 63));
    Fill(memory->mutable_topology());
  }
}

v1::ListPodResourcesResponse AnyList() {
  v1::ListPodResourcesResponse list;
  for (int i = *rc::gen::inRange(0, 6); i > 0; --i) {
    v1::PodResources* pod = list.add_pod_resources();
    pod->set_namespace_("ns");
    pod->set_name(std::to_string(*rc::gen::inRange(0, 5)));
    for (int c = *rc::gen::inRange(0, 3); c > 0; --c) {
      v1::ContainerResources* container = pod->add_containers();
      container->set_name(std::to_string(c));
      FillHeld(*container);
    }
  }
  return list;
}

template <class List>
void Shuffle(List* list, std::minstd_rand& random) {
  std::shuffle(list->begin(), list->end(), random);
}

// The same facts in another order, each device in an entry of its own for each of its nodes, and
// some of the entries twice.
template <class Message>
void ScatterHeld(Message& message, std::minstd_rand& random) {
  const auto cpus = message.cpu_ids();
  for (const std::int64_t id : cpus) message.add_cpu_ids(id);
  Shuffle(message.mutable_cpu_ids(), random);
  Shuffle(message.mutable_memory(), random);
  const auto whole = message.devices();
  message.clear_devices();
  for (const v1::ContainerDevices& entry : whole) {
    for (const std::string& id : entry.device_ids()) {
      v1::ContainerDevices one;
      one.set_resource_name(entry.resource_name());
      one.add_device_ids(id);
      *message.add_devices() = one;
      for (const v1::NUMANode& node : entry.topology().nodes()) {
        v1::ContainerDevices at = one;
        *at.mutable_topology()->add_nodes() = node;
        *message.add_devices() = at;
        if (random() % 2 == 0) *message.add_devices() = at;
      }
    }
  }
  Shuffle(message.mutable_devices(), random);
}

TEST(Decode, DoesNotDependOnTheOrderOrTheSplittingOfEntries) {
  EXPECT_TRUE(rc::check([] {
    v1::ListPodResourcesResponse list = AnyList();
    v1::AllocatableResourcesResponse allocatable;
    FillHeld(allocatable);
    const bool offered = *rc::gen::arbitrary<bool>();
    const Assignments before = Decode(list, offered ? &allocatable : nullptr);
    std::minstd_rand random(*rc::gen::arbitrary<std::uint32_t>());
    ScatterHeld(allocatable, random);
    Shuffle(list.mutable_pod_resources(), random);
    for (v1::PodResources& pod : *list.mutable_pod_resources()) {
      for (v1::ContainerResources& container : *pod.mutable_containers()) {
        ScatterHeld(container, random);
      }
    }
    RC_ASSERT(Decode(list, offered ? &allocatable : nullptr) == before);
  }));
}

}  // namespace
}  // namespace podresources
