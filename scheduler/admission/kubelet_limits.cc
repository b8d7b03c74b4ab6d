#include "scheduler/admission/kubelet_limits.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/text.h"
#include "scheduler/admission/release.h"
#include "scheduler/admission/topology_manager.h"

namespace scheduler::admission {
namespace {

using placement::KubeletFacts;
using Options = std::map<std::string, std::string>;

struct Refusal {
  Limit limit = Limit::kNone;
  std::string what;
};

Refusal NotAmong(const std::string& name, const std::string& value,
                 std::span<const char* const> known) {
  if (value.empty() || std::ranges::find(known, value) != known.end()) return {};
  return {Limit::kUnknownPolicy, fmt::format("{} \"{}\"", name, value)};
}

// validation.go, and the managers' own switches.
Refusal UnknownPolicy(const KubeletFacts& kubelet) {
  static constexpr std::array kCpuPolicies = {"none", "static"};
  static constexpr std::array kMemoryPolicies = {"None", "Static"};
  for (Refusal refusal : {
           NotAmong("topology manager policy", kubelet.topology_policy, kTopologyPolicyNames),
           NotAmong("topology manager scope", kubelet.topology_scope, kTopologyScopeNames),
           NotAmong("CPU manager policy", kubelet.cpu_policy, kCpuPolicies),
           NotAmong("memory manager policy", kubelet.memory_policy, kMemoryPolicies),
       }) {
    if (refusal.limit != Limit::kNone) return refusal;
  }
  return {};
}

// topologymanager/policy_options.go. Policy none never looks at them.
Refusal TopologyOptions(const Options& options) {
  for (const auto& [name, value] : options) {
    const bool good =
        name == "prefer-closest-numa-nodes"
            ? base::ParseBool(value).has_value()
            : name == "max-allowable-numa-nodes" &&
                  base::ParseNumber<std::int64_t>(value).value_or(0) >= kDefaultMaxNumaNodes;
    if (!good) {
      return {Limit::kTopologyOptions, fmt::format("topology manager option {}={}", name, value)};
    }
  }
  return {};
}

// Whether a gate that guards an option is known to be off.
bool IsOff(const KubeletFacts& kubelet, const std::string& gate) {
  const auto found = kubelet.feature_gates.find(gate);
  return found != kubelet.feature_gates.end() && base::ParseBool(found->second) == false;
}

Refusal OneCpuOption(const KubeletFacts& kubelet, int minor, const std::string& name,
                     const std::string& value) {
  const bool alpha = name == "align-by-socket" || name == "distribute-cpus-across-cores";
  const bool uncore = name == "prefer-align-cpus-by-uncorecache";
  const bool beta = name == "distribute-cpus-across-numa" || (uncore && minor > 0 && minor < 36);
  const bool known =
      alpha || beta || uncore || name == "full-pcpus-only" || name == "strict-cpu-reservation";
  if (!known || !base::ParseBool(value)) {
    return {Limit::kCpuOptions, fmt::format("CPU manager option {}={}", name, value)};
  }
  const std::string gate = alpha ? "CPUManagerPolicyAlphaOptions" : "CPUManagerPolicyBetaOptions";
  if ((alpha || beta) && IsOff(kubelet, gate)) {
    return {Limit::kCpuOptions, fmt::format("CPU manager option {} while {} is off", name, gate)};
  }
  return {};
}

// NewStaticPolicyOptions and ValidateStaticPolicyOptions; NewNonePolicy takes no options.
Refusal CpuOptions(const KubeletFacts& kubelet, const Machine& machine, int sockets) {
  const Settings& settings = machine.settings;
  const Options& options = kubelet.cpu_options;
  if (kubelet.cpu_policy == "none" && !options.empty()) {
    return {Limit::kCpuOptions,
            fmt::format("CPU manager option {} and policy none", options.begin()->first)};
  }
  if (!settings.cpu_static) return {};
  for (const auto& [name, value] : options) {
    Refusal refusal = OneCpuOption(kubelet, settings.minor_version, name, value);
    if (refusal.limit != Limit::kNone) return refusal;
  }
  const auto together = [](const char* one, const char* other) {
    return Refusal{Limit::kCpuOptions,
                   fmt::format("CPU manager options {} and {} together", one, other)};
  };
  if (settings.distribute_cpus_across_cores) {
    const char* across_cores = "distribute-cpus-across-cores";
    if (settings.full_pcpus_only) return together("full-pcpus-only", across_cores);
    if (settings.distribute_cpus_across_numa) {
      return together("distribute-cpus-across-numa", across_cores);
    }
    if (settings.prefer_align_cpus_by_uncorecache) {
      return together("prefer-align-cpus-by-uncorecache", across_cores);
    }
  }
  if (settings.prefer_align_cpus_by_uncorecache && settings.distribute_cpus_across_numa) {
    return together("prefer-align-cpus-by-uncorecache", "distribute-cpus-across-numa");
  }
  if (!settings.align_by_socket) return {};
  if (settings.topology_policy == TopologyPolicy::kSingleNumaNode) {
    return {Limit::kCpuOptions, "CPU manager option align-by-socket and policy single-numa-node"};
  }
  if (sockets > machine.cpu.numa_nodes) {
    return {Limit::kCpuOptions,
            "CPU manager option align-by-socket and more sockets than NUMA nodes"};
  }
  return {};
}

// getTotalMemoryTypeReserved and NewPolicyStatic.
Refusal ReservedMemory(const KubeletFacts& kubelet, const Machine& machine) {
  if (!machine.settings.memory_static) return {};
  if (kubelet.config_source != "configz" && kubelet.config_source != "file") return {};
  bool any = false;
  for (const KubeletFacts::ReservedMemory& reserved : kubelet.reserved_memory) {
    if (!std::ranges::binary_search(machine.numa_ids, reserved.numa_node)) {
      return {
          Limit::kReservedMemory,
          fmt::format("memory reserved on NUMA node {}, which is not there", reserved.numa_node)};
    }
    any = any || (reserved.type == kube::kMemory && reserved.bytes > 0);
  }
  if (any) return {};
  return {Limit::kReservedMemory, "memory policy Static and no reserved memory"};
}

// In the order of container_manager_linux.go: topology, CPU, memory manager.
Refusal StartUpRefusal(const KubeletFacts& kubelet, const Machine& machine) {
  Refusal refusal = UnknownPolicy(kubelet);
  const Settings& settings = machine.settings;
  if (refusal.limit == Limit::kNone && settings.topology_policy != TopologyPolicy::kNone) {
    refusal = TopologyOptions(kubelet.topology_options);
    if (refusal.limit == Limit::kNone && machine.numa_count() > settings.max_allowable_numa_nodes) {
      refusal = {Limit::kTooManyNumaNodes,
                 fmt::format("more than {} NUMA nodes and policy {}",
                             settings.max_allowable_numa_nodes, kubelet.topology_policy)};
    }
  }
  if (refusal.limit == Limit::kNone) refusal = CpuOptions(kubelet, machine, machine.cpu.sockets());
  if (refusal.limit == Limit::kNone && settings.cpu_static && kubelet.reserved_cpus &&
      kubelet.reserved_cpus->empty()) {
    refusal = {Limit::kNoReservedCpus, "CPU policy static and no reserved CPUs"};
  }
  if (refusal.limit == Limit::kNone) refusal = ReservedMemory(kubelet, machine);
  return refusal;
}

bool AsksForMemory(const Request& request) {
  return std::ranges::any_of(request.containers, [](const ContainerDemand& container) {
    return !container.demand.memory.empty();
  });
}

// A table that is missing is a nil pointer. One of "memory" the kubelet always has, and a node of
// which no table was told is unknown.
bool LacksTable(const Machine& machine, int node, const Wants& wants) {
  if (machine.grade == Grade::kCoarse) return false;  // its tables are invented
  const std::vector<Machine::NodeMemory>& tables = machine.memory[At(node)];
  if (std::ranges::none_of(tables, &Machine::NodeMemory::present)) return false;
  return wants.unknown_memory || std::ranges::any_of(wants.memory, [&](const auto& want) {
           return !tables[At(want.first)].present &&
                  machine.memory_types[At(want.first)] != kube::kMemory;
         });
}

bool AnyLacks(const Machine& machine, const Wants& wants, Mask nodes) {
  for (Mask rest = nodes; rest != 0; rest &= rest - 1) {
    if (LacksTable(machine, std::countr_zero(rest), wants)) return true;
  }
  return false;
}

// calculateHints: every set of NUMA nodes, and in each the tables of every type that is asked for.
Limit MemoryHintLimit(const Machine& machine, const Wants& wants) {
  if (wants.memory.empty() && !wants.unknown_memory) return Limit::kNone;
  if (AnyLacks(machine, wants, machine.all_nodes)) return Limit::kMissingHugePages;
  if (machine.numa_ids.back() > kMaxNumaId) return Limit::kNumaIdAbove63;
  return machine.numa_count() > kMaxListedNodes ? Limit::kTooManyMasks : Limit::kNone;
}

// A hint as the merge has it; mask 0 is "any".
struct Hint {
  Mask mask = 0;
  bool preferred = false;
  bool operator==(const Hint&) const = default;
};
using HintList = std::vector<Hint>;

// All feasible masks in the order of IterateBitMasks: by size, then by members.
HintList List(const Opinion& opinion) {
  if (opinion.kind == Opinion::Kind::kNoPreference) return {{0, true}};
  if (opinion.kind == Opinion::Kind::kImpossible) return {{0, false}};
  HintList list;
  const Mask nodes = opinion.hints->nodes();
  for (Mask mask = nodes; mask != 0; mask = (mask - 1) & nodes) {
    if (opinion.hints->Feasible(mask)) list.push_back({mask, opinion.hints->Preferred(mask)});
  }
  // {0,3} comes before {1,2}: the lower first difference is first.
  std::ranges::sort(list, [](const Hint& a, const Hint& b) {
    const int size_a = std::popcount(a.mask);
    const int size_b = std::popcount(b.mask);
    if (size_a != size_b) return size_a < size_b;
    const Mask difference = a.mask ^ b.mask;
    return (a.mask & (difference & (~difference + 1))) != 0;
  });
  return list;
}

// The merge's current hint while no preferred one was met: HintMerger.compare.
class Current {
 public:
  Current(const Machine& machine, int target) : machine_(machine), target_(target) {}

