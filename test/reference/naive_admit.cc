#include "test/reference/naive_admit.h"

#include <algorithm>
#include <iterator>
#include <tuple>

// Each part says which file of the kubelet it follows; they lie below pkg/kubelet/cm.
namespace reference {
namespace {

using Strings = std::set<std::string>;

bool IsHuge(const std::string& name) { return name.starts_with("hugepages-"); }

std::vector<Ids> AllSubsets(const std::vector<int>& nodes) {
  std::vector<Ids> subsets;
  for (unsigned bits = 1; bits < (1U << nodes.size()); ++bits) {
    Ids subset;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      if (((bits >> i) & 1U) != 0) subset.insert(nodes[i]);
    }
    subsets.push_back(subset);
  }
  return subsets;
}

bool AnyOf(const Ids& mask, const std::optional<Ids>& nodes) {
  return nodes && !Common(mask, *nodes).empty();
}

// bitmask.IsNarrowerThan: fewer nodes, then the smaller number.
bool Narrower(const Ids& a, const Ids& b) {
  if (a.size() != b.size()) return a.size() < b.size();
  return std::lexicographical_compare(a.rbegin(), a.rend(), b.rbegin(), b.rend());
}

Strings Minus(const Strings& a, const Strings& b) {
  Strings rest;
  std::set_difference(a.begin(), a.end(), b.begin(), b.end(), std::inserter(rest, rest.end()));
  return rest;
}

int Size(const Ids& ids) { return static_cast<int>(ids.size()); }

}  // namespace

template <class Map, class Visit>
void NaiveKubelet::ForEach(const Map& map, Visit visit) const {
  if (order_ == MapOrder::kAscending) {
    for (auto entry = map.begin(); entry != map.end(); ++entry) visit(*entry);
  } else {
    for (auto entry = map.rbegin(); entry != map.rend(); ++entry) visit(*entry);
  }
}

bool NaiveKubelet::Option(const std::map<std::string, std::string>& options,
                          const std::string& name) const {
  const auto found = options.find(name);
  return found != options.end() && found->second == "true";
}

NaiveKubelet::NaiveKubelet(const placement::NodePlacement& node,
                           const std::map<std::string, std::vector<std::string>>& plugin_order,
                           MapOrder order)
    : kubelet_(node.kubelet), order_(order) {
  Ids ids;
  for (const placement::NumaNodePlacement& numa : node.numa_nodes) ids.insert(numa.id);
  numa_.assign(ids.begin(), ids.end());
  ReadTopologyManager(node);
  for (const placement::NumaNodePlacement& numa : node.numa_nodes) ReadNumaNode(numa);
  ReadCpuManager();
  ReadDevices(node);
  Prefer(plugin_order);
}

void NaiveKubelet::ReadTopologyManager(const placement::NodePlacement& node) {
  merge_machine_.numa_ids = numa_;
  merge_machine_.all_nodes = (1U << numa_.size()) - 1;
  merge_machine_.settings.prefer_closest_numa_nodes =
      Option(kubelet_.topology_options, "prefer-closest-numa-nodes");
  using scheduler::admission::TopologyPolicy;
  const std::map<std::string, TopologyPolicy> policies = {
      {"best-effort", TopologyPolicy::kBestEffort},
      {"restricted", TopologyPolicy::kRestricted},
      {"single-numa-node", TopologyPolicy::kSingleNumaNode}};
  const auto policy = policies.find(kubelet_.topology_policy);
  merge_machine_.settings.topology_policy =
      policy == policies.end() ? TopologyPolicy::kNone : policy->second;
  for (const int from : numa_) {
    std::vector<double>& row = merge_machine_.distances.emplace_back();
    for (const placement::NumaNodePlacement& numa : node.numa_nodes) {
      if (numa.id != from) continue;
      for (const int to : numa_)
        row.push_back(numa.distances.contains(to) ? numa.distances.at(to) : 0);
    }
  }
}

