#include "scheduler/admission/coarse.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "base/status_macros.h"
#include "base/text.h"

namespace scheduler::admission {
namespace {

using placement::KubeletFacts;
using placement::NodePlacement;
using placement::NodeResourceTopology;
using placement::NrtAttribute;
using placement::NrtResource;
using placement::NrtZone;
using placement::NumaNodePlacement;
using placement::PlacedDevice;

constexpr std::int64_t kMostCpus = 8192;  // as Linux
constexpr std::int64_t kMostDevices = 8192;
constexpr const char* kMaxNumaNodesOption = "max-allowable-numa-nodes";

// What one zone has of one resource: 0 <= available <= allocatable <= capacity.
struct Amounts {
  std::int64_t capacity = 0;
  std::int64_t allocatable = 0;
  std::int64_t available = 0;
  bool operator==(const Amounts&) const = default;
};

// By NUMA node id. A NUMA node that is missing has nothing of the resource.
using AmountsByNode = std::map<int, Amounts>;

std::string AttributeOf(const std::vector<NrtAttribute>& attributes, const char* name) {
  const auto found = std::ranges::find(attributes, name, &NrtAttribute::name);
  return found == attributes.end() ? "" : found->value;
}

// "name=value,name=value"
std::map<std::string, std::string> OptionsIn(std::string_view text) {
  std::map<std::string, std::string> options;
  while (!text.empty()) {
    const std::string_view entry = text.substr(0, text.find(','));
    const std::size_t equals = entry.find('=');
    if (equals != std::string_view::npos) {
      options[std::string(entry.substr(0, equals))] = entry.substr(equals + 1);
    }
    text.remove_prefix(std::min(entry.size() + 1, text.size()));
  }
  return options;
}

template <class Member>
std::int64_t Sum(const AmountsByNode& nodes, Member member) {
  std::int64_t sum = 0;
  for (const auto& [id, amounts] : nodes) {
    sum = kube::Sum(sum, amounts.*member);
  }
  return sum;
}

struct PolicyAndScope {
  std::string policy;
  std::string scope;  // "" if the word does not say
};

// The words of the deprecated topologyPolicies.
PolicyAndScope FromLegacy(const std::string& word) {
  if (word == "None") return {"none", ""};
  const std::pair<std::string_view, const char*> policies[] = {
      {"SingleNUMANode", "single-numa-node"},
      {"Restricted", "restricted"},
      {"BestEffort", "best-effort"}};
  for (const auto& [prefix, policy] : policies) {
    if (!word.starts_with(prefix)) continue;
    const std::string_view level = std::string_view(word).substr(prefix.size());
    if (level == "PodLevel") return {policy, "pod"};
    if (level == "ContainerLevel") return {policy, "container"};
    if (level.empty()) return {policy, ""};
  }
  return {};
}

template <class Names>
bool IsIn(const Names& names, const std::string& word) {
  return std::ranges::find(names, word) != names.end();
}

// Turns one object into a NodePlacement with invented ids, step by step.
class Reading {
 public:
  Reading(const NodeResourceTopology& nrt, const NodeFacts& node) : nrt_(nrt), node_(node) {}

  absl::StatusOr<CoarseState> Run() && {
    RETURN_IF_ERROR(FindZones());
    RETURN_IF_ERROR(ReadPolicy());
    RETURN_IF_ERROR(ReadAmounts());
    ReadManagers();
    RETURN_IF_ERROR(InventCpus());
    AddMemory();
    RETURN_IF_ERROR(InventDevices());
    absl::StatusOr<NodeState> state = StateFrom(placement_, {}, Grade::kCoarse);
    if (!state.ok()) return Error(state.status().code(), std::string(state.status().message()));
    MarkHeldDevices(*state);
    std::ranges::sort(assumptions_);
    return CoarseState{*std::move(state), std::move(assumptions_)};
  }

 private:
  absl::Status Error(absl::StatusCode code, const std::string& why) const {
    return {code, fmt::format("NodeResourceTopology {}: {}", nrt_.name, why)};
  }
  void Assume(const char* code, std::string subject, std::string message) {
    assumptions_.push_back({code, std::move(subject), std::move(message)});
  }

  absl::Status FindZones() {
    for (const NrtZone& zone : nrt_.zones) {
      if (zone.type != placement::kZoneType && zone.type != placement::kZoneTypeAbove63) continue;
      const std::optional<int> id = placement::NumaNodeNamed(zone.name);
      if (!id) {
        Assume("ZoneIgnored", zone.name, "its name is not node-<id>, so it is no NUMA node");
        continue;
      }
      zones_.emplace_back(*id, &zone);
    }
    std::ranges::stable_sort(zones_, {}, &std::pair<int, const NrtZone*>::first);
    if (zones_.empty()) {
      return Error(absl::StatusCode::kNotFound,
                   "no zone of type Node says what its NUMA nodes have");
    }
    for (std::size_t i = 1; i < zones_.size(); ++i) {
      if (zones_[i].first != zones_[i - 1].first) continue;
      return Error(absl::StatusCode::kInvalidArgument,
                   fmt::format("NUMA node {} has two zones", zones_[i].first));
    }
    for (const auto& [id, zone] : zones_) placement_.numa_nodes.push_back(Describe(id, *zone));
    placement_.node_name = nrt_.name;
    return absl::OkStatus();
  }

