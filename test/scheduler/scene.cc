#include "test/scheduler/scene.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <optional>
#include <set>
#include <sstream>
#include <utility>

#include "base/quantity.h"
#include "scheduler/admission/admit.h"
#include "scheduler/admission/request.h"

namespace scheduler::admission {
namespace {

constexpr const char* kGpu = "nvidia.com/gpu";

std::int64_t Bytes(const std::string& quantity) {
  const absl::StatusOr<std::int64_t> bytes = base::ParseQuantity(quantity);
  EXPECT_TRUE(bytes.ok()) << bytes.status();
  return bytes.value_or(0);
}

base::CpuSet CpuList(const std::string& list) {
  const absl::StatusOr<base::CpuSet> cpus = base::CpuSet::Parse(list);
  EXPECT_TRUE(cpus.ok()) << cpus.status();
  return cpus.ok() ? *cpus : base::CpuSet();
}

int SocketOf(const NumaSpec& numa) { return numa.socket < 0 ? numa.id : numa.socket; }

placement::NodeMemory Table(const std::string& type, std::int64_t capacity, std::int64_t reserved,
                            std::int64_t taken) {
  return {.type = type,
          .capacity = capacity,
          .system_reserved = reserved,
          .allocatable = capacity - reserved,
          .free = capacity - reserved - taken};
}

// The cores of one NUMA node, the first of them being `first` of `cores` on the machine.
placement::CoreGroup Cores(const NumaSpec& numa, int threads, int first, int cores) {
  placement::CoreGroup group{
      .socket = SocketOf(numa), .l3 = numa.l3 < 0 ? numa.id : numa.l3, .cores = {}};
  for (int core = first; core < first + numa.cpus / threads; ++core) {
    base::CpuSet cpus;
    for (int thread = 0; thread < threads; ++thread) cpus.Insert(core + thread * cores);
    group.cores.push_back(cpus);
  }
  return group;
}

void Take(const NumaSpec& numa, placement::NumaNodePlacement& node,
          placement::PlacedContainer& other) {
  for (int taken = 0; taken < numa.taken_cpus && !node.free_cpus->empty(); ++taken) {
    other.cpus.Insert(node.free_cpus->First());
    node.free_cpus->Erase(node.free_cpus->First());
  }
  const std::int64_t bytes = Bytes(numa.taken_memory);
  if (bytes > 0) {
    other.memory.push_back({"memory", bytes, {numa.id}});
    node.memory_assignments = 1;
  }
  for (int gpu = 0; gpu < numa.taken_gpus; ++gpu) {
    if (other.devices.empty()) other.devices.push_back({kGpu, {}});
    other.devices.front().ids.push_back(fmt::format("gpu-{}-{}", numa.id, gpu));
  }
}

placement::NumaNodePlacement NumaNodeOf(const NodeSpec& spec, const NumaSpec& numa, int first,
                                        int cores) {
  placement::NumaNodePlacement node;
  node.id = numa.id;
  if (numa.cpus > 0) node.core_groups.push_back(Cores(numa, spec.threads, first, cores));
  for (const placement::CoreGroup& group : node.core_groups) {
    for (const base::CpuSet& core : group.cores) node.cpus |= core;
  }
  node.free_cpus = node.cpus - CpuList(spec.reserved_cpus);
  for (const auto& [type, size] : numa.hugepages) {
    node.memory.push_back(Table(type, Bytes(size), 0, 0));
  }
  node.memory.push_back(
      Table("memory", Bytes(numa.memory), Bytes(spec.reserved_memory), Bytes(numa.taken_memory)));
  node.memory_group = base::NumaMask{numa.id};
  node.memory_assignments = 0;
  for (const NumaSpec& to : spec.numa) {
    node.distances[to.id] = to.id == numa.id ? 10 : SocketOf(to) == SocketOf(numa) ? 12 : 21;
  }
  return node;
}

// One container's amounts.
class Reader {
 public:
  void Read(const std::string& words, kube::Container& container) {
    std::istringstream stream(words);
    std::string word;
    while (stream >> word) Word(word, container);
    Flush(container);
    if (!limits_) container.limits = container.requests;
  }

