#include "placement/nrt.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "placement/fingerprint.h"
#include "placement/kubelet_facts.h"

namespace placement {
namespace {

constexpr int kMostZones = 64;  // of type Node
constexpr int kDefaultMaxNumaNodes = 8;

std::string ZoneName(int id) { return fmt::format("node-{}", id); }

const char* KindName(hwinfo::NumaNodeKind kind) {
  switch (kind) {
    case hwinfo::NumaNodeKind::kDram:
      return "dram";
    case hwinfo::NumaNodeKind::kCpuOnly:
      return "cpu-only";
    case hwinfo::NumaNodeKind::kMemoryOnly:
      return "memory-only";
    case hwinfo::NumaNodeKind::kGpuMemory:
      return "gpu-memory";
    case hwinfo::NumaNodeKind::kEmpty:
      break;
  }
  return "empty";
}

std::string OptionsText(const std::map<std::string, std::string>& options) {
  std::string text;
  for (const auto& [name, value] : options) {
    text += fmt::format("{}{}={}", text.empty() ? "" : ",", name, value);
  }
  return text;
}

// The deprecated list joins policy and scope in one word.
std::vector<std::string> LegacyPolicies(const KubeletFacts& kubelet) {
  if (kubelet.topology_policy == "none") return {"None"};
  std::string word;
  if (kubelet.topology_policy == "single-numa-node") word = "SingleNUMANode";
  if (kubelet.topology_policy == "restricted") word = "Restricted";
  if (kubelet.topology_policy == "best-effort") word = "BestEffort";
  if (word.empty()) return {};
  if (kubelet.topology_scope == "pod") return {word + "PodLevel"};
  if (kubelet.topology_scope == "container") return {word + "ContainerLevel"};
  return {};
}

// Upstream's rule for what a pod must hold to be in the fingerprint "with-exclusive-resources". Who
// compares it counts the devices that the object lists.
bool CountsForFingerprint(const podresources::Pod& pod, const std::set<std::string>& excluded) {
  return std::ranges::any_of(pod.containers, [&](const podresources::Container& container) {
    return !container.cpus.empty() ||
           std::ranges::any_of(
               container.memory,
               [](const podresources::MemoryBlock& block) { return !block.numa_nodes.empty(); }) ||
           std::ranges::any_of(container.devices, [&](const podresources::Device& device) {
             return !device.numa_nodes.empty() && !excluded.contains(device.resource);
           });
  });
}

std::string Fingerprint(const podresources::Assignments& assignments,
                        const std::set<std::string>& excluded) {
  std::vector<std::pair<std::string, std::string>> pods;
  for (const podresources::Pod& pod : assignments.pods) {
    if (CountsForFingerprint(pod, excluded)) pods.emplace_back(pod.namespace_name, pod.name);
  }
  return PodFingerprint(pods);
}

std::string MaxNumaNodes(const KubeletFacts& kubelet) {
  const auto option = kubelet.topology_options.find("max-allowable-numa-nodes");
  if (option == kubelet.topology_options.end()) return std::to_string(kDefaultMaxNumaNodes);
  int number = 0;
  const std::string& text = option->second;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool whole = result.ec == std::errc() && result.ptr == text.data() + text.size();
  return whole && number > 1 ? std::to_string(number) : "";
}

std::vector<NrtAttribute> Attributes(const Facts& facts, const NodePlacement& placement,
                                     const std::string& fingerprint) {
  const KubeletFacts& kubelet = placement.kubelet;
  std::vector<NrtAttribute> attributes;
  const auto add = [&](const char* name, const std::string& value) {
    if (!value.empty()) attributes.push_back({.name = name, .value = value});
  };
  add("cpuManagerPolicy", kubelet.cpu_policy);
  add("cpuManagerPolicyOptions", OptionsText(kubelet.cpu_options));
  // A printer column of a definition shows one value only; those of the zones are many.
  add("free", placement.summary.free);
  add("memoryManagerPolicy", kubelet.memory_policy);
  add("nodeTopologyPodsFingerprint", fingerprint);
  add("nodeTopologyPodsFingerprintMethod", "with-exclusive-resources");
  if (kubelet.reserved_cpus) add("reservedCPUs", kubelet.reserved_cpus->ToString());
  if (facts.config.topology_options.value) {
    add("topologyManagerMaxNUMANodes", MaxNumaNodes(kubelet));
  }
  add("topologyManagerPolicy", kubelet.topology_policy);
  add("topologyManagerPolicyOptions", OptionsText(kubelet.topology_options));
  add("topologyManagerScope", kubelet.topology_scope);
  return attributes;
}

NrtResource Clamped(const std::string& name, std::int64_t capacity, std::int64_t allocatable,
                    std::int64_t available) {
  allocatable = std::max<std::int64_t>(0, allocatable);
  return {.name = name,
          .capacity = std::max(capacity, allocatable),
          .allocatable = allocatable,
          .available = std::clamp<std::int64_t>(available, 0, allocatable)};
}

// Counts of devices on one NUMA node, by the plugin's claim, which is what the kubelet aligns by.
std::vector<NrtResource> DeviceResources(int node, const DeviceAccount& account) {
  std::map<std::string, NrtResource> resources;
  for (const auto& [key, device] : account.devices) {
    if (!device.numa_nodes.Contains(node) || account.dynamic.contains(key)) continue;
    NrtResource& resource =
        resources.try_emplace(key.first, NrtResource{key.first, 0, 0, 0}).first->second;
    ++*resource.capacity;
    if (!device.healthy) continue;
    ++*resource.allocatable;
    if (!account.held.contains(key)) ++*resource.available;
  }
  std::vector<NrtResource> list;
  for (auto& [name, resource] : resources) list.push_back(std::move(resource));
  return list;
}

std::vector<NrtResource> Resources(const NumaNodePlacement& node, const KubeletFacts& kubelet,
                                   const CpuAccount& cpus, const DeviceAccount& devices) {
  std::vector<NrtResource> resources = DeviceResources(node.id, devices);
  if (cpus.allocatable && cpus.free) {
    resources.push_back(Clamped("cpu", node.cpus.size(), (*cpus.allocatable & node.cpus).size(),
                                (*cpus.free & node.cpus).size()));
  }
  if (HasStaticMemory(kubelet)) {
    for (const NodeMemory& memory : node.memory) {
      if (!memory.free || (memory.capacity <= 0 && memory.allocatable <= 0)) continue;
      resources.push_back(Clamped(memory.type, memory.capacity, memory.allocatable, *memory.free));
    }
  }
  std::ranges::sort(resources);
  return resources;
}

std::vector<NrtAttribute> ZoneAttributes(const hwinfo::NumaNode& node,
                                         const NumaNodePlacement& placed) {
  std::vector<NrtAttribute> attributes = {{.name = "kind", .value = KindName(node.kind)}};
  if (placed.memory_group) {
    attributes.push_back({.name = "memoryGroup", .value = placed.memory_group->ToString()});
  }
  if (node.socket >= 0) {
    attributes.push_back({.name = "socket", .value = std::to_string(node.socket)});
  }
  return attributes;
}

bool IsZone(const hwinfo::NumaNode& node, const DeviceAccount& devices) {
  if (!node.cpus.empty() || node.memory_bytes.value_or(0) > 0) return true;
  return std::ranges::any_of(devices.devices, [&](const auto& entry) {
    return entry.second.numa_nodes.Contains(node.id);
  });
}

}  // namespace

NodeResourceTopology MakeNrt(const Facts& facts, const NodePlacement& placement,
                             const CpuAccount& cpus, const DeviceAccount& devices) {
  NodeResourceTopology nrt;
  nrt.name = placement.node_name;
  const std::string fingerprint = Fingerprint(*facts.assignments, facts.excluded_resources);
  nrt.annotations = {{.name = "topology.node.k8s.io/fingerprint", .value = fingerprint}};
  nrt.topology_policies = LegacyPolicies(placement.kubelet);
  nrt.attributes = Attributes(facts, placement, fingerprint);
  base::NumaMask zones;
  for (const hwinfo::NumaNode& node : facts.topology.numa_nodes) {
    if (IsZone(node, devices)) zones.Insert(node.id);
  }
  for (const NumaNodePlacement& placed : placement.numa_nodes) {
    const hwinfo::NumaNode* node = facts.topology.FindNumaNode(placed.id);
    if (node == nullptr || !zones.Contains(placed.id)) continue;
    NrtZone zone;
    zone.name = ZoneName(placed.id);
    zone.type = placed.id < kMostZones ? kZoneType : kZoneTypeAbove63;
    for (const auto& [other, distance] : placed.distances) {
      if (!zones.Contains(other) || other >= kMostZones) continue;
      zone.costs.push_back({.name = ZoneName(other), .value = distance});
    }
    zone.attributes = ZoneAttributes(*node, placed);
    zone.resources = Resources(placed, placement.kubelet, cpus, devices);
    std::erase_if(zone.resources, [&](const NrtResource& resource) {
      return facts.excluded_resources.contains(resource.name);
    });
    nrt.zones.push_back(std::move(zone));
  }
  return nrt;
}

}  // namespace placement
