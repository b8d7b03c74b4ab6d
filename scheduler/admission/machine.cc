#include "scheduler/admission/machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <functional>
#include <numeric>
#include <optional>
#include <set>
#include <tuple>

#include "absl/status/status.h"
#include "base/status_macros.h"
#include "base/text.h"
#include "kube/pod.h"
#include "scheduler/admission/kubelet_limits.h"

namespace scheduler::admission {
namespace {

using placement::CoreGroup;
using placement::NodePlacement;
using placement::NumaNodePlacement;
using placement::PlacedDevice;

template <class Value>
int PositionOf(const std::vector<Value>& sorted, const Value& value) {
  const auto found = std::lower_bound(sorted.begin(), sorted.end(), value);
  return found != sorted.end() && *found == value ? static_cast<int>(found - sorted.begin()) : -1;
}

bool IsSet(const std::map<std::string, std::string>& options, const std::string& name) {
  const auto found = options.find(name);
  return found != options.end() && base::ParseBool(found->second).value_or(false);
}

std::int64_t NumberIn(const std::map<std::string, std::string>& options, const std::string& name,
                      std::int64_t otherwise) {
  const auto found = options.find(name);
  if (found == options.end()) return otherwise;
  return base::ParseNumber<std::int64_t>(found->second).value_or(otherwise);
}

// "v1.37.2" -> 37; 0 if it says nothing.
int MinorVersion(const std::string& version) {
  if (!version.starts_with("v1.")) return 0;
  const std::string_view rest = std::string_view(version).substr(3);
  const std::string_view digits = rest.substr(0, rest.find_first_not_of("0123456789"));
  return base::ParseNumber<int>(digits).value_or(0);
}

// One that is not known counts as none; ReadLimits refuses it.
TopologyPolicy PolicyNamed(const std::string& name) {
  const auto found = std::ranges::find(kTopologyPolicyNames, name);
  if (found == kTopologyPolicyNames.end()) return TopologyPolicy::kNone;
  return static_cast<TopologyPolicy>(found - kTopologyPolicyNames.begin());
}

Settings ReadSettings(const placement::KubeletFacts& kubelet) {
  Settings settings;
  settings.topology_policy = PolicyNamed(kubelet.topology_policy);
  settings.topology_scope =
      kubelet.topology_scope == "pod" ? TopologyScope::kPod : TopologyScope::kContainer;
  settings.prefer_closest_numa_nodes = IsSet(kubelet.topology_options, "prefer-closest-numa-nodes");
  settings.max_allowable_numa_nodes =
      NumberIn(kubelet.topology_options, "max-allowable-numa-nodes", kDefaultMaxNumaNodes);
  settings.cpu_static = kubelet.cpu_policy == "static";
  settings.full_pcpus_only = IsSet(kubelet.cpu_options, "full-pcpus-only");
  settings.distribute_cpus_across_numa = IsSet(kubelet.cpu_options, "distribute-cpus-across-numa");
  settings.align_by_socket = IsSet(kubelet.cpu_options, "align-by-socket");
  settings.distribute_cpus_across_cores =
      IsSet(kubelet.cpu_options, "distribute-cpus-across-cores");
  settings.strict_cpu_reservation = IsSet(kubelet.cpu_options, "strict-cpu-reservation");
  settings.prefer_align_cpus_by_uncorecache =
      IsSet(kubelet.cpu_options, "prefer-align-cpus-by-uncorecache");
  settings.memory_static = kubelet.memory_policy == "Static";
  settings.pod_level_managers = IsSet(kubelet.feature_gates, "PodLevelResourceManagers");
  settings.minor_version = MinorVersion(kubelet.version);
  return settings;
}

absl::Status ReadNumaIds(const NodePlacement& node, Machine& machine) {
  for (const NumaNodePlacement& numa : node.numa_nodes) {
    if (numa.id < 0) return absl::InvalidArgumentError("a NUMA node has no id");
    machine.numa_ids.push_back(numa.id);
  }
  std::ranges::sort(machine.numa_ids);
  if (machine.numa_ids.empty()) return absl::InvalidArgumentError("the node has no NUMA nodes");
  const auto twice = std::ranges::adjacent_find(machine.numa_ids);
  if (twice != machine.numa_ids.end()) {
    return absl::InvalidArgumentError(fmt::format("NUMA node {} is listed twice", *twice));
  }
  const int count = machine.numa_count();
  machine.all_nodes = count >= kMaxNumaNodes ? ~Mask{0} : (Mask{1} << count) - 1;
  return absl::OkStatus();
}

// A row lists the distances by position, and the kubelet looks for the NUMA id there (numa_info.go,
// CalculateAverageFor).
void ReadDistances(const NodePlacement& node, Machine& machine) {
  const auto count = static_cast<std::size_t>(machine.numa_count());
  for (std::size_t column = 0; column < count; ++column) {
    if (std::cmp_greater_equal(machine.numa_ids[column], count)) {
      machine.beyond_distances |= Mask{1} << column;
    }
  }
  machine.distances.assign(count, std::vector<double>(count, 0));
  for (const NumaNodePlacement& numa : node.numa_nodes) {
    const auto row = static_cast<std::size_t>(PositionOf(machine.numa_ids, numa.id));
    std::vector<double> listed;
    for (const int id : machine.numa_ids) {
      const auto found = numa.distances.find(id);
      if (found == numa.distances.end()) {
        machine.distances.clear();
        return;
      }
      listed.push_back(found->second);
    }
    for (std::size_t column = 0; column < count; ++column) {
      if (((machine.beyond_distances >> column) & 1) != 0) continue;
      machine.distances[row][column] = listed[At(machine.numa_ids[column])];
    }
  }
}

// One physical core as it is described, before positions are given.
struct CoreFacts {
  int first_cpu;
  int numa;
  int socket;
  int uncore;
  const base::CpuSet* cpus;
};

absl::Status AddCores(const CoreGroup& group, int numa, base::CpuSet& seen,
                      std::vector<CoreFacts>& cores) {
  for (const base::CpuSet& cpus : group.cores) {
    if (cpus.empty()) return absl::InvalidArgumentError("a core has no CPUs");
    const int highest = *std::max_element(cpus.begin(), cpus.end());
    if (highest > kMaxCpuId) {
      return absl::InvalidArgumentError(
          fmt::format("CPU {} cannot be: Linux has none above {}", highest, kMaxCpuId));
    }
    if (seen.Intersects(cpus)) {
      return absl::InvalidArgumentError(
          fmt::format("CPUs {} are on two cores", (seen & cpus).ToString()));
    }
    seen |= cpus;
    cores.push_back({cpus.First(), numa, group.socket, group.l3, &cpus});
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<CoreFacts>> ListCores(const NodePlacement& node,
                                                 const Machine& machine) {
  std::vector<CoreFacts> cores;
  base::CpuSet seen;
  for (const NumaNodePlacement& numa : node.numa_nodes) {
    const int position = PositionOf(machine.numa_ids, numa.id);
    for (const CoreGroup& group : numa.core_groups) {
      RETURN_IF_ERROR(AddCores(group, position, seen, cores));
    }
  }
  std::ranges::sort(cores, {}, &CoreFacts::first_cpu);
  return cores;
}

template <class Member>
std::vector<int> Distinct(const std::vector<CoreFacts>& cores, Member member) {
  std::set<int> ids;
  for (const CoreFacts& core : cores) ids.insert(core.*member);
  return {ids.begin(), ids.end()};
}

void PlaceCore(const CoreFacts& facts, int core, int socket, int uncore, CpuTopology& cpu) {
  for (const int id : *facts.cpus) {
    cpu.place[At(id)] = {facts.numa, socket, core, uncore};
    cpu.all.Set(id);
    cpu.in_numa[At(facts.numa)].Set(id);
    cpu.in_socket[At(socket)].Set(id);
    cpu.in_core[At(core)].Set(id);
    cpu.in_uncore[At(uncore)].Set(id);
    ++cpu.cpus;
  }
  cpu.cores_in_numa[At(facts.numa)].push_back(core);
  cpu.cores_in_socket[At(socket)].push_back(core);
  cpu.cores_in_uncore[At(uncore)].push_back(core);
  cpu.nodes_with_cpus |= Mask{1} << facts.numa;
}

CpuTopology BuildCpus(const std::vector<CoreFacts>& cores, int numa_count) {
  CpuTopology cpu;
  for (const CoreFacts& core : cores) {
    for (const int id : *core.cpus) cpu.cpu_slots = std::max(cpu.cpu_slots, id + 1);
  }
  const std::vector<int> sockets = Distinct(cores, &CoreFacts::socket);
  const std::vector<int> uncores = Distinct(cores, &CoreFacts::uncore);
  cpu.place.resize(static_cast<std::size_t>(cpu.cpu_slots));
  cpu.all = Bits(cpu.cpu_slots);
  cpu.in_numa.assign(static_cast<std::size_t>(numa_count), Bits(cpu.cpu_slots));
  cpu.in_socket.assign(sockets.size(), Bits(cpu.cpu_slots));
  cpu.in_core.assign(cores.size(), Bits(cpu.cpu_slots));
  cpu.in_uncore.assign(uncores.size(), Bits(cpu.cpu_slots));
  cpu.cores_in_numa.resize(static_cast<std::size_t>(numa_count));
  cpu.cores_in_socket.resize(sockets.size());
  cpu.cores_in_uncore.resize(uncores.size());
  for (std::size_t core = 0; core < cores.size(); ++core) {
    PlaceCore(cores[core], static_cast<int>(core), PositionOf(sockets, cores[core].socket),
              PositionOf(uncores, cores[core].uncore), cpu);
  }
  const auto share = [&](std::size_t parts) {
    return parts == 0 ? 0 : cpu.cpus / static_cast<int>(parts);
  };
  cpu.cpus_per_core = share(cores.size());
  cpu.cpus_per_socket = share(sockets.size());
  cpu.cpus_per_uncore = share(uncores.size());
  cpu.numa_nodes = std::popcount(cpu.nodes_with_cpus);
  std::vector<std::int64_t> parts;
  for (const Bits& numa : cpu.in_numa) parts.push_back(numa.Count());
  cpu.reach = Reach(std::move(parts));
  return cpu;
}

void ReadReservedCpus(const NodePlacement& node, Machine& machine) {
  machine.reserved_cpus = Bits(machine.cpu.cpu_slots);
  machine.reserved_physical_cpus = Bits(machine.cpu.cpu_slots);
  for (const int id : node.kubelet.reserved_cpus.value_or(base::CpuSet())) {
    if (id >= machine.cpu.cpu_slots || !machine.cpu.all.Test(id)) continue;
    machine.reserved_cpus.Set(id);
    const int core = machine.cpu.place[static_cast<std::size_t>(id)].core;
    machine.reserved_physical_cpus |= machine.cpu.in_core[static_cast<std::size_t>(core)];
  }
}

absl::Status ReadMemory(const NodePlacement& node, Machine& machine) {
  std::set<std::string> types;
  for (const NumaNodePlacement& numa : node.numa_nodes) {
    for (const placement::NodeMemory& memory : numa.memory) types.insert(memory.type);
  }
  machine.memory_types.assign(types.begin(), types.end());
  machine.memory.assign(machine.numa_ids.size(),
                        std::vector<Machine::NodeMemory>(machine.memory_types.size()));
  for (const NumaNodePlacement& numa : node.numa_nodes) {
    auto& row = machine.memory[static_cast<std::size_t>(PositionOf(machine.numa_ids, numa.id))];
    for (const placement::NodeMemory& memory : numa.memory) {
      if (memory.allocatable > kMaxMemory) {
        return absl::InvalidArgumentError(fmt::format("NUMA node {} cannot have {} bytes of {}",
                                                      numa.id, memory.allocatable, memory.type));
      }
      row[static_cast<std::size_t>(machine.MemoryType(memory.type))] = {
          .allocatable = std::max<std::int64_t>(memory.allocatable, 0), .present = true};
    }
    machine.may_limit_hints =
        machine.may_limit_hints || !std::ranges::all_of(row, &Machine::NodeMemory::present);
  }
  for (std::size_t type = 0; type < machine.memory_types.size(); ++type) {
    std::vector<std::int64_t> parts;
    for (const auto& row : machine.memory) parts.push_back(row[type].allocatable);
    machine.memory_reach.emplace_back(std::move(parts));
  }
  return absl::OkStatus();
}

// The devices of one resource, in the plugin's order.
std::vector<const PlacedDevice*> InOrder(std::vector<const PlacedDevice*> devices,
                                         const DeviceOrder& order) {
  const auto wanted = order.find(devices.front()->resource);
  const auto rank = [&](const std::string& id) {
    if (wanted == order.end()) return std::size_t{0};
    return static_cast<std::size_t>(std::ranges::find(wanted->second, id) - wanted->second.begin());
  };
  std::ranges::sort(devices, {}, [&](const PlacedDevice* device) {
    return std::tuple<std::size_t, const base::NumaMask&, const std::string&>(
        rank(device->id), device->numa_nodes, device->id);
  });
  return devices;
}

DeviceResource BuildResource(const std::vector<const PlacedDevice*>& devices, Machine& machine) {
  const int count = static_cast<int>(devices.size());
  DeviceResource resource;
  resource.name = devices.front()->resource;
  resource.without_topology = Bits(count);
  resource.on_node.assign(machine.numa_ids.size(), Bits(count));
  for (int i = 0; i < count; ++i) {
    const PlacedDevice& placed = *devices[At(i)];
    const Device device{.nodes = machine.FromIds(placed.numa_nodes)};
    const bool has_topology = !placed.numa_nodes.empty() || placed.unknown_node;
    resource.aligned = resource.aligned || has_topology;
    resource.nodes |= device.nodes;
    resource.one_node_each = resource.one_node_each && std::popcount(device.nodes) <= 1;
    if (!has_topology) resource.without_topology.Set(i);
    for (Mask rest = device.nodes; rest != 0; rest &= rest - 1) {
      resource.on_node[At(std::countr_zero(rest))].Set(i);
    }
    resource.devices.push_back(device);
  }
  if (resource.nodes == 0) resource.nodes = machine.all_nodes;
  machine.may_limit_hints =
      machine.may_limit_hints || ListsTooManySets(machine.numa_count(), devices.size());
  std::vector<std::int64_t> parts;
  for (const Bits& on : resource.on_node) parts.push_back(on.Count());
  resource.reach = Reach(std::move(parts));
  return resource;
}

absl::StatusOr<DeviceIds> ReadDevices(const NodePlacement& node, const DeviceOrder& order,
                                      Machine& machine) {
  std::map<std::string, std::vector<const PlacedDevice*>> by_name;
  std::set<std::pair<std::string, std::string>> seen;
  for (const PlacedDevice& device : node.devices) {
    if (!seen.insert({device.resource, device.id}).second) {
      return absl::InvalidArgumentError(
          fmt::format("device {} of {} is listed twice", device.id, device.resource));
    }
    by_name[device.resource].push_back(&device);
  }
  DeviceIds ids;
  for (auto& [name, listed] : by_name) {
    const std::vector<const PlacedDevice*> devices = InOrder(std::move(listed), order);
    machine.devices.push_back(BuildResource(devices, machine));
    std::vector<std::string>& own = ids.emplace_back();
    for (const PlacedDevice* device : devices) own.push_back(device->id);
  }
  return ids;
}

}  // namespace

const char* ToString(TopologyPolicy policy) {
  return kTopologyPolicyNames.at(static_cast<std::size_t>(policy));
}

const char* ToString(TopologyScope scope) {
  return kTopologyScopeNames.at(static_cast<std::size_t>(scope));
}

Reach::Reach(std::vector<std::int64_t> parts) : most_(std::move(parts)) {
  std::ranges::sort(most_, std::greater<>());
  std::partial_sum(most_.begin(), most_.end(), most_.begin(), kube::Sum);
}

int Reach::Width(std::int64_t need, int otherwise) const {
  const auto enough = std::ranges::find_if(most_, [&](std::int64_t sum) { return sum >= need; });
  return enough == most_.end() ? otherwise : static_cast<int>(enough - most_.begin()) + 1;
}

base::CpuSet ToCpuSet(const Bits& cpus) {
  base::CpuSet ids;
  cpus.ForEach([&](int id) { ids.Insert(id); });
  return ids;
}

int Machine::MemoryType(const std::string& name) const { return PositionOf(memory_types, name); }

int Machine::FindResource(const std::string& name) const {
  const auto found = std::ranges::lower_bound(devices, name, {}, &DeviceResource::name);
  return found != devices.end() && found->name == name ? static_cast<int>(found - devices.begin())
                                                       : -1;
}

base::NumaMask Machine::ToIds(Mask mask) const {
  base::NumaMask ids;
  for (Mask rest = mask & all_nodes; rest != 0; rest &= rest - 1) {
    ids.Insert(numa_ids[static_cast<std::size_t>(std::countr_zero(rest))]);
  }
  return ids;
}

Mask Machine::FromIds(const base::NumaMask& ids) const {
  Mask mask = 0;
  for (const int id : ids) {
    const int position = PositionOf(numa_ids, id);
    if (position >= 0) mask |= Mask{1} << position;
  }
  return mask;
}

std::shared_ptr<const Machine> Machines::Share(std::shared_ptr<const Machine> machine) {
  for (const std::shared_ptr<const Machine>& kind : kinds_) {
    if (*kind == *machine) return kind;
  }
  return kinds_.emplace_back(std::move(machine));
}

absl::StatusOr<MachineWithIds> BuildMachine(const NodePlacement& node, const DeviceOrder& order,
                                            Grade grade) {
  auto machine = std::make_shared<Machine>();
  machine->grade = grade;
  machine->settings = ReadSettings(node.kubelet);
  RETURN_IF_ERROR(ReadNumaIds(node, *machine));
  ASSIGN_OR_RETURN(const std::vector<CoreFacts> cores, ListCores(node, *machine));
  const bool too_many = machine->numa_count() > kMaxNumaNodes;
  if (!too_many) machine->cpu = BuildCpus(cores, machine->numa_count());
  ReadLimits(node.kubelet, *machine);
  if (too_many) {
    machine->numa_ids.clear();
    return MachineWithIds{std::move(machine), std::make_shared<const DeviceIds>()};
  }
  ReadDistances(node, *machine);
  ReadReservedCpus(node, *machine);
  RETURN_IF_ERROR(ReadMemory(node, *machine));
  ASSIGN_OR_RETURN(DeviceIds ids, ReadDevices(node, order, *machine));
  return MachineWithIds{std::move(machine), std::make_shared<const DeviceIds>(std::move(ids))};
}

}  // namespace scheduler::admission