void NaiveKubelet::ReadNumaNode(const placement::NumaNodePlacement& numa) {
  for (const placement::CoreGroup& group : numa.core_groups) {
    for (const base::CpuSet& core : group.cores) {
      for (const int id : core) {
        cpus_.cpus[id] = {numa.id, group.socket, core.First(), group.l3};
      }
    }
  }
  NaiveMemory& memory = memory_[numa.id];
  memory.cells = {numa.id};
  for (const placement::NodeMemory& table : numa.memory) {
    memory.tables[table.type] = {table.allocatable, 0, table.allocatable};
  }
}

void NaiveKubelet::ReadCpuManager() {
  cpus_.full_pcpus_only = Option(kubelet_.cpu_options, "full-pcpus-only");
  cpus_.distribute_across_numa = Option(kubelet_.cpu_options, "distribute-cpus-across-numa");
  cpus_.distribute_across_cores = Option(kubelet_.cpu_options, "distribute-cpus-across-cores");
  cpus_.align_by_socket = Option(kubelet_.cpu_options, "align-by-socket");
  cpus_.by_uncore_cache = Option(kubelet_.cpu_options, "prefer-align-cpus-by-uncorecache");
  if (kubelet_.reserved_cpus) {
    for (const int id : *kubelet_.reserved_cpus) reserved_.insert(id);
  }
  for (const auto& [id, cpu] : cpus_.cpus) {
    if (!reserved_.contains(id)) shared_.insert(id);
  }
}

void NaiveKubelet::ReadDevices(const placement::NodePlacement& node) {
  for (const placement::PlacedDevice& device : node.devices) {
    std::optional<Ids> nodes;
    if (!device.numa_nodes.empty() || device.unknown_node) nodes.emplace();
    for (const int id : device.numa_nodes) nodes->insert(id);
    devices_[device.resource].push_back({device.id, nodes, device.healthy});
  }
}

void NaiveKubelet::Prefer(const std::map<std::string, std::vector<std::string>>& plugin_order) {
  for (auto& [resource, devices] : devices_) {
    const auto wanted = plugin_order.find(resource);
    const auto rank = [&](const Device& device) {
      if (wanted == plugin_order.end()) return std::ptrdiff_t{0};
      return std::find(wanted->second.begin(), wanted->second.end(), device.id) -
             wanted->second.begin();
    };
    std::sort(devices.begin(), devices.end(), [&](const Device& a, const Device& b) {
      return std::tuple(rank(a), a.nodes.value_or(Ids()), a.id) <
             std::tuple(rank(b), b.nodes.value_or(Ids()), b.id);
    });
  }
}

// ---- What is asked for: cpumanager/policy_static.go, memorymanager/policy_static.go,
// devicemanager/topology_hints.go

NaiveKubelet::Wish NaiveKubelet::WishOf(const kube::Pod& pod,
                                        const kube::Container& container) const {
  Wish wish;
  if (pod.qos == kube::Qos::kGuaranteed && !kube::HasPodLevelResources(pod)) {
    const auto cpu = container.requests.find("cpu");
    if (cpu != container.requests.end() && cpu->second % 1000 == 0) wish.cpus = cpu->second / 1000;
    for (const auto& [name, amount] : container.requests) {
      if (name == "memory" || IsHuge(name)) wish.memory[name] = amount;
    }
  }
  if (kubelet_.cpu_policy != "static") wish.cpus = 0;
  if (kubelet_.memory_policy != "Static") wish.memory.clear();
  for (const auto& [name, amount] : container.limits) {
    if (devices_.contains(name)) wish.devices[name] = amount;
  }
  return wish;
}

