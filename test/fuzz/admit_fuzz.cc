#include <fuzzer/FuzzedDataProvider.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "placement/decode.h"
#include "scheduler/admission/admit.h"
#include "scheduler/admission/request.h"
#include "scheduler/admission/state.h"

// Any node and any pods give verdicts or an error: a node as arbitrary JSON, or one built member by
// member from values that no kubelet would give.
namespace {

using placement::NodePlacement;
using scheduler::admission::NodeState;

constexpr const char* kResources[] = {"vendor.com/gpu", "vendor.com/nic", "", "cpu"};
constexpr const char* kMemoryTypes[] = {"memory", "hugepages-1Gi", "hugepages-2Mi", "x"};

class Odd {
 public:
  Odd(const std::uint8_t* data, std::size_t size) : data_(data, size) {}

  bool Bool() { return data_.ConsumeBool(); }
  bool Seldom() { return Int(0, 31) == 31; }
  int Int(int least, int most) { return data_.ConsumeIntegralInRange(least, most); }
  bool empty() { return data_.remaining_bytes() == 0; }
  std::string Rest() { return data_.ConsumeRemainingBytesAsString(); }
  std::string Text(std::size_t most) { return data_.ConsumeRandomLengthString(most); }
  template <class List>
  std::string Pick(const List& list) {
    return Seldom() ? Text(8) : data_.PickValueInArray(list);
  }

  // Bytes or a count: small, or anything.
  std::int64_t Amount() {
    if (Seldom()) return data_.ConsumeIntegral<std::int64_t>();
    return Int(0, 16) * (Bool() ? std::int64_t{1} << 30 : 1);
  }
  int Id(int most) { return Seldom() ? data_.ConsumeIntegral<int>() : Int(-1, most); }
  template <class Set>
  Set Ids(int most) {
    Set ids;
    for (int n = Int(0, 4); n > 0; --n) ids.Insert(Id(most));
    return ids;
  }
  std::string Flag() { return Seldom() ? Text(4) : Bool() ? "true" : "false"; }

