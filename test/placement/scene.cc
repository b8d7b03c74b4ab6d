#include "test/placement/scene.h"

#include <fmt/format.h>

#include <algorithm>

namespace placement {

using podresources::Container;
using podresources::MemoryBlock;

hwinfo::Topology Machine(const std::vector<NodeSpec>& nodes) {
  hwinfo::Topology topology;
  topology.source = "root /x";
  topology.boot_id = "boot-1";
  for (const NodeSpec& spec : nodes) {
    hwinfo::NumaNode node;
    node.id = spec.id;
    node.cpus = Cpus(spec.cpus);
    node.nearest_cpus = node.cpus;
    node.memory_bytes = spec.memory;
    node.socket = node.cpus.empty() ? -1 : spec.socket;
    node.kind = node.cpus.empty() ? hwinfo::NumaNodeKind::kMemoryOnly : hwinfo::NumaNodeKind::kDram;
    for (const NodeSpec& other : nodes) node.distances[other.id] = other.id == spec.id ? 10 : 21;
    for (const int id : node.cpus) {
      topology.cpus.push_back({.id = id,
                               .socket = spec.socket,
                               .core = id,
                               .numa_node = spec.id,
                               .l3 = node.cpus.First(),
                               .siblings = {id}});
    }
    topology.numa_nodes.push_back(std::move(node));
  }
  std::ranges::sort(topology.cpus, {}, &hwinfo::Cpu::id);
  return topology;
}

hwinfo::Topology TwoNodes() {
  return Machine({{.id = 0, .cpus = "0-15", .memory = 64 * kGiB, .socket = 0},
                  {.id = 1, .cpus = "16-31", .memory = 64 * kGiB, .socket = 1}});
}

void AddGpu(hwinfo::Topology& topology, int bus, int node) {
  hwinfo::PciDevice device;
  device.address.bus = static_cast<std::uint8_t>(bus);
  device.kind = hwinfo::DeviceKind::kGpu;
  if (node >= 0) device.numa_node = node;
  topology.devices.push_back(device);
  std::ranges::sort(topology.devices, {}, &hwinfo::PciDevice::address);
}

base::CpuSet Cpus(const std::string& list) {
  return base::CpuSet::Parse(list).value_or(base::CpuSet());
}

podresources::Device Gpu(const std::string& id, const base::NumaMask& numa_nodes) {
  return {.resource = "nvidia.com/gpu", .id = id, .numa_nodes = numa_nodes};
}

PlacedDevice KnownGpu(const std::string& id) {
  PlacedDevice device;
  device.resource = "nvidia.com/gpu";
  device.id = id;
  device.numa_nodes = {0};
  return device;
}

MemoryBlock Block(std::int64_t bytes, const base::NumaMask& numa_nodes) {
  return {.type = "memory", .bytes = bytes, .numa_nodes = numa_nodes};
}

podresources::Pod PodOf(const std::string& name, const std::vector<Container>& containers) {
  return {.namespace_name = "ml", .name = name, .containers = containers, .cpus = {}, .memory = {}};
}

Scene::Scene(hwinfo::Topology topology, const std::string& reserved_cpus) {
  facts.node_name = "gpu-7";
  facts.agent_version = "0.1.0";
  facts.topology = std::move(topology);
  facts.config.cpu_policy.value = "static";
  facts.config.memory_policy.value = "Static";
  facts.config.reserved_cpus.value = Cpus(reserved_cpus);
  facts.config.topology_options.value = podresources::Options();
  Policy("single-numa-node", "container");
  podresources::Assignments assignments;
  assignments.allocatable.emplace();
  assignments.allocatable->cpus = facts.topology.OnlineCpus() - Cpus(reserved_cpus);
  facts.state.cpu.emplace();
  facts.state.cpu->policy = "static";
  facts.state.cpu->default_cpus = facts.topology.OnlineCpus();
  facts.state.memory.emplace();
  facts.state.memory->policy = "Static";
  for (const hwinfo::NumaNode& node : facts.topology.numa_nodes) {
    const std::int64_t bytes = node.memory_bytes.value_or(0);
    podresources::MemoryNode& memory = facts.state.memory->nodes[node.id];
    memory.group = {node.id};
    memory.memory["memory"] = {.total = bytes, .allocatable = bytes, .free = bytes};
    if (bytes > 0) assignments.allocatable->memory.push_back(Block(bytes, {node.id}));
  }
  facts.state.devices.emplace();
  facts.state.pod_logs.emplace();
  facts.enforced = hwinfo::Enforced();
  facts.assignments = std::move(assignments);
}

void Scene::Policy(const std::string& policy, const std::string& scope) {
  facts.config.topology_policy = {
      .value = policy, .source = podresources::ConfigSource::kFile, .where = "config.yaml"};
  facts.config.topology_scope.value = scope;
}

// As the kubelet fills its table: ascending ids, as much as fits.
void Scene::AddMemory(const std::string& uid, const Container& container) {
  facts.state.memory->entries[uid][container.name] = container.memory;
  for (const MemoryBlock& block : container.memory) {
    std::int64_t left = block.bytes;
    for (const int id : block.numa_nodes) {
      podresources::MemoryNode& node = facts.state.memory->nodes[id];
      podresources::MemoryTable& table = node.memory[block.type];
      ++node.assignments;
      node.group = block.numa_nodes;
      const std::int64_t taken = std::min(left, table.free);
      table.free -= taken;
      table.reserved += taken;
      left -= taken;
    }
  }
}

void Scene::Add(const std::string& name, const std::string& uid,
                const std::vector<Container>& containers) {
  facts.assignments->pods.push_back(PodOf(name, containers));
  facts.state.pod_logs->push_back({.namespace_name = "ml", .name = name, .uid = uid});
  for (const Container& container : containers) {
    if (!container.cpus.empty()) {
      facts.state.cpu->entries[uid][container.name] = container.cpus;
      facts.state.cpu->default_cpus -= container.cpus;
    }
    if (!container.memory.empty()) AddMemory(uid, container);
    if (!container.devices.empty()) {
      facts.state.devices->entries[uid][container.name] = container.devices;
    }
  }
}

void Scene::ForgetInList(const std::string& name) {
  std::erase_if(facts.assignments->pods,
                [&](const podresources::Pod& pod) { return pod.name == name; });
}

void Scene::AddDevice(const podresources::Device& device) {
  facts.assignments->allocatable->devices.push_back(device);
  facts.state.devices->registered[device.resource].push_back(device.id);
}

void Scene::Resolve(const std::string& id, int bus) {
  hwinfo::ResolvedDevice resolved;
  resolved.address = hwinfo::PciAddress{.bus = static_cast<std::uint8_t>(bus)};
  facts.device_hardware.push_back({.resource = "nvidia.com/gpu", .id = id, .resolved = resolved});
}

void Scene::Enforce(const std::string& uid, const std::string& container_id,
                    const std::string& cpus, const std::string& mems, std::int64_t resident) {
  hwinfo::ContainerCgroup cgroup;
  cgroup.pod_uid = uid;
  cgroup.container_id = container_id;
  cgroup.cpus = Cpus(cpus);
  cgroup.memory_nodes = base::NumaMask::Parse(mems).value_or(base::NumaMask());
  cgroup.resident_known = true;
  if (resident > 0) cgroup.resident_bytes[0] = resident;
  if (container_id != "sandbox") facts.container_names[container_id] = "main";
  facts.enforced->containers.push_back(cgroup);
}

const PlacedPod* FindPod(const Observation& observation, const std::string& name) {
  const auto found = std::ranges::find(observation.placement.pods, name, &PlacedPod::name);
  return found == observation.placement.pods.end() ? nullptr : &*found;
}

const NrtZone* FindZone(const Observation& observation, const std::string& name) {
  if (!observation.nrt) return nullptr;
  const auto found = std::ranges::find(observation.nrt->zones, name, &NrtZone::name);
  return found == observation.nrt->zones.end() ? nullptr : &*found;
}

const NrtResource* FindResource(const Observation& observation, const std::string& zone,
                                const std::string& resource) {
  const NrtZone* in = FindZone(observation, zone);
  if (in == nullptr) return nullptr;
  const auto found = std::ranges::find(in->resources, resource, &NrtResource::name);
  return found == in->resources.end() ? nullptr : &*found;
}

std::vector<std::string> Codes(const Observation& observation) {
  std::vector<std::string> codes;
  for (const base::Diagnostic& diagnostic : observation.diagnostics) {
    codes.push_back(diagnostic.code);
  }
  return codes;
}

std::string ConditionOf(const Observation& observation, const std::string& type) {
  const auto found = std::ranges::find(observation.placement.conditions, type, &Condition::type);
  if (found == observation.placement.conditions.end()) return "";
  return fmt::format("{} {}", found->status, found->reason);
}

}  // namespace placement
