#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "placement/accounting.h"
#include "placement/alignment.h"
#include "placement/conditions.h"
#include "placement/devices.h"
#include "placement/join.h"
#include "placement/kernel.h"
#include "placement/kubelet_facts.h"
#include "placement/nrt.h"
#include "placement/observation.h"

namespace placement {
namespace {

std::vector<HeldDevices> HeldBy(const std::map<std::string, std::set<std::string>>& ids) {
  std::vector<HeldDevices> held;
  held.reserve(ids.size());
  for (const auto& [resource, of_resource] : ids) {
    held.push_back({.resource = resource, .ids = {of_resource.begin(), of_resource.end()}});
  }
  return held;
}

std::vector<PlacedMemory> BlocksOf(const std::vector<podresources::MemoryBlock>& blocks) {
  std::vector<PlacedMemory> placed;
  for (const podresources::MemoryBlock& block : blocks) {
    if (block.bytes <= 0) continue;
    placed.push_back({.type = block.type, .bytes = block.bytes, .numa_nodes = block.numa_nodes});
  }
  std::ranges::sort(placed, {}, [](const PlacedMemory& memory) {
    return std::tie(memory.type, memory.numa_nodes, memory.bytes);
  });
  return placed;
}

PlacedContainer Place(const podresources::Container& container) {
  PlacedContainer placed;
  placed.name = container.name;
  placed.cpus = container.cpus;
  placed.memory = BlocksOf(container.memory);
  std::map<std::string, std::set<std::string>> ids;
  for (const podresources::Device& device : container.devices) {
    ids[device.resource].insert(device.id);
  }
  for (const podresources::ClaimDevice& claim : container.claims) {
    ids[claim.driver].insert(DynamicDeviceId(claim));
  }
  placed.devices = HeldBy(ids);
  return placed;
}

// What the pod has as a whole: a container without a name.
PlacedContainer PlaceWhole(const podresources::Pod& pod) {
  PlacedContainer whole;
  whole.cpus = pod.cpus;
  whole.memory = BlocksOf(pod.memory);
  return whole;
}

bool HoldsSomething(const PlacedContainer& container) {
  return !container.cpus.empty() || !container.memory.empty() || !container.devices.empty();
}

// What only the state files show of a pod: finished init containers, which keep what they held.
// CPUs and devices that a listed container uses on are that container's.
class HiddenContainers {
 public:
  explicit HiddenContainers(const PlacedPod& listed) {
    for (const PlacedContainer& container : listed.containers) {
      listed_.insert(container.name);
      used_cpus_ |= container.cpus;
      for (const HeldDevices& held : container.devices) {
        for (const std::string& id : held.ids) used_devices_.emplace(held.resource, id);
      }
    }
  }

  // `uid` is "" for a pod whose UID is not known: it has no entries.
  std::vector<PlacedContainer> Of(const podresources::KubeletState& state,
                                  const std::string& uid) && {
    if (state.cpu) ForEach(state.cpu->entries, uid);
    // Blocks of a pod with pod-level ones are parts of those and go back to the pod, not to nobody.
    if (state.memory && !state.memory->pod_entries.contains(uid)) {
      ForEach(state.memory->entries, uid);
    }
    if (state.devices) ForEach(state.devices->entries, uid);
    std::vector<PlacedContainer> list;
    for (auto& [name, container] : hidden_) {
      container.name = name;
      if (HoldsSomething(container)) list.push_back(std::move(container));
    }
    return list;
  }

 private:
  template <class T>
  void ForEach(const podresources::ByPodAndContainer<T>& entries, const std::string& uid) {
    const auto found = entries.find(uid);
    if (found == entries.end()) return;
    for (const auto& [name, entry] : found->second) {
      if (!listed_.contains(name)) Add(entry, hidden_[name]);
    }
  }
  void Add(const base::CpuSet& cpus, PlacedContainer& container) {
    container.cpus = cpus - used_cpus_;
    used_cpus_ |= cpus;
  }
  static void Add(const std::vector<podresources::MemoryBlock>& blocks,
                  PlacedContainer& container) {
    container.memory = BlocksOf(blocks);
  }
  void Add(const std::vector<podresources::Device>& devices, PlacedContainer& container) {
    std::map<std::string, std::set<std::string>> ids;
    for (const podresources::Device& device : devices) {
      const bool first = used_devices_.emplace(device.resource, device.id).second;
      if (first) ids[device.resource].insert(device.id);
    }
    container.devices = HeldBy(ids);
  }