  static NumaNodePlacement Describe(int id, const NrtZone& zone) {
    NumaNodePlacement numa;
    numa.id = id;
    for (const placement::NrtCost& cost : zone.costs) {
      const std::optional<int> other = placement::NumaNodeNamed(cost.name);
      if (other && std::in_range<int>(cost.value)) {
        numa.distances[*other] = static_cast<int>(cost.value);
      }
    }
    return numa;
  }

  // The attributes, and where they are silent the deprecated field.
  absl::Status ReadPolicy() {
    KubeletFacts& kubelet = placement_.kubelet;
    const PolicyAndScope legacy =
        FromLegacy(nrt_.topology_policies.empty() ? "" : nrt_.topology_policies.front());
    kubelet.topology_policy = AttributeOf(nrt_.attributes, "topologyManagerPolicy");
    if (kubelet.topology_policy.empty()) kubelet.topology_policy = legacy.policy;
    kubelet.topology_scope = AttributeOf(nrt_.attributes, "topologyManagerScope");
    if (kubelet.topology_scope.empty()) kubelet.topology_scope = legacy.scope;
    if (!IsIn(kTopologyPolicyNames, kubelet.topology_policy)) {
      return Error(absl::StatusCode::kNotFound,
                   fmt::format("the topology manager's policy is not known (\"{}\")",
                               kubelet.topology_policy));
    }
    if (kubelet.topology_policy == "none") return absl::OkStatus();
    if (kubelet.topology_scope.empty()) {
      kubelet.topology_scope = "container";
      Assume("TopologyScopeAssumed", "", "scope container, the kubelet's default");
    }
    if (!IsIn(kTopologyScopeNames, kubelet.topology_scope)) {
      return Error(absl::StatusCode::kNotFound,
                   fmt::format("the topology manager's scope is not known (\"{}\")",
                               kubelet.topology_scope));
    }
    ReadTopologyOptions();
    return absl::OkStatus();
  }

  // A kubelet that runs with a policy has been allowed all its NUMA nodes.
  void ReadTopologyOptions() {
    std::map<std::string, std::string>& options = placement_.kubelet.topology_options;
    options = OptionsIn(AttributeOf(nrt_.attributes, "topologyManagerPolicyOptions"));
    const std::string told = AttributeOf(nrt_.attributes, "topologyManagerMaxNUMANodes");
    if (!told.empty()) options[kMaxNumaNodesOption] = told;
    const int zones = static_cast<int>(zones_.size());
    if (zones <= kDefaultMaxNumaNodes) return;
    const int most = base::ParseNumber<int>(options[kMaxNumaNodesOption]).value_or(0);
    options[kMaxNumaNodesOption] = std::to_string(zones);
    if (most >= zones) return;
    Assume("MaxNumaNodesAssumed", "",
           fmt::format("{} NUMA nodes are allowed, as the kubelet runs with them", zones));
  }

  absl::Status ReadAmounts() {
    std::set<std::string> unknown;
    for (const auto& [id, zone] : zones_) {
      for (const NrtResource& resource : zone->resources) {
        const std::optional<Amounts> amounts = Settle(resource, zone->name);
        if (!amounts) {
          unknown.insert(resource.name);
        } else if (!resources_[resource.name].emplace(id, *amounts).second) {
          return Error(absl::StatusCode::kInvalidArgument,
                       fmt::format("zone {} lists {} twice", zone->name, resource.name));
        }
      }
    }
    for (const std::string& name : unknown) {
      resources_.erase(name);
      Assume("ResourceIgnored", name,
             "a zone lists it without any amount, so it is taken as not aligned");
    }
    return absl::OkStatus();
  }