NaiveKubelet::Wish NaiveKubelet::WishOfPod(const kube::Pod& pod) const {
  Wish sidecars;
  Wish start;  // the most that is needed while init containers run
  const auto add = [](Wish& sum, const Wish& more) {
    sum.cpus += more.cpus;
    for (const auto& [name, amount] : more.memory) sum.memory[name] += amount;
    for (const auto& [name, amount] : more.devices) sum.devices[name] += amount;
  };
  const auto raise = [](Wish& most, const Wish& other) {
    most.cpus = std::max(most.cpus, other.cpus);
    for (const auto& [name, n] : other.memory) most.memory[name] = std::max(most.memory[name], n);
    for (const auto& [name, n] : other.devices) {
      most.devices[name] = std::max(most.devices[name], n);
    }
  };
  for (const kube::Container& container : pod.init_containers) {
    Wish running = sidecars;
    add(running, WishOf(pod, container));
    if (container.sidecar) sidecars = running;
    raise(start, running);
  }
  Wish total;
  for (const kube::Container& container : pod.containers) add(total, WishOf(pod, container));
  const std::map<std::string, std::int64_t> app_memory = total.memory;
  add(total, sidecars);
  raise(total, start);
  // getPodRequestedResources: only the types that app containers ask for.
  std::erase_if(total.memory, [&](const auto& entry) { return !app_memory.contains(entry.first); });
  return total;
}

// ---- Scopes: topologymanager/scope_container.go, scope_pod.go, scope_none.go

NaiveVerdict NaiveKubelet::Add(const kube::Pod& pod) {
  Admission admission;
  for (const kube::Container& container : pod.init_containers) {
    admission.items.push_back({&container, true});
  }
  for (const kube::Container& container : pod.containers) {
    admission.items.push_back({&container, false});
  }
  // A request for a type of memory that a NUMA node has no table of ends the kubelet.
  for (const Item& item : admission.items) {
    for (const auto& [type, bytes] : WishOf(pod, *item.container).memory) {
      for (const auto& [id, node] : memory_) {
        if (!node.tables.contains(type)) admission.verdict.cannot = true;
      }
    }
  }
  if (admission.verdict.cannot) return admission.verdict;
  const bool admitted = Run(pod, admission);
  NaiveVerdict& verdict = admission.verdict;
  if (verdict.cannot) return verdict;
  if (!admitted) {
    // removeStaleState and UpdateAllocatedDevices, at the next admission.
    Release(verdict.containers);
    verdict.containers.clear();
    verdict.affinity = admission.hint.affinity;
    verdict.preferred = admission.hint.preferred;
    return verdict;
  }
  pods_[pod.uid] = verdict.containers;
  return verdict;
}

bool NaiveKubelet::Run(const kube::Pod& pod, Admission& admission) {
  const bool none =
      merge_machine_.settings.topology_policy == scheduler::admission::TopologyPolicy::kNone;
  const bool pod_scope = !none && kubelet_.topology_scope == "pod";
  if (pod_scope && !Align(WishOfPod(pod), admission)) return false;
  for (const Item& item : admission.items) {
    const Wish wish = WishOf(pod, *item.container);
    if (!none && !pod_scope && !Align(wish, admission)) return false;
    if (!Allocate(wish, item, admission)) return false;
  }
  return true;
}

bool NaiveKubelet::Align(const Wish& wish, Admission& admission) const {
  admission.hint = Merge(
      {DeviceHints(wish, admission), CpuHints(wish, admission), MemoryHints(wish, admission)});
  if (!admission.hint.admitted) admission.verdict.reason = "TopologyAffinityError";
  return admission.hint.admitted;
}

bool NaiveKubelet::Allocate(const Wish& wish, const Item& item, Admission& admission) {
  NaiveContainer own;
  own.name = item.container->name;
  own.affinity = admission.hint.affinity;
  own.preferred = admission.hint.preferred;
  const bool allocated = AllocateDevices(wish, item, admission, own) &&
                         AllocateCpus(wish, item, admission, own) &&
                         AllocateMemory(wish, item, admission, own);
  if (!allocated && admission.verdict.reason.empty()) {
    admission.verdict.reason = "UnexpectedAdmissionError";
  }
  if (allocated) ShrinkInitBlocks(item, own, admission);
  admission.verdict.containers.push_back(std::move(own));
  return allocated;
}

// ---- Merge: topologymanager/policy.go, filterProvidersHints