 private:
  FuzzedDataProvider data_;
};

void BuildKubelet(Odd& odd, placement::KubeletFacts& kubelet) {
  static constexpr const char* kVersions[] = {"v1.37.2", "v1.35.4", "v1.36.3", "v1.38.0", ""};
  static constexpr const char* kPolicies[] = {"none", "best-effort", "restricted",
                                              "single-numa-node"};
  static constexpr const char* kCpuOptions[] = {
      "full-pcpus-only",        "distribute-cpus-across-numa",  "align-by-socket",
      "strict-cpu-reservation", "distribute-cpus-across-cores", "prefer-align-cpus-by-uncorecache"};
  kubelet.version = odd.Pick(kVersions);
  kubelet.topology_policy = odd.Pick(kPolicies);
  kubelet.topology_scope = odd.Bool() ? "pod" : "container";
  if (odd.Bool()) kubelet.topology_options["prefer-closest-numa-nodes"] = odd.Flag();
  if (odd.Seldom()) kubelet.topology_options["max-allowable-numa-nodes"] = odd.Text(12);
  kubelet.cpu_policy = odd.Seldom() ? "none" : "static";
  for (int n = odd.Int(0, 3); n > 0; --n) kubelet.cpu_options[odd.Pick(kCpuOptions)] = odd.Flag();
  if (odd.Bool()) kubelet.reserved_cpus = odd.Ids<base::CpuSet>(40);
  kubelet.memory_policy = odd.Seldom() ? "None" : "Static";
  if (odd.Seldom()) kubelet.feature_gates["PodLevelResourceManagers"] = odd.Flag();
}

void BuildNumaNode(Odd& odd, int position, int& next_cpu, NodePlacement& node) {
  placement::NumaNodePlacement& numa = node.numa_nodes.emplace_back();
  numa.id = odd.Seldom() ? odd.Id(80) : position;
  for (int groups = odd.Int(0, 2); groups > 0; --groups) {
    placement::CoreGroup& group = numa.core_groups.emplace_back();
    group.socket = odd.Id(3);
    group.l3 = odd.Id(5);
    for (int cores = odd.Int(0, 5); cores > 0; --cores) {
      base::CpuSet& core = group.cores.emplace_back();
      for (int threads = odd.Int(0, 3); threads > 0; --threads) core.Insert(next_cpu++);
      if (odd.Seldom()) core.Insert(odd.Id(base::kMaxId));
      numa.cpus |= core;
    }
  }
  if (odd.Bool()) numa.free_cpus = odd.Bool() ? numa.cpus : odd.Ids<base::CpuSet>(40);
  for (int types = odd.Int(0, 3); types > 0; --types) {
    placement::NodeMemory& memory = numa.memory.emplace_back();
    memory.type = odd.Pick(kMemoryTypes);
    memory.capacity = odd.Amount();
    memory.allocatable = odd.Seldom() ? odd.Amount() : memory.capacity;
    if (odd.Bool()) memory.free = odd.Seldom() ? odd.Amount() : memory.allocatable;
  }
  if (odd.Bool()) numa.memory_group = odd.Ids<base::NumaMask>(8);
  if (odd.Bool()) numa.memory_assignments = odd.Id(4);
  for (int n = odd.Int(0, 8); n > 0; --n) numa.distances[odd.Id(8)] = odd.Id(40);
}

void BuildDevices(Odd& odd, NodePlacement& node) {
  for (int n = odd.Int(0, 12); n > 0; --n) {
    placement::PlacedDevice& device = node.devices.emplace_back();
    device.resource = odd.Pick(kResources);
    device.id = odd.Seldom() ? "d1" : "d" + std::to_string(n);
    device.numa_nodes = odd.Ids<base::NumaMask>(8);
    device.unknown_node = odd.Seldom();
    device.healthy = !odd.Seldom();
  }
}

void BuildHoldings(Odd& odd, NodePlacement& node) {
  for (int pods = odd.Int(0, 3); pods > 0; --pods) {
    placement::PlacedPod& pod = node.pods.emplace_back();
    pod.uid = odd.Bool() ? "" : "p" + std::to_string(pods);
    for (int containers = odd.Int(0, 3); containers > 0; --containers) {
      placement::PlacedContainer& container = pod.containers.emplace_back();
      container.name = odd.Bool() ? "a" : "i";
      container.cpus = odd.Ids<base::CpuSet>(40);
      for (int blocks = odd.Int(0, 2); blocks > 0; --blocks) {
        container.memory.push_back(
            {odd.Pick(kMemoryTypes), odd.Amount(), odd.Ids<base::NumaMask>(8)});
      }
      for (int n = odd.Int(0, 2); n > 0; --n) {
        container.devices.push_back({odd.Pick(kResources), {"d1", "d2", odd.Text(3)}});
      }
    }
  }
}

NodePlacement BuildNode(Odd& odd) {
  NodePlacement node;
  BuildKubelet(odd, node.kubelet);
  int next_cpu = 0;
  const int count = odd.Seldom() ? odd.Int(0, 70) : odd.Int(0, 9);
  for (int i = 0; i < count; ++i) BuildNumaNode(odd, i, next_cpu, node);
  BuildDevices(odd, node);
  BuildHoldings(odd, node);
  return node;
}

kube::Resources BuildResources(Odd& odd) {
  kube::Resources resources;
  if (!odd.Seldom()) resources[kube::kCpu] = odd.Seldom() ? odd.Amount() : odd.Int(0, 40) * 500;
  if (!odd.Seldom()) resources[kube::kMemory] = odd.Amount();
  for (int n = odd.Int(0, 2); n > 0; --n) resources[odd.Pick(kMemoryTypes)] = odd.Amount();
  for (int n = odd.Int(0, 2); n > 0; --n) resources[odd.Pick(kResources)] = odd.Amount();
  return resources;
}

kube::Pod BuildPod(Odd& odd) {
  kube::Pod pod;
  pod.uid = odd.Seldom() ? odd.Text(3) : "p" + std::to_string(odd.Int(0, 9));
  const int count = odd.Seldom() ? odd.Int(0, 2000) : odd.Int(0, 5);
  for (int i = 0; i < count; ++i) {
    kube::Container container;
    container.name = odd.Bool() ? "a" : "i" + std::to_string(i);
    container.sidecar = odd.Bool();
    container.limits = BuildResources(odd);
    if (odd.Seldom()) container.requests = BuildResources(odd);
    (odd.Bool() ? pod.containers : pod.init_containers).push_back(std::move(container));
  }
  if (odd.Seldom()) pod.pod_limits = BuildResources(odd);
  kube::ApplyDefaults(pod);
  pod.qos = odd.Seldom() ? kube::Qos::kGuaranteed : kube::ComputeQos(pod);
  return pod;
}

void LetPodsComeAndGo(Odd& odd, NodePlacement& node) {
  absl::StatusOr<NodeState> read = scheduler::admission::StateFrom(node);
  if (!read.ok()) return;
  NodeState& state = *read;
  for (int events = 0; events < 12 && !odd.empty(); ++events) {
    const kube::Pod pod = BuildPod(odd);
    scheduler::admission::Verdict verdict = Admit(state, scheduler::admission::MakeRequest(pod));
    scheduler::admission::KubeletReason(verdict);
    Commit(pod.uid, std::move(verdict), state);
    if (odd.Bool()) Started(state, pod);
    if (odd.Bool()) Remove(state, "p" + std::to_string(odd.Int(0, 9)));
    if (odd.Seldom()) SetDevices(state, odd.Pick(kResources), {"d1", odd.Text(3)});
    WriteState(state, node);
    if (odd.Bool()) {
      absl::StatusOr<NodeState> again = scheduler::admission::StateFrom(node);
      if (again.ok()) state = *std::move(again);
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size > 0 && data[0] == '{') {  // the object, a zero byte, what its pods are made of
    const std::uint8_t* end = std::find(data, data + size, std::uint8_t{0});
    absl::StatusOr<NodePlacement> node = placement::ParseNodePlacement(std::string(data, end));
    if (!node.ok()) return 0;
    Odd odd(end, static_cast<std::size_t>(data + size - end));
    LetPodsComeAndGo(odd, *node);
    return 0;
  }
  Odd odd(data, size);
  NodePlacement node = BuildNode(odd);
  LetPodsComeAndGo(odd, node);
  return 0;
}