  // Goes on with a candidate that is not preferred; false if the comparison crashes.
  bool Meet(Mask candidate) {
    if (mask_ == 0) {
      mask_ = candidate;
      return true;
    }
    const int own = std::popcount(mask_);
    const int other = std::popcount(candidate);
    if (candidate == mask_) return true;
    if (own == other) {
      if (((mask_ | candidate) & machine_.beyond_distances) != 0) return false;
      if (Fitter(machine_, candidate, mask_)) mask_ = candidate;
      return true;
    }
    // Case 1: too wide, the narrower wins. Otherwise wider ones win up to the target.
    if (own > target_ ? other < own : other > own && other <= target_) mask_ = candidate;
    return true;
  }

 private:
  const Machine& machine_;
  int target_;
  Mask mask_ = 0;
};

// Goes through all combinations up to the first preferred one; false if a comparison crashes.
bool SurvivesUntilPreferred(const Machine& machine, const std::vector<const HintList*>& lists) {
  int target = 0;
  for (const HintList* list : lists) target = std::max(target, std::popcount(list->front().mask));
  Current current(machine, target);
  std::vector<std::size_t> at(lists.size(), 0);
  for (bool more = true; more;) {
    Mask mask = machine.all_nodes;
    Mask first = 0;
    bool preferred = true;
    for (std::size_t i = 0; i < lists.size(); ++i) {
      const Hint& hint = (*lists[i])[at[i]];
      preferred = preferred && hint.preferred;
      if (hint.mask == 0) continue;
      if (first == 0) first = hint.mask;
      preferred = preferred && hint.mask == first;
      mask &= hint.mask;
    }
    if (mask != 0 && preferred) return true;
    if (mask != 0 && !current.Meet(mask)) return false;
    more = false;
    for (std::size_t i = lists.size(); i-- > 0 && !more;) {
      more = ++at[i] < lists[i]->size();
      if (!more) at[i] = 0;
    }
  }
  return true;
}

bool Prefers(const Opinion& opinion, Mask mask) {
  if (opinion.kind != Opinion::Kind::kHints) return opinion.kind == Opinion::Kind::kNoPreference;
  const Hints& hints = *opinion.hints;
  return (mask & ~hints.nodes()) == 0 && hints.Preferred(mask) && hints.Feasible(mask);
}

// Whether the narrowest masks that all prefer are several, and one of them cannot be measured.
bool PreferredCrash(const Machine& machine, const Opinions& opinions,
                    const std::vector<HintList>& lists) {
  std::vector<Mask> common;
  int narrowest = 0;
  const auto masks =
      std::ranges::find_if(lists, [](const HintList& list) { return list.front().mask != 0; });
  if (masks == lists.end()) return false;
  for (const Hint& hint : *masks) {
    const bool by_all = std::ranges::all_of(
        opinions, [&](const Opinion& opinion) { return Prefers(opinion, hint.mask); });
    if (!by_all) continue;
    if (common.empty()) narrowest = std::popcount(hint.mask);
    if (std::popcount(hint.mask) == narrowest) common.push_back(hint.mask);
  }
  return common.size() > 1 && std::ranges::any_of(common, [&](Mask mask) {
           return (mask & machine.beyond_distances) != 0;
         });
}

constexpr std::size_t kMostCombinations = 65536;
constexpr std::size_t kMostInAllOrders = std::size_t{1} << 20;
constexpr std::size_t kMostOrderedDevices = 6;  // 720 orders

// The lists in an order to begin with: each by its number, devices of equal lists by that of the
// first of them, since it does not matter which of them comes first.
std::vector<std::size_t> FirstOrder(const std::vector<HintList>& lists, std::size_t devices) {
  std::vector<std::size_t> order(lists.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    const auto equal = std::ranges::find(lists, lists[i]);
    order[i] = i < devices ? static_cast<std::size_t>(equal - lists.begin()) : i;
  }
  std::sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(devices));
  return order;
}

bool TooManyCombinations(const std::vector<HintList>& lists, const std::vector<std::size_t>& order,
                         std::size_t devices) {
  std::size_t orders = 1;  // n! by the factorials of how many are equal
  std::size_t equal = 1;
  for (std::size_t i = 1; i < devices; ++i) {
    equal = order[i] == order[i - 1] ? equal + 1 : 1;
    orders = orders * (i + 1) / equal;
  }
  std::size_t count = 1;
  for (const HintList& list : lists) count = std::min(count * list.size(), kMostCombinations + 1);
  return count > kMostCombinations || count * orders > kMostInAllOrders;
}

}  // namespace