NaiveKubelet::Merged NaiveKubelet::Merge(const std::vector<HintMap>& providers) const {
  std::vector<std::vector<NaiveHint>> lists;
  const auto to_mask = [&](const Ids& nodes) {
    scheduler::admission::Mask mask = 0;
    for (std::size_t i = 0; i < numa_.size(); ++i) {
      if (nodes.contains(numa_[i])) mask |= scheduler::admission::Mask{1} << i;
    }
    return mask;
  };
  for (const HintMap& provider : providers) {
    if (provider.empty()) lists.push_back({{std::nullopt, true}});
    ForEach(provider, [&](const auto& entry) {
      const HintList& hints = entry.second;
      std::vector<NaiveHint>& list = lists.emplace_back();
      if (!hints) list.push_back({std::nullopt, true});
      if (hints && hints->empty()) list.push_back({std::nullopt, false});
      if (!hints) return;
      for (const Hint& hint : *hints) list.push_back({to_mask(*hint.nodes), hint.preferred});
    });
  }
  const NaiveMerged best = NaiveMerge(merge_machine_, lists);
  Merged merged{std::nullopt, best.preferred, best.admitted};
  if (best.affinity) {
    merged.affinity.emplace();
    for (std::size_t i = 0; i < numa_.size(); ++i) {
      if (((*best.affinity >> i) & 1) != 0) merged.affinity->insert(numa_[i]);
    }
  }
  return merged;
}

// ---- Devices: devicemanager/topology_hints.go, manager.go

Strings NaiveKubelet::AllocatedDevices(const std::string& resource) const {
  Strings allocated;
  for (const auto& [uid, containers] : pods_) {
    for (const NaiveContainer& container : containers) {
      const auto held = container.devices.find(resource);
      if (held != container.devices.end()) {
        allocated.insert(held->second.begin(), held->second.end());
      }
    }
  }
  return allocated;
}

NaiveKubelet::HintMap NaiveKubelet::DeviceHints(const Wish& wish,
                                                const Admission& admission) const {
  HintMap hints;
  for (const auto& [resource, need] : wish.devices) {
    const Devices& devices = devices_.at(resource);
    const bool aligned = std::any_of(devices.begin(), devices.end(),
                                     [](const Device& device) { return device.nodes.has_value(); });
    if (!aligned) {
      hints[resource] = std::nullopt;
      continue;
    }
    Strings used = AllocatedDevices(resource);
    for (const NaiveContainer& earlier : admission.verdict.containers) {
      const auto held = earlier.devices.find(resource);
      if (held != earlier.devices.end()) used.insert(held->second.begin(), held->second.end());
    }
    Strings available;
    for (const Device& device : devices) {
      if (device.healthy && !used.contains(device.id)) available.insert(device.id);
    }
    const auto kept = admission.reusable_devices.find(resource);
    const Strings reusable = kept == admission.reusable_devices.end() ? Strings() : kept->second;
    Strings both = available;
    both.insert(reusable.begin(), reusable.end());
    hints[resource] = static_cast<std::int64_t>(both.size()) < need
                          ? std::vector<Hint>()
                          : DeviceHintsOf(devices, available, reusable, need);
  }
  return hints;
}

std::vector<NaiveKubelet::Hint> NaiveKubelet::DeviceHintsOf(const Devices& devices,
                                                            const Strings& available,
                                                            const Strings& reusable,
                                                            std::int64_t need) const {
  std::vector<int> hosts;
  for (const int id : numa_) {
    const bool hosting = std::any_of(devices.begin(), devices.end(), [id](const Device& device) {
      return device.nodes && device.nodes->contains(id);
    });
    if (hosting) hosts.push_back(id);
  }
  if (hosts.empty()) hosts = numa_;
  std::size_t least = hosts.size();
  std::vector<Hint> hints;
  for (const Ids& mask : AllSubsets(hosts)) {
    std::int64_t all = 0;
    std::int64_t matching = 0;
    bool holds_reusable = true;
    for (const Device& device : devices) {
      const bool inside = AnyOf(mask, device.nodes);
      all += inside ? 1 : 0;
      if (reusable.contains(device.id) && device.nodes) {
        holds_reusable = holds_reusable && inside;
        ++matching;
      }
      if (available.contains(device.id) && inside) ++matching;
    }
    if (all >= need) least = std::min(least, mask.size());
    if (holds_reusable && matching >= need) hints.push_back({mask, false});
  }
  for (Hint& hint : hints) hint.preferred = hint.nodes->size() == least;
  return hints;
}