  // What is missing is taken from the others; what contradicts them is corrected so that less is
  // free. Nothing if no amount is known.
  std::optional<Amounts> Settle(const NrtResource& resource, const std::string& zone) {
    const auto& [name, capacity, allocatable, available] = resource;
    if (!capacity && !allocatable && !available) return std::nullopt;
    const Amounts told{
        .capacity = capacity.value_or(std::max(allocatable, available).value_or(0)),
        .allocatable = allocatable.value_or((capacity ? capacity : available).value_or(0)),
        .available = available.value_or((allocatable ? allocatable : capacity).value_or(0))};
    Amounts settled;
    settled.allocatable = std::max<std::int64_t>(told.allocatable, 0);
    settled.capacity = std::max(told.capacity, settled.allocatable);
    settled.available = std::clamp<std::int64_t>(told.available, 0, settled.allocatable);
    const bool all = capacity && allocatable && available;
    if (all && settled == told) return settled;
    Assume(all ? "AmountCorrected" : "AmountAssumed", fmt::format("{} {}", zone, name),
           fmt::format("taken as capacity {}, allocatable {}, available {}", settled.capacity,
                       settled.allocatable, settled.available));
    return settled;
  }

  // A manager is on if its resources are listed and there is something to give: with the CPU
  // manager off, exporters list no CPUs in some zones and none allocatable in the others.
  void ReadManagers() {
    KubeletFacts& kubelet = placement_.kubelet;
    kubelet.version = node_.kubelet_version;
    if (kubelet.version.empty()) Assume("KubeletVersionAssumed", "", "the rules of v1.37");
    kubelet.cpu_policy = AttributeOf(nrt_.attributes, "cpuManagerPolicy");
    kubelet.cpu_options = OptionsIn(AttributeOf(nrt_.attributes, "cpuManagerPolicyOptions"));
    const auto cpu = resources_.find(kube::kCpu);
    const bool cpu_listed = cpu != resources_.end();
    if (kubelet.cpu_policy.empty()) {
      const bool gives = cpu_listed && Sum(cpu->second, &Amounts::allocatable) > 0;
      kubelet.cpu_policy = gives ? "static" : "none";
      Assume(
          "CpuManagerAssumed", "",
          gives ? "static, as the zones have CPUs to give" : "none, as no zone has CPUs to give");
    }
    if (!cpu_listed) kubelet.cpu_policy = "none";
    kubelet.memory_policy = AttributeOf(nrt_.attributes, "memoryManagerPolicy");
    if (kubelet.memory_policy.empty()) {
      const bool gives = GivesMemory();
      kubelet.memory_policy = gives ? "Static" : "None";
      Assume("MemoryManagerAssumed", "",
             gives ? "Static, as the zones have memory to give"
                   : "None, as no zone has memory to give");
    }
    const auto smt = kubelet.cpu_options.find("full-pcpus-only");
    if (smt != kubelet.cpu_options.end() && base::ParseBool(smt->second).value_or(false)) {
      Assume("FullCoresNotChecked", "",
             "full-pcpus-only is set, but threads per core are not told");
    }
  }
  bool GivesMemory() const {
    return std::ranges::any_of(resources_, [](const auto& entry) {
      return kube::IsMemory(entry.first) && Sum(entry.second, &Amounts::allocatable) > 0;
    });
  }

  // CPU ids run through from zone to zone: in each the reserved ones first, the free ones last.
  absl::Status InventCpus() {
    if (placement_.kubelet.cpu_policy != "static") return absl::OkStatus();
    const AmountsByNode& cpus = resources_[kube::kCpu];
    if (Sum(cpus, &Amounts::capacity) > kMostCpus) {
      return Error(absl::StatusCode::kInvalidArgument, fmt::format("more than {} CPUs", kMostCpus));
    }
    base::CpuSet reserved;
    int next = 0;
    for (std::size_t i = 0; i < zones_.size(); ++i) {
      NumaNodePlacement& numa = placement_.numa_nodes[i];
      const auto found = cpus.find(numa.id);
      const Amounts amounts = found == cpus.end() ? Amounts() : found->second;
      placement::CoreGroup group{.socket = SocketOf(i), .l3 = numa.id, .cores = {}};
      numa.free_cpus.emplace();
      for (std::int64_t at = 0; at < amounts.capacity; ++at, ++next) {
        numa.cpus.Insert(next);
        group.cores.push_back({next});
        if (at < amounts.capacity - amounts.allocatable) reserved.Insert(next);
        if (at >= amounts.capacity - amounts.available) numa.free_cpus->Insert(next);
      }
      if (!group.cores.empty()) numa.core_groups.push_back(std::move(group));
    }
    // Zones that say nothing of reserved CPUs do not say that there are none.
    if (!reserved.empty()) placement_.kubelet.reserved_cpus = std::move(reserved);
    return absl::OkStatus();
  }
  int SocketOf(std::size_t zone) const {
    const std::string told = AttributeOf(zones_[zone].second->attributes, "socket");
    return base::ParseNumber<int>(told).value_or(zones_[zone].first);
  }