const char* ToString(Limit limit) {
  static constexpr std::array<const char*, 13> kNames = {"",
                                                         "UnknownPolicy",
                                                         "TooManyNumaNodes",
                                                         "TopologyOptions",
                                                         "CpuOptions",
                                                         "NoReservedCpus",
                                                         "ReservedMemory",
                                                         "MoreThan64NumaNodes",
                                                         "TooManyMasks",
                                                         "NumaIdAbove63",
                                                         "Distances",
                                                         "EndlessSearch",
                                                         "MissingHugePages"};
  return kNames.at(static_cast<std::size_t>(limit));
}

bool ListsTooManySets(int nodes, std::size_t devices) {
  return nodes > kMaxListedNodes || std::cmp_greater(devices, kMaxDeviceLooks >> nodes);
}

std::string LimitSentence(const Machine& machine, Limit limit) {
  switch (limit) {
    case Limit::kNone:
      return "the kubelet can answer";
    case Limit::kUnknownPolicy:
    case Limit::kTooManyNumaNodes:
    case Limit::kTopologyOptions:
    case Limit::kCpuOptions:
    case Limit::kNoReservedCpus:
    case Limit::kReservedMemory:
      return "the kubelet would not start with " + machine.refused;
    case Limit::kMoreThan64NumaNodes:
      return "more than 64 NUMA nodes cannot be predicted";
    case Limit::kNumaIdAbove63:
      return "the kubelet would crash: it has a NUMA node with an id above 63";
    case Limit::kTooManyMasks:
      return "the kubelet would hang: it would list all sets of too many NUMA nodes";
    case Limit::kDistances:
      return "the kubelet would crash: prefer-closest-numa-nodes fails on NUMA ids with gaps";
    case Limit::kEndlessSearch:
      return "the kubelet would hang: distribute-cpus-across-numa would search too long";
    case Limit::kMissingHugePages:
      return "the kubelet would crash: a NUMA node has no huge pages of the size asked for";
  }
  return "";
}