bool NaiveKubelet::AllocateDevices(const Wish& wish, const Item& item, Admission& admission,
                                   NaiveContainer& own) {
  bool going = true;
  ForEach(wish.devices, [&](const auto& entry) {
    if (!going) return;
    Strings taken;
    going = TakeDevices(entry.first, entry.second, admission, taken);
    if (going && !taken.empty()) own.devices[entry.first] = taken;
  });
  if (!going) return false;
  for (const auto& [resource, ids] : own.devices) {
    Strings& reusable = admission.reusable_devices[resource];
    if (item.init && !item.container->sidecar) {
      reusable.insert(ids.begin(), ids.end());
    } else {
      reusable = Minus(reusable, ids);
    }
  }
  return true;
}

// devicesToAllocate and filterByAffinity.
bool NaiveKubelet::TakeDevices(const std::string& resource, std::int64_t need, Admission& admission,
                               Strings& taken) {
  const Devices& devices = devices_.at(resource);
  const auto healthy = [](const Device& device) { return device.healthy; };
  if (std::none_of(devices.begin(), devices.end(), healthy)) return false;
  if (need == 0) return true;
  const auto missing = [&] { return need - static_cast<std::int64_t>(taken.size()); };
  const Strings reusable = admission.reusable_devices[resource];
  if (static_cast<std::int64_t>(reusable.size()) > need) admission.verdict.random_devices = true;
  // The order of a Go map: here that of the plugin's list, or the reverse of it.
  Devices walked = devices;
  if (order_ == MapOrder::kDescending) std::reverse(walked.begin(), walked.end());
  for (const Device& device : walked) {
    if (missing() > 0 && reusable.contains(device.id)) taken.insert(device.id);
  }
  if (missing() == 0) return true;
  Strings used = AllocatedDevices(resource);
  for (const NaiveContainer& earlier : admission.verdict.containers) {
    const auto held = earlier.devices.find(resource);
    if (held != earlier.devices.end()) used.insert(held->second.begin(), held->second.end());
  }
  used.insert(taken.begin(), taken.end());
  std::vector<std::string> aligned;
  std::vector<std::string> others;
  for (const Device& device : devices) {
    if (!device.healthy || used.contains(device.id)) continue;
    const bool fits = admission.hint.affinity && AnyOf(*admission.hint.affinity, device.nodes);
    (fits ? aligned : others).push_back(device.id);
  }
  const auto count = [](const auto& list) { return static_cast<std::int64_t>(list.size()); };
  if (count(aligned) + count(others) < missing()) return false;
  if (missing() < count(aligned)) admission.verdict.plugin_chose = true;
  for (const std::string& id : aligned) {
    if (missing() > 0) taken.insert(id);
  }
  if (missing() > 0 && missing() < count(others)) admission.verdict.plugin_chose = true;
  for (const std::string& id : others) {
    if (missing() > 0) taken.insert(id);
  }
  return true;
}

void NaiveKubelet::SetUnhealthy(const std::string& resource, const Strings& ids) {
  const auto devices = devices_.find(resource);
  if (devices == devices_.end()) return;
  for (Device& device : devices->second) device.healthy = !ids.contains(device.id);
}

// ---- CPUs: cpumanager/policy_static.go