  std::set<std::string> listed_;
  base::CpuSet used_cpus_;
  std::set<DeviceKey> used_devices_;
  std::map<std::string, PlacedContainer> hidden_;
};

void CountAlignment(Alignment alignment, Summary& summary) {
  ++summary.pods;
  switch (alignment) {
    case Alignment::kAligned:
      ++summary.aligned;
      break;
    case Alignment::kSpread:
      ++summary.spread;
      break;
    case Alignment::kMisaligned:
      ++summary.misaligned;
      break;
    case Alignment::kUnpinned:
      ++summary.unpinned;
      break;
    case Alignment::kDrifted:
      ++summary.drifted;
      break;
    case Alignment::kUnknown:
      ++summary.unknown;
      break;
  }
}

using CpuCounts = std::map<std::pair<int, int>, int>;

// How many CPUs share each L3, by socket and id.
CpuCounts CpusByL3(const hwinfo::Topology& topology) {
  CpuCounts counts;
  for (const hwinfo::Cpu& cpu : topology.cpus) ++counts[{cpu.socket, cpu.l3}];
  return counts;
}

// The kubelet knows an L3 by its id only if its CPUs are not as many as those of the NUMA node
// (cAdvisor's count: the node's cores times the threads of this one), else by the socket's.
std::vector<CoreGroup> CoreGroupsOf(const hwinfo::Topology& topology, const CpuCounts& sharing,
                                    int node) {
  std::set<base::CpuSet> all_cores;
  for (const hwinfo::Cpu& cpu : topology.cpus) {
    if (cpu.numa_node == node) all_cores.insert(cpu.siblings | base::CpuSet{cpu.id});
  }
  std::map<std::pair<int, int>, std::set<base::CpuSet>> groups;
  for (const hwinfo::Cpu& cpu : topology.cpus) {
    if (cpu.numa_node != node) continue;
    const base::CpuSet core = cpu.siblings | base::CpuSet{cpu.id};
    const auto cpus = sharing.find({cpu.socket, cpu.l3});
    const bool whole =
        cpus != sharing.end() &&
        std::cmp_equal(cpus->second, all_cores.size() * static_cast<std::size_t>(core.size()));
    groups[{cpu.socket, cpu.l3 < 0 || whole ? cpu.socket : cpu.l3}].insert(core);
  }
  std::vector<CoreGroup> list;
  list.reserve(groups.size());
  for (const auto& [key, cores] : groups) {
    list.push_back({.socket = key.first, .l3 = key.second, .cores = {cores.begin(), cores.end()}});
  }
  return list;
}

// "0: 4 gpu 36 cpu · 1: 0 gpu 44 cpu": NUMA nodes that have neither are left out.
std::string FreeText(const NodePlacement& placement, const DeviceAccount& account) {
  std::map<std::string, std::set<std::string>> by_short_name;
  std::map<std::string, std::map<int, int>> free;
  base::NumaMask with_devices;
  for (const auto& [key, device] : account.devices) {
    if (account.dynamic.contains(key) || account.unregistered.contains(key.first)) continue;
    for (const int node : device.numa_nodes) {
      by_short_name[ShortName(key.first)].insert(key.first);
      with_devices.Insert(node);
      free[key.first][node] += device.healthy && !account.held.contains(key) ? 1 : 0;
    }
  }
  std::string text;
  for (const NumaNodePlacement& node : placement.numa_nodes) {
    std::string here;
    for (const auto& [resource, counts] : free) {
      const auto count = counts.find(node.id);
      if (!with_devices.Contains(node.id) && node.cpus.empty()) continue;
      const std::string name = ShortName(resource);
      here += fmt::format(" {} {}", count == counts.end() ? 0 : count->second,
                          by_short_name[name].size() > 1 ? resource : name);
    }
    if (node.free_cpus && !node.cpus.empty()) {
      here += fmt::format(" {} cpu", node.free_cpus->size());
    }
    if (!here.empty()) text += fmt::format("{}{}:{}", text.empty() ? "" : " · ", node.id, here);
  }
  return text;
}

// Makes the observation in steps that each fill a part of it.
class Observer {
 public:
  explicit Observer(const Facts& facts) : facts_(facts) {}

  Observation Run() && {
    placement_.node_name = facts_.node_name;
    placement_.boot_id = facts_.topology.boot_id;
    placement_.agent_version = facts_.agent_version;
    placement_.kubelet = GatherKubeletFacts(facts_, own_);
    if (facts_.assignments.ok()) {
      placement_.observed_at = facts_.observed_at;
      Join();
    }
    cpus_ = AccountCpus(facts_, placement_.kubelet, joined_.active, own_);
    memory_ = AccountMemory(facts_, placement_.kubelet, joined_.active, own_);
    devices_ = AccountDevices(facts_, joined_.active, own_);
    PlaceNumaNodes();
    for (const auto& [key, device] : devices_.devices) placement_.devices.push_back(device);
    PlacePods();
    if (facts_.assignments.ok()) placement_.summary.free = FreeText(placement_, devices_);
    placement_.conditions = MakeConditions(facts_, placement_, compared_, cpus_, devices_, own_);
    return Finish();
  }

 private:
  void Join() {
    joined_ = JoinPods(*facts_.assignments, facts_.state, facts_.api_pods);
    std::ranges::move(joined_.diagnostics, std::back_inserter(own_));
    std::set<std::string> known;
    for (const JoinedPod& pod : joined_.pods) {
      if (!pod.uid.empty()) known.insert(pod.uid);
    }
    placement_.known_pods.assign(known.begin(), known.end());
  }