void ReadLimits(const KubeletFacts& kubelet, Machine& machine) {
  Refusal refusal = StartUpRefusal(kubelet, machine);
  machine.limit = refusal.limit;
  machine.may_limit_hints =
      machine.numa_count() > kMaxListedNodes || machine.numa_ids.back() > kMaxNumaId;
  machine.refused = std::move(refusal.what);
  if (machine.limit != Limit::kNone) return;
  // The merge starts with the mask of all nodes, whatever the pod asks for.
  if (machine.numa_ids.back() > kMaxNumaId &&
      machine.settings.topology_policy != TopologyPolicy::kNone) {
    machine.limit = Limit::kNumaIdAbove63;
  } else if (machine.numa_count() > kMaxNumaNodes) {
    machine.limit = Limit::kMoreThan64NumaNodes;
  }
}

Limit FindLimit(const Machine& machine, const Request& request) {
  // With policy none only the memory manager makes masks.
  const bool masks_of_memory = machine.limit == Limit::kMoreThan64NumaNodes &&
                               machine.settings.memory_static && AsksForMemory(request);
  return masks_of_memory ? Limit::kNumaIdAbove63 : machine.limit;
}

Limit FindHintLimit(const Machine& machine, const Pool& pool, const Wants& wants) {
  if (!machine.may_limit_hints && !wants.unknown_memory) return Limit::kNone;
  for (const auto& [resource, count] : wants.devices) {
    const DeviceResource& facts = machine.devices[At(resource)];
    const Pool::Devices& devices = pool.devices[At(resource)];
    const Mask nodes = DeviceHintsUseOnlyHostNodes(machine.settings.minor_version)
                           ? facts.nodes
                           : machine.all_nodes;
    if (facts.aligned && ListsTooManySets(std::popcount(nodes), facts.devices.size()) &&
        (devices.healthy - devices.allocated).Count() >= count) {
      return Limit::kTooManyMasks;
    }
  }
  if (wants.cpus > 0 && machine.cpu.numa_nodes > kMaxListedNodes) return Limit::kTooManyMasks;
  return MemoryHintLimit(machine, wants);
}