NaiveKubelet::HintMap NaiveKubelet::CpuHints(const Wish& wish, const Admission& admission) const {
  if (wish.cpus == 0) return {};
  const Ids with_cpus = PartsOf(cpus_.cpus, &NaiveCpu::numa);
  const auto numa_of = [&](const Ids& cpus) {
    Ids nodes;
    for (const int id : cpus) nodes.insert(cpus_.cpus.at(id).numa);
    return nodes;
  };
  const auto count = [&](const Ids& cpus, const Ids& mask) {
    return std::count_if(cpus.begin(), cpus.end(),
                         [&](int id) { return mask.contains(cpus_.cpus.at(id).numa); });
  };
  Ids everything;
  for (const auto& [id, cpu] : cpus_.cpus) everything.insert(id);
  std::size_t least = with_cpus.size();
  std::vector<Hint> hints;
  for (const Ids& mask : AllSubsets({with_cpus.begin(), with_cpus.end()})) {
    if (count(everything, mask) >= wish.cpus) least = std::min(least, mask.size());
    if (!Without(numa_of(admission.reusable_cpus), mask).empty()) continue;
    const auto matching = count(shared_, mask) + Size(admission.reusable_cpus);
    if (matching >= wish.cpus) hints.push_back({mask, false});
  }
  const Ids sockets = PartsOf(cpus_.cpus, &NaiveCpu::socket);
  const std::size_t per_socket = sockets.empty() ? 0 : with_cpus.size() / sockets.size();
  for (Hint& hint : hints) {
    hint.preferred = hint.nodes->size() == least;
    if (!cpus_.align_by_socket || per_socket == 0) continue;
    Ids touched;
    for (const auto& [id, cpu] : cpus_.cpus) {
      if (hint.nodes->contains(cpu.numa)) touched.insert(cpu.socket);
    }
    if (touched.size() == (least + per_socket - 1) / per_socket) hint.preferred = true;
  }
  return {{"cpu", hints}};
}

bool NaiveKubelet::AllocateCpus(const Wish& wish, const Item& item, Admission& admission,
                                NaiveContainer& own) {
  if (wish.cpus == 0) return true;
  if (cpus_.full_pcpus_only) {
    Ids reserved_cores;
    for (const int id : reserved_) {
      const auto cpu = cpus_.cpus.find(id);
      if (cpu == cpus_.cpus.end()) continue;
      reserved_cores =
          Together(reserved_cores, CpusIn(cpus_.cpus, &NaiveCpu::core, cpu->second.core));
    }
    if (wish.cpus % cpus_.PerCore() != 0 || wish.cpus > Size(Without(shared_, reserved_cores))) {
      admission.verdict.reason = "SMTAlignmentError";
      return false;
    }
  }
  const Ids allocatable = Together(shared_, admission.reusable_cpus);
  if (wish.cpus > Size(allocatable)) return false;  // the last step of taking would say so
  Ids aligned;
  for (const auto& [id, cpu] : cpus_.cpus) {
    bool fits = admission.hint.affinity && admission.hint.affinity->contains(cpu.numa);
    if (cpus_.align_by_socket && admission.hint.affinity) {
      for (const int other : CpusIn(cpus_.cpus, &NaiveCpu::socket, cpu.socket)) {
        fits = fits || admission.hint.affinity->contains(cpus_.cpus.at(other).numa);
      }
    }
    if (fits && allocatable.contains(id)) aligned.insert(id);
  }
  const int need = static_cast<int>(wish.cpus);
  NaiveTaken first = TakeCpus(cpus_, aligned, std::min(need, Size(aligned)));
  NaiveTaken rest;
  if (first.ok) rest = TakeCpus(cpus_, Without(allocatable, first.cpus), need - Size(first.cpus));
  admission.verdict.cannot = first.hangs || rest.hangs;
  if (!first.ok || !rest.ok) return false;
  own.cpus = Together(first.cpus, rest.cpus);
  shared_ = Without(shared_, own.cpus);
  if (item.init && !item.container->sidecar) {
    admission.reusable_cpus = Together(admission.reusable_cpus, own.cpus);
  } else {
    admission.reusable_cpus = Without(admission.reusable_cpus, own.cpus);
  }
  return true;
}

// ---- Memory: memorymanager/policy_static.go