 private:
  void Word(const std::string& word, kube::Container& container) {
    if (word == "nothing") return;
    if (word == "limit") {
      Flush(container);
      limits_ = true;
    } else if (std::isdigit(static_cast<unsigned char>(word.front())) != 0) {
      Flush(container);
      amount_ = word;
    } else {
      resource_ = word == "CPU" ? kube::kCpu : word == "GPU" ? kGpu : word;
      Flush(container);
    }
  }
  void Flush(kube::Container& container) {
    if (amount_.empty()) return;
    const absl::StatusOr<std::int64_t> amount =
        resource_ == kube::kCpu ? base::ParseMilliQuantity(amount_) : base::ParseQuantity(amount_);
    EXPECT_TRUE(amount.ok()) << amount.status();
    (limits_ ? container.limits : container.requests)[resource_] = amount.value_or(0);
    amount_.clear();
    resource_ = kube::kMemory;
  }

  bool limits_ = false;
  std::string amount_;
  std::string resource_ = kube::kMemory;
};

std::string AffinityInWords(const Machine& machine, bool has, Mask affinity, bool preferred) {
  if (!has) return preferred ? "" : "none";
  return machine.ToIds(affinity).ToString() + (preferred ? "" : ", not preferred");
}

}  // namespace

std::vector<NumaSpec> Alike(int count, const NumaSpec& each) {
  std::vector<NumaSpec> nodes;
  for (int id = 0; id < count; ++id) {
    nodes.push_back(each);
    nodes.back().id = id;
  }
  return nodes;
}

placement::NodePlacement NodeOf(const NodeSpec& spec) {
  placement::NodePlacement node;
  node.node_name = "node";
  node.kubelet = {.version = "v1.37.2",
                  .started_at = std::nullopt,
                  .config_source = Bytes(spec.reserved_memory) > 0 ? "configz" : "unknown",
                  .feature_gates = {},
                  .topology_policy = spec.policy,
                  .topology_scope = spec.scope,
                  .topology_options = spec.topology_options,
                  .cpu_policy = spec.cpu_policy,
                  .cpu_options = spec.cpu_options,
                  .reserved_cpus = {},
                  .memory_policy = spec.memory_policy,
                  .reserved_memory = {}};
  if (!spec.reserved_cpus.empty()) node.kubelet.reserved_cpus = CpuList(spec.reserved_cpus);
  int cores = 0;
  for (const NumaSpec& numa : spec.numa) cores += numa.cpus / spec.threads;
  int first = 0;
  placement::PlacedContainer held;
  held.name = "a";
  for (const NumaSpec& numa : spec.numa) {
    node.numa_nodes.push_back(NumaNodeOf(spec, numa, first, cores));
    first += numa.cpus / spec.threads;
    Take(numa, node.numa_nodes.back(), held);
    if (Bytes(spec.reserved_memory) > 0) {
      node.kubelet.reserved_memory.push_back({numa.id, "memory", Bytes(spec.reserved_memory)});
    }
    for (int gpu = 0; gpu < numa.gpus; ++gpu) {
      AddDevice(node, kGpu, fmt::format("gpu-{}-{}", numa.id, gpu), {numa.id});
    }
  }
  if (!held.cpus.empty() || !held.memory.empty() || !held.devices.empty()) {
    placement::PlacedPod& other = node.pods.emplace_back();
    other.namespace_name = "ml";
    other.name = other.uid = "other";
    other.containers.push_back(std::move(held));
  }
  return node;
}

void AddDevice(placement::NodePlacement& node, const std::string& resource, const std::string& id,
               const base::NumaMask& numa_nodes, bool healthy) {
  node.devices.push_back({.resource = resource,
                          .id = id,
                          .numa_nodes = numa_nodes,
                          .unknown_node = false,
                          .healthy = healthy,
                          .pci_address = "",
                          .pci_numa_node = std::nullopt});
}

kube::Pod PodOf(const std::string& uid, const std::string& words) {
  kube::Pod pod;
  pod.uid = uid;
  pod.namespace_name = "ml";
  pod.name = uid;
  std::istringstream parts(words);
  std::string part;
  while (std::getline(parts, part, ';')) {
    part.erase(0, part.find_first_not_of(' '));
    kube::Container container;
    container.sidecar = part.starts_with("sidecar ");
    const bool init = container.sidecar || part.starts_with("init ");
    std::vector<kube::Container>& list = init ? pod.init_containers : pod.containers;
    container.name = init ? fmt::format("init{}", list.size())
                          : std::string(1, static_cast<char>('a' + list.size() % 26));
    Reader().Read(init ? part.substr(part.find(' ')) : part, container);
    list.push_back(std::move(container));
  }
  kube::ApplyDefaults(pod);
  pod.qos = kube::ComputeQos(pod);
  return pod;
}

std::string InWords(const Machine& machine, const Verdict& verdict) {
  if (!verdict.admitted()) return KubeletReason(verdict);
  std::vector<std::string> masks;
  for (const ContainerVerdict& container : verdict.containers) {
    masks.push_back(AffinityInWords(
        machine, container.has_affinity, container.affinity,
        container.preferred || machine.settings.topology_policy == TopologyPolicy::kNone));
  }
  if (std::set(masks.begin(), masks.end()).size() == 1) masks.resize(1);
  const std::string on = fmt::format("{}", fmt::join(masks, "; "));
  return on.empty() ? "admitted" : "admitted on " + on;
}

Scene::Scene(placement::NodePlacement node, const DeviceOrder& order) : node_(std::move(node)) {
  absl::StatusOr<NodeState> read = StateFrom(node_, order);
  EXPECT_TRUE(read.ok()) << read.status();
  if (read.ok()) state = *std::move(read);
}

std::string Scene::Add(const kube::Pod& pod) {
  last_ = Admit(state, MakeRequest(pod));
  Commit(pod.uid, last_, state);
  if (last_.admitted()) Started(state, pod);
  return InWords(*state.machine, last_);
}

std::string Scene::Ask(const kube::Pod& pod) const {
  return InWords(*state.machine, Admit(state, MakeRequest(pod)));
}

void Scene::Remove(const std::string& uid) { admission::Remove(state, uid); }

placement::NodePlacement Scene::Published() const {
  placement::NodePlacement node = node_;
  WriteState(state, node);
  return node;
}

placement::PlacedContainer Scene::Find(const std::string& uid, const std::string& container) const {
  const placement::NodePlacement node = Published();
  const auto pod = std::ranges::find(node.pods, uid, &placement::PlacedPod::uid);
  if (pod == node.pods.end()) return {};
  const auto found =
      std::ranges::find(pod->containers, container, &placement::PlacedContainer::name);
  return found == pod->containers.end() ? placement::PlacedContainer() : *found;
}

std::string Scene::Cpus(const std::string& uid, const std::string& container) const {
  return Find(uid, container).cpus.ToString();
}

std::string Scene::CpuNodes(const std::string& uid, const std::string& container) const {
  const base::CpuSet cpus = Find(uid, container).cpus;
  base::NumaMask nodes;
  for (const placement::NumaNodePlacement& numa : node_.numa_nodes) {
    if (numa.cpus.Intersects(cpus)) nodes.Insert(numa.id);
  }
  return nodes.ToString();
}

std::string Scene::MemoryNodes(const std::string& uid, const std::string& container) const {
  base::NumaMask nodes;
  for (const placement::PlacedMemory& block : Find(uid, container).memory) {
    nodes |= block.numa_nodes;
  }
  return nodes.ToString();
}

std::string Scene::DeviceNodes(const std::string& uid, const std::string& container) const {
  base::NumaMask nodes;
  for (const placement::HeldDevices& held : Find(uid, container).devices) {
    for (const placement::PlacedDevice& device : node_.devices) {
      const bool is_held = device.resource == held.resource &&
                           std::ranges::find(held.ids, device.id) != held.ids.end();
      if (is_held) nodes |= device.numa_nodes;
    }
  }
  return nodes.ToString();
}

}  // namespace scheduler::admission