Limit FindMemoryLimit(const Machine& machine, const Pool& pool, const Wants& wants, Mask affinity) {
  if (!machine.may_limit_hints && !wants.unknown_memory) return Limit::kNone;
  if (affinity == 0) return MemoryHintLimit(machine, wants);
  if (AnyLacks(machine, wants, affinity)) return Limit::kMissingHugePages;
  return Satisfies(pool, affinity, wants.memory) ? Limit::kNone : MemoryHintLimit(machine, wants);
}

Limit FindDistanceLimit(const Machine& machine, const Opinions& opinions, std::size_t devices) {
  if (machine.beyond_distances == 0 || !machine.settings.prefer_closest_numa_nodes ||
      machine.settings.topology_policy == TopologyPolicy::kSingleNumaNode) {
    return Limit::kNone;
  }
  if (machine.numa_count() > kMaxEnumeratedNodes || devices > kMostOrderedDevices) {
    return Limit::kDistances;
  }
  std::vector<HintList> lists;
  lists.reserve(opinions.size());
  for (const Opinion& opinion : opinions) lists.push_back(List(opinion));
  if (lists.empty()) return Limit::kNone;
  std::vector<std::size_t> order = FirstOrder(lists, devices);
  if (TooManyCombinations(lists, order, devices) || PreferredCrash(machine, opinions, lists)) {
    return Limit::kDistances;
  }
  const auto last_device = order.begin() + static_cast<std::ptrdiff_t>(devices);
  do {
    std::vector<const HintList*> ordered;
    ordered.reserve(lists.size());
    for (const std::size_t i : order) ordered.push_back(&lists[i]);
    if (!SurvivesUntilPreferred(machine, ordered)) return Limit::kDistances;
  } while (std::next_permutation(order.begin(), last_device));
  return Limit::kNone;
}

}  // namespace scheduler::admission