NaiveKubelet::HintMap NaiveKubelet::MemoryHints(const Wish& wish,
                                                const Admission& admission) const {
  if (wish.memory.empty()) return {};
  std::size_t least = numa_.size();
  std::vector<Hint> hints;
  for (const Ids& mask : AllSubsets(numa_)) {
    bool big_enough = true;
    bool free_enough = true;
    for (const auto& [type, bytes] : wish.memory) {
      std::int64_t allocatable = 0;
      std::int64_t free = 0;
      for (const int id : mask) {
        allocatable += memory_.at(id).tables.at(type).allocatable;
        free += memory_.at(id).tables.at(type).free;
      }
      const auto reusable = admission.reusable_memory.find({mask, type});
      if (reusable != admission.reusable_memory.end()) free += reusable->second;
      big_enough = big_enough && allocatable >= bytes;
      free_enough = free_enough && free >= bytes;
    }
    if (!big_enough) continue;
    least = std::min(least, mask.size());
    bool forbidden = mask.size() == 1 && memory_.at(*mask.begin()).cells.size() > 1;
    for (const int id : mask) {
      if (mask.size() == 1 || memory_.at(id).assignments == 0) continue;
      forbidden = forbidden || memory_.at(id).cells != mask;
    }
    if (!forbidden && free_enough) hints.push_back({mask, false});
  }
  for (Hint& hint : hints) hint.preferred = hint.nodes->size() == least;
  HintMap map;
  if (hints.empty()) return map;  // no resource has an entry: no preference
  for (const auto& [type, bytes] : wish.memory) map[type] = hints;
  return map;
}

// Where the memory is taken from; nothing if the manager gives up.
std::optional<NaiveKubelet::Hint> NaiveKubelet::MemoryTarget(const Wish& wish,
                                                             const Admission& admission) const {
  const HintMap map = MemoryHints(wish, admission);
  // findBestHint among those that hold `within`.
  const auto best_with = [&](const Ids& within) {
    std::optional<Hint> best;
    if (!map.contains("memory")) return best;
    for (const Hint& hint : *map.at("memory")) {
      if (!Without(within, *hint.nodes).empty()) continue;
      const bool better = best && hint.preferred != best->preferred
                              ? hint.preferred
                              : !best || Narrower(*hint.nodes, *best->nodes);
      if (better) best = hint;
    }
    return best;
  };
  Hint target{admission.hint.affinity, admission.hint.preferred};
  if (!target.nodes) {
    const std::optional<Hint> best = best_with({});
    if (!best || (!best->preferred && target.preferred)) return std::nullopt;
    target = *best;
  }
  for (const auto& [type, bytes] : wish.memory) {
    std::int64_t free = 0;
    for (const int id : *target.nodes) free += memory_.at(id).tables.at(type).free;
    if (free >= bytes) continue;
    const std::optional<Hint> wider = best_with(*target.nodes);
    if (!wider || (!wider->preferred && target.preferred)) return std::nullopt;
    target = *wider;
    break;
  }
  for (const int id : *target.nodes) {
    if (target.nodes->size() == 1 || memory_.at(id).assignments == 0) continue;
    if (memory_.at(id).cells != *target.nodes) return std::nullopt;
  }
  return target;
}

bool NaiveKubelet::AllocateMemory(const Wish& wish, const Item& item, Admission& admission,
                                  NaiveContainer& own) {
  if (wish.memory.empty()) return true;
  const std::optional<Hint> target = MemoryTarget(wish, admission);
  if (!target) return false;
  ForEach(wish.memory, [&](const auto& entry) {
    const auto& [type, bytes] = entry;
    own.memory.push_back({type, *target->nodes, bytes});
    const auto reusable = admission.reusable_memory.find({*target->nodes, type});
    const std::int64_t reused = reusable == admission.reusable_memory.end() ? 0 : reusable->second;
    ChargeMemory(*target->nodes, type, std::max<std::int64_t>(bytes - reused, 0));
  });
  std::sort(own.memory.begin(), own.memory.end(),
            [](const NaiveBlock& a, const NaiveBlock& b) { return a.type < b.type; });
  for (const NaiveBlock& block : own.memory) {
    const std::pair key(block.nodes, block.type);
    if (item.init && !item.container->sidecar) {
      std::int64_t& reusable = admission.reusable_memory[key];
      reusable = std::max(reusable, block.bytes);
    } else if (admission.reusable_memory.contains(key)) {
      std::int64_t& reusable = admission.reusable_memory[key];
      reusable = std::max<std::int64_t>(reusable - block.bytes, 0);
    }
  }
  return true;
}