  void AddMemory() {
    if (placement_.kubelet.memory_policy != "Static") return;
    for (const auto& [name, nodes] : resources_) {
      if (!kube::IsMemory(name)) continue;
      for (NumaNodePlacement& numa : placement_.numa_nodes) {
        const auto found = nodes.find(numa.id);
        if (found == nodes.end()) continue;
        const Amounts& amounts = found->second;
        numa.memory.push_back({.type = name,
                               .capacity = amounts.capacity,
                               .system_reserved = amounts.capacity - amounts.allocatable,
                               .allocatable = amounts.allocatable,
                               .free = amounts.available});
      }
    }
    bool told = true;
    for (std::size_t i = 0; i < zones_.size(); ++i) told = ReadGroup(i) && told;
    if (!told) {
      Assume("MemoryGroupsAssumed", "", "memory that is taken is in blocks on one NUMA node each");
    }
  }
  // Whether the zone says its group. Memory that is taken is in some block, so that the node has
  // assignments; how many does not matter.
  bool ReadGroup(std::size_t zone) {
    NumaNodePlacement& numa = placement_.numa_nodes[zone];
    const std::string text = AttributeOf(zones_[zone].second->attributes, "memoryGroup");
    const absl::StatusOr<base::NumaMask> group = base::NumaMask::Parse(text);
    const bool told = group.ok() && group->Contains(numa.id);
    numa.memory_group = told ? *group : base::NumaMask{numa.id};
    const bool taken = std::ranges::any_of(numa.memory, [](const placement::NodeMemory& memory) {
      return *memory.free < memory.allocatable;
    });
    numa.memory_assignments = taken || numa.memory_group->size() > 1 ? 1 : 0;
    return told;
  }

  // In each zone the devices that are held come first, the unhealthy ones last.
  absl::Status InventDevices() {
    std::int64_t all = 0;
    for (const auto& [name, nodes] : resources_) {
      if (!kube::MayBeDevice(name)) continue;
      const std::int64_t elsewhere = DevicesElsewhere(name, nodes);
      all = kube::Sum(all, kube::Sum(Sum(nodes, &Amounts::capacity), elsewhere));
      if (all > kMostDevices) {
        return Error(absl::StatusCode::kInvalidArgument,
                     fmt::format("more than {} devices", kMostDevices));
      }
      for (const auto& [id, amounts] : nodes) {
        for (std::int64_t at = 0; at < amounts.capacity; ++at) {
          AddDevice(name, fmt::format("{:02}-{:04}", id, at), {id}, at < amounts.allocatable);
        }
      }
      for (std::int64_t at = 0; at < elsewhere; ++at) {
        AddDevice(name, fmt::format("no-{:04}", at), {}, true);
      }
    }
    return absl::OkStatus();
  }
  void AddDevice(const std::string& resource, std::string id, base::NumaMask nodes, bool healthy) {
    PlacedDevice device;
    device.resource = resource;
    device.id = std::move(id);
    device.numa_nodes = std::move(nodes);
    device.healthy = healthy;
    placement_.devices.push_back(std::move(device));
  }
  // Devices that the Node has and no zone: they have no NUMA node.
  std::int64_t DevicesElsewhere(const std::string& name, const AmountsByNode& nodes) {
    if (!node_.allocatable || !node_.allocatable->contains(name)) return 0;
    const std::int64_t total = node_.allocatable->at(name);
    const std::int64_t here = Sum(nodes, &Amounts::allocatable);
    if (total > here) {
      Assume("DevicesWithoutNumaNode", name,
             fmt::format("the Node has {}, its zones {}: the others have no NUMA node and are free",
                         total, here));
      return total - here;
    }
    if (total < here) {
      Assume(
          "DevicesCountedTwice", name,
          fmt::format("the zones have {}, the Node only {}: some may be on several NUMA nodes, or "
                      "have failed",
                      here, total));
    }
    return 0;
  }

  void MarkHeldDevices(NodeState& state) const {
    const Machine& machine = *state.machine;
    for (std::size_t resource = 0; resource < machine.devices.size(); ++resource) {
      const DeviceResource& facts = machine.devices[resource];
      for (const auto& [id, amounts] : resources_.at(facts.name)) {
        const Mask node = machine.FromIds({id});
        std::int64_t held = amounts.allocatable - amounts.available;
        for (std::size_t device = 0; device < facts.devices.size() && held > 0; ++device) {
          if (facts.devices[device].nodes != node) continue;
          state.pool.devices[resource].allocated.Set(static_cast<int>(device));
          --held;
        }
      }
    }
  }

  const NodeResourceTopology& nrt_;
  const NodeFacts& node_;
  std::vector<std::pair<int, const NrtZone*>> zones_;  // ascending by NUMA node id
  std::map<std::string, AmountsByNode> resources_;
  NodePlacement placement_;
  base::Diagnostics assumptions_;
};

}  // namespace

absl::StatusOr<CoarseState> CoarseStateFrom(const NodeResourceTopology& nrt,
                                            const NodeFacts& node) {
  return Reading(nrt, node).Run();
}

}  // namespace scheduler::admission