  void PlaceNumaNodes() {
    const CpuCounts sharing = CpusByL3(facts_.topology);
    for (const hwinfo::NumaNode& node : facts_.topology.numa_nodes) {
      NumaNodePlacement placed;
      placed.id = node.id;
      placed.cpus = node.cpus;
      placed.core_groups = CoreGroupsOf(facts_.topology, sharing, node.id);
      if (cpus_.free) placed.free_cpus = *cpus_.free & node.cpus;
      MemoryAccount::Node& memory = memory_.nodes[node.id];
      for (const auto& [type, amounts] : memory.types) placed.memory.push_back(amounts);
      placed.memory_group = memory.group;
      placed.memory_assignments = memory.assignments;
      placed.distances = node.distances;
      placement_.numa_nodes.push_back(std::move(placed));
    }
  }

  void PlacePods() {
    const AlignmentContext context{.topology = &facts_.topology,
                                   .devices = &devices_,
                                   .installed = InstalledOn(facts_.topology, devices_),
                                   .placed_resources = PlacedResources(facts_.topology, devices_),
                                   .scope_is_pod = placement_.kubelet.topology_scope == "pod",
                                   .memory_is_static = HasStaticMemory(placement_.kubelet)};
    const CgroupsByUid cgroups =
        facts_.enforced.ok() ? GroupByUid(*facts_.enforced) : CgroupsByUid();
    container_names_ = facts_.container_names;
    if (facts_.api_pods) {
      for (const ApiPod& pod : *facts_.api_pods) {
        container_names_.insert(pod.containers.begin(), pod.containers.end());
      }
    }
    for (const JoinedPod& joined : joined_.pods) PlaceOne(joined, context, cgroups);
    std::ranges::sort(placement_.pods, {}, [](const PlacedPod& pod) {
      return std::tie(pod.namespace_name, pod.name, pod.uid, pod.kubelet_uid);
    });
  }

  void PlaceOne(const JoinedPod& joined, const AlignmentContext& context,
                const CgroupsByUid& cgroups) {
    PlacedPod pod;
    pod.namespace_name = joined.pod->namespace_name;
    pod.name = joined.pod->name;
    pod.uid = joined.uid;
    pod.kubelet_uid = joined.kubelet_uid;
    PlacedContainer whole = PlaceWhole(*joined.pod);
    if (HoldsSomething(whole)) pod.containers.push_back(std::move(whole));
    for (const podresources::Container& container : joined.pod->containers) {
      pod.containers.push_back(Place(container));
    }
    std::vector<PlacedContainer> hidden =
        HiddenContainers(pod).Of(facts_.state, joined.state_uid());
    if (hidden.empty() && std::ranges::none_of(pod.containers, HoldsSomething)) return;
    const auto found = cgroups.find(joined.state_uid());
    if (found != cgroups.end() && !joined.state_uid().empty()) {
      AttachKernelFacts(found->second, container_names_, pod, own_);
    }
    CountCompared(pod);
    JudgePod(context, pod, own_);
    std::ranges::move(hidden, std::back_inserter(pod.containers));
    CountAlignment(pod.alignment, placement_.summary);
    placement_.pods.push_back(std::move(pod));
  }

  // Before containers that have finished join it: those have no cgroup any more.
  void CountCompared(const PlacedPod& pod) {
    for (const PlacedContainer& container : pod.containers) {
      if (container.cpus.empty() || container.name.empty()) continue;
      ++compared_.of;
      if (container.kernel && container.kernel->cpus) ++compared_.count;
    }
  }

  Observation Finish() {
    Observation observation;
    if (facts_.assignments.ok()) {
      observation.nrt = MakeNrt(facts_, placement_, cpus_, devices_);
    }
    observation.placement = std::move(placement_);
    observation.diagnostics = std::move(own_);
    const auto add = [&](const base::Diagnostics& from) {
      observation.diagnostics.insert(observation.diagnostics.end(), from.begin(), from.end());
    };
    add(facts_.diagnostics);
    add(facts_.topology.diagnostics);
    add(facts_.config.diagnostics);
    add(facts_.state.diagnostics);
    if (facts_.assignments.ok()) add(facts_.assignments->diagnostics);
    if (facts_.enforced.ok()) add(facts_.enforced->diagnostics);
    std::ranges::sort(observation.diagnostics);
    observation.diagnostics.erase(
        std::unique(observation.diagnostics.begin(), observation.diagnostics.end()),
        observation.diagnostics.end());
    return observation;
  }

  const Facts& facts_;
  NodePlacement placement_;
  base::Diagnostics own_;
  Joined joined_;
  std::map<std::string, std::string> container_names_;
  Compared compared_;
  CpuAccount cpus_;
  MemoryAccount memory_;
  DeviceAccount devices_;
};

}  // namespace

Observation Observe(const Facts& facts) {
  if (!facts.assignments.ok() || !facts.api_pods) return Observer(facts).Run();
  auto corrected = Correct(*facts.assignments, facts.state, *facts.api_pods);
  if (!corrected) return Observer(facts).Run();
  Facts corrected_facts = facts;
  corrected_facts.assignments = *std::move(corrected);
  return Observer(corrected_facts).Run();
}

}  // namespace placement