// updateMachineState.
void NaiveKubelet::ChargeMemory(const Ids& nodes, const std::string& type, std::int64_t bytes) {
  for (const int id : nodes) {
    NaiveMemory& node = memory_.at(id);
    ++node.assignments;
    node.cells = nodes;
    NaiveMemory::Table& table = node.tables.at(type);
    const std::int64_t taken = std::min(bytes, table.free);
    table.free -= taken;
    table.reserved += taken;
    bytes -= taken;
  }
}

// releaseMemory.
void NaiveKubelet::ReleaseMemory(const NaiveBlock& block) {
  std::int64_t rest = block.bytes;
  for (const int id : block.nodes) {
    NaiveMemory& node = memory_.at(id);
    --node.assignments;
    if (node.assignments == 0) node.cells = {id};
    NaiveMemory::Table& table = node.tables.at(block.type);
    const std::int64_t released = std::min(rest, table.reserved);
    table.free += released;
    table.reserved -= released;
    rest -= released;
  }
}

// updateInitContainersMemoryBlocks: what is used again is booked off the earlier init containers.
void NaiveKubelet::ShrinkInitBlocks(const Item& item, const NaiveContainer& own,
                                    Admission& admission) {
  for (const NaiveBlock& block : own.memory) {
    std::int64_t rest = block.bytes;
    for (std::size_t i = 0; i < admission.verdict.containers.size(); ++i) {
      const Item& earlier = admission.items[i];
      if (!earlier.init || earlier.container->sidecar || earlier.container == item.container) {
        continue;
      }
      for (NaiveBlock& held : admission.verdict.containers[i].memory) {
        if (held.type != block.type || held.nodes != block.nodes) continue;
        const std::int64_t used = std::min(held.bytes, rest);
        held.bytes -= used;
        rest -= used;
      }
    }
  }
}

// ---- Life after admission: memorymanager/memory_manager.go, AddContainer; removeStaleState

void NaiveKubelet::Start(const kube::Pod& pod) {
  const auto held = pods_.find(pod.uid);
  if (held == pods_.end()) return;
  for (std::size_t i = 0; i < pod.init_containers.size() && !pod.containers.empty(); ++i) {
    if (pod.init_containers[i].sidecar) continue;
    std::vector<NaiveBlock>& blocks = held->second[i].memory;
    for (const NaiveBlock& block : blocks) ReleaseMemory(block);
    if (!blocks.empty()) given_back_[pod.uid][i] = std::exchange(blocks, {});
  }
}

void NaiveKubelet::Restart() {
  for (auto& [uid, containers] : given_back_) {
    for (auto& [container, blocks] : containers) {
      for (const NaiveBlock& block : std::exchange(blocks, {})) {
        if (!CanReserveAgain(block)) continue;
        ChargeMemory(block.nodes, block.type, block.bytes);
        pods_.at(uid)[container].memory.push_back(block);
      }
    }
  }
}

// A block that has no room any more, or whose nodes are in other groups by now, is let be.
bool NaiveKubelet::CanReserveAgain(const NaiveBlock& block) const {
  std::int64_t free = 0;
  for (const int id : block.nodes) {
    const NaiveMemory& node = memory_.at(id);
    if (node.assignments > 0 && node.cells != block.nodes) return false;
    if (block.nodes.size() > 1 && node.assignments == 0) return false;
    free += node.tables.at(block.type).free;
  }
  return free >= block.bytes;
}

// In the order of a Go map of containers.
void NaiveKubelet::Release(std::vector<NaiveContainer> containers) {
  if (order_ == MapOrder::kDescending) std::reverse(containers.begin(), containers.end());
  for (const NaiveContainer& container : containers) {
    shared_ = Together(shared_, Without(container.cpus, reserved_));
    for (const NaiveBlock& block : container.memory) ReleaseMemory(block);
  }
}

void NaiveKubelet::Remove(const std::string& uid) {
  const auto held = pods_.find(uid);
  if (held == pods_.end()) return;
  Release(held->second);
  pods_.erase(held);
  given_back_.erase(uid);
}

}  // namespace reference
