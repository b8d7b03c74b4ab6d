#include "scheduler/admission/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <functional>
#include <iterator>
#include <limits>
#include <memory>
#include <string_view>
#include <utility>

#include "scheduler/admission/admit.h"
#include "scheduler/admission/cpu_manager.h"
#include "scheduler/admission/device_manager.h"
#include "scheduler/admission/explain_text.h"
#include "scheduler/admission/memory_manager.h"
#include "scheduler/admission/release.h"
#include "scheduler/admission/topology_manager.h"

namespace scheduler::admission {
namespace {

enum class Kind { kDevice, kCpu, kMemory };

// A resource that the managers of this machine look after.
struct Wanted {
  Kind kind = Kind::kCpu;
  std::string name;
  int at = -1;  // position in Machine::devices or Machine::memory_types
  std::int64_t needed = 0;
};

// In the order of the managers.
std::vector<Wanted> WantedBy(const Machine& machine, const Demand& demand) {
  std::vector<Wanted> wanted;
  for (const auto& [name, count] : demand.devices) {
    const int at = machine.FindResource(name);
    if (at >= 0) wanted.push_back({Kind::kDevice, name, at, count});
  }
  if (machine.settings.cpu_static && demand.cpus > 0) {
    wanted.push_back({Kind::kCpu, kube::kCpu, -1, demand.cpus});
  }
  for (const auto& [name, bytes] : demand.memory) {
    const int at = machine.MemoryType(name);
    if (machine.settings.memory_static && at >= 0) {
      wanted.push_back({Kind::kMemory, name, at, bytes});
    }
  }
  return wanted;
}

void Keep(const std::string& resource, Demand& demand) {
  const auto other = [&](const auto& entry) { return entry.first != resource; };
  std::erase_if(demand.devices, other);
  std::erase_if(demand.memory, other);
  if (resource != kube::kCpu) demand.cpus = 0;
}

Request Only(const std::string& resource, Request request) {
  Keep(resource, request.pod);
  std::erase_if(request.pod_init_memory,
                [&](const auto& entry) { return entry.first != resource; });
  for (ContainerDemand& container : request.containers) Keep(resource, container.demand);
  return request;
}

// The pod up to the container, without the plain init containers before it.
Request WithoutInitContainers(Request request, int container) {
  const auto end = request.containers.begin() + container;
  const auto kept = std::remove_if(request.containers.begin(), end,
                                   [](const ContainerDemand& own) { return own.reuses(); });
  request.containers.erase(end + 1, request.containers.end());
  request.containers.erase(kept, end);
  return request;
}

NodeState Empty(const NodeState& state) {
  NodeState empty = EmptyState({state.machine, state.device_ids});
  for (std::size_t i = 0; i < empty.pool.devices.size(); ++i) {
    empty.pool.devices[i].healthy = state.pool.devices[i].healthy;
  }
  return empty;
}

NodeState WithoutGroups(NodeState state) {
  for (std::size_t node = 0; node < state.pool.memory.size(); ++node) {
    state.pool.memory[node].assignments = 0;
    state.pool.memory[node].group = Mask{1} << node;
  }
  return state;
}

NodeState WithPolicy(const NodeState& state, TopologyPolicy policy) {
  auto machine = std::make_shared<Machine>(*state.machine);
  machine->settings.topology_policy = policy;
  NodeState other = state;
  other.machine = std::move(machine);
  return other;
}

bool Refuses(const Outcome& verdict) {
  return !verdict.admitted() && verdict.reason != Reason::kKubeletCannot;
}

// The resources of the pod that are refused even alone.
std::vector<std::string> RefusedAlone(const NodeState& state, const Request& request) {
  std::vector<Wanted> all = WantedBy(*state.machine, request.pod);
  // Memory that only init containers ask for is not among the pod's.
  for (const ContainerDemand& container : request.containers) {
    std::ranges::move(WantedBy(*state.machine, container.demand), std::back_inserter(all));
  }
  std::vector<std::string> names;
  for (const Wanted& wanted : all) {
    if (std::ranges::find(names, wanted.name) == names.end()) names.push_back(wanted.name);
  }
  std::erase_if(
      names, [&](const std::string& name) { return !Refuses(Admit(state, Only(name, request))); });
  return names;
}

// What failed, and what it found free: earlier containers of the pod have taken theirs.
struct Moment {
  Demand demand;
  Pool pool;
  std::string container;
};

Moment MomentOf(const NodeState& state, const Request& request, const Outcome& verdict) {
  if (verdict.container < 0) {
    Moment pod{request.pod, state.pool, ""};
    if (PodMemoryCountsInitTypes(state.machine->settings.minor_version)) {
      pod.demand.memory.insert(pod.demand.memory.end(), request.pod_init_memory.begin(),
                               request.pod_init_memory.end());
    }
    return pod;
  }
  const std::size_t index = At(verdict.container);
  Request before = request;
  before.containers.resize(index);
  return {request.containers[index].demand, Admit(state, before).after,
          request.containers[index].name};
}

std::int64_t FreeOn(const Machine& machine, const Pool& pool, const Wanted& wanted, Mask nodes) {
  std::int64_t free = 0;
  if (wanted.kind == Kind::kDevice) {
    const Pool::Devices& devices = pool.devices[At(wanted.at)];
    (devices.healthy - devices.allocated).ForEach([&](int device) {
      free += (machine.devices[At(wanted.at)].devices[At(device)].nodes & nodes) != 0 ? 1 : 0;
    });
    return free;
  }
  for (Mask rest = nodes; rest != 0; rest &= rest - 1) {
    const std::size_t node = At(std::countr_zero(rest));
    free += wanted.kind == Kind::kCpu ? machine.cpu.in_numa[node].CountCommon(pool.cpus)
                                      : pool.memory[node].free[At(wanted.at)];
  }
  return free;
}

std::int64_t FreeInAll(const Machine& machine, const Pool& pool, const Wanted& wanted) {
  if (wanted.kind != Kind::kDevice) return FreeOn(machine, pool, wanted, machine.all_nodes);
  const Pool::Devices& devices = pool.devices[At(wanted.at)];
  return (devices.healthy - devices.allocated).Count();
}

int WidthOf(const Machine& machine, const Moment& moment, const Wanted& wanted) {
  if (machine.settings.topology_policy == TopologyPolicy::kNone) return 0;
  if (wanted.kind == Kind::kCpu) {
    return CpuHints(machine, moment.pool.cpus, Bits(machine.cpu.cpu_slots), wanted.needed).width();
  }
  if (wanted.kind == Kind::kDevice) {
    const DeviceResource& facts = machine.devices[At(wanted.at)];
    const Bits& healthy = moment.pool.devices[At(wanted.at)].healthy;
    const Bits none(static_cast<int>(facts.devices.size()));
    return facts.aligned ? DeviceHints(machine, facts, healthy, none, wanted.needed).width() : 0;
  }
  MemoryDemand memory;  // all types have one width together
  for (const Wanted& other : WantedBy(machine, moment.demand)) {
    if (other.kind == Kind::kMemory) memory.push_back({other.at, other.needed});
  }
  return MemoryHints(machine, moment.pool, memory, ReusableMemory()).width();
}

// Fills in the NUMA nodes that lack least among those that could hold the need when empty.
void FindNearest(const Machine& machine, const Pool& pool, const Pool& empty, const Wanted& wanted,
                 ResourceNumbers& numbers) {
  if (numbers.width == 0 || machine.numa_count() > kMaxEnumeratedNodes) return;
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  for (Mask mask = 1; mask != 0 && mask <= machine.all_nodes; ++mask) {
    if (std::popcount(mask) != numbers.width) continue;
    if (FreeOn(machine, empty, wanted, mask) < wanted.needed) continue;
    const std::int64_t missing =
        std::max<std::int64_t>(wanted.needed - FreeOn(machine, pool, wanted, mask), 0);
    if (missing >= least) continue;
    least = missing;
    numbers.nearest = machine.ToIds(mask);
    numbers.short_by = missing;
  }
}

bool OnNumaNodes(const Machine& machine, const Wanted& wanted) {
  return wanted.kind != Kind::kDevice || machine.devices[At(wanted.at)].aligned;
}

std::vector<ResourceNumbers> NumbersOf(const NodeState& state, const Moment& moment,
                                       const std::vector<std::string>& refused_alone) {
  const Machine& machine = *state.machine;
  const Pool empty = Empty(state).pool;
  std::vector<ResourceNumbers> all;
  for (const Wanted& wanted : WantedBy(machine, moment.demand)) {
    ResourceNumbers& numbers = all.emplace_back();
    numbers.resource = wanted.name;
    numbers.needed = wanted.needed;
    numbers.free = FreeInAll(machine, moment.pool, wanted);
    numbers.width = WidthOf(machine, moment, wanted);
    numbers.alone = std::ranges::find(refused_alone, wanted.name) == refused_alone.end();
    for (int node = 0; OnNumaNodes(machine, wanted) && node < machine.numa_count(); ++node) {
      const std::int64_t free = FreeOn(machine, moment.pool, wanted, Mask{1} << node);
      numbers.numa.push_back({.id = machine.numa_ids[At(node)],
                              .free = free,
                              .short_by = std::max<std::int64_t>(wanted.needed - free, 0)});
    }
    FindNearest(machine, moment.pool, empty, wanted, numbers);
  }
  return all;
}

const ResourceNumbers* Find(const std::vector<ResourceNumbers>& all, const std::string& resource) {
  const auto found = std::ranges::find(all, resource, &ResourceNumbers::resource);
  return found == all.end() ? nullptr : &*found;
}

bool WidthsDiffer(const std::vector<ResourceNumbers>& all) {
  int width = 0;
  for (const ResourceNumbers& numbers : all) {
    if (numbers.width == 0) continue;
    if (width != 0 && numbers.width != width) return true;
    width = numbers.width;
  }
  return false;
}

class Explainer {
 public:
  Explainer(const NodeState& state, const Request& request, const Outcome& outcome)
      : state_(state), machine_(*state.machine), request_(request), outcome_(outcome) {}

  Explanation Run() && {
    Find();
    Texts texts = Describe(state_, outcome_, found_);
    found_.summary = std::move(texts.summary);
    found_.detail = std::move(texts.detail);
    return std::move(found_);
  }

 private:
  void Find() {
    if (outcome_.admitted()) {
      found_.fits_empty_node = Admit(Empty(state_), request_).admitted();
      return;
    }
    if (outcome_.reason == Reason::kKubeletCannot) {
      found_.code = Why::kKubeletCannot;
      return;
    }
    const NodeState empty = Empty(state_);
    const Verdict when_empty = Admit(empty, request_);
    found_.fits_empty_node = when_empty.admitted();
    if (PodLeavesItselfNothing(empty, when_empty)) {
      found_.code = Why::kEmptyPodPool;
      found_.resource = request_.cpus_leave_no_pool ? kube::kCpu : kube::kMemory;
    } else if (InitContainersAreInTheWay()) {
      found_.code = Why::kReusedInitResources;
      Numbers(state_, request_, outcome_, RefusedAlone(state_, request_));
    } else if (Refuses(when_empty)) {
      FindWhenEmpty(empty, when_empty);
    } else {
      FindWhenOccupied();
    }
  }

  void Numbers(const NodeState& state, const Request& request, const Outcome& verdict,
               const std::vector<std::string>& refused_alone) {
    const Moment moment = MomentOf(state, request, verdict);
    found_.container = moment.container;
    found_.resources = NumbersOf(state, moment, refused_alone);
  }

  bool InitContainersAreInTheWay() const {
    const int failed = outcome_.container;
    if (failed < 0) return false;
    const auto& all = request_.containers;
    return std::any_of(all.begin(), all.begin() + failed,
                       [](const ContainerDemand& own) { return own.reuses(); }) &&
           Admit(state_, WithoutInitContainers(request_, failed)).admitted();
  }

  // Of the pod alone: which pods are on the node does not matter.
  bool PodLeavesItselfNothing(const NodeState& empty, const Verdict& when_empty) const {
    Request otherwise = request_;
    otherwise.cpus_leave_no_pool = false;
    otherwise.memory_leaves_no_pool = false;
    return Refuses(when_empty) && otherwise != request_ && Admit(empty, otherwise).admitted();
  }

  void FindWhenEmpty(const NodeState& empty, const Verdict& when_empty) {
    const std::vector<std::string> refused = RefusedAlone(empty, request_);
    Numbers(empty, request_, when_empty, refused);
    if (when_empty.reason == Reason::kSmtAlignment) {
      found_.code = Why::kSmtAlignment;
      found_.resource = kube::kCpu;
      return;
    }
    if (refused.empty() && when_empty.stage == Stage::kMerge &&
        machine_.settings.topology_policy == TopologyPolicy::kRestricted &&
        WidthsDiffer(found_.resources)) {
      found_.code = Why::kWidthsDisagree;
      found_.least_cpus = LeastCpus(empty, when_empty.container);
      return;
    }
    found_.code = Why::kNeverFits;
    found_.admitting_policy = AdmittingPolicy(empty);
    if (refused.empty()) return;
    found_.resource = refused.front();
    const Request alone = Only(found_.resource, request_);
    Numbers(empty, alone, Admit(empty, alone), refused);
  }

  void FindWhenOccupied() {
    const std::vector<std::string> refused = RefusedAlone(state_, request_);
    if (outcome_.reason == Reason::kSmtAlignment) {
      found_.code = Why::kSmtAlignment;
      found_.resource = kube::kCpu;
      Numbers(state_, request_, outcome_, refused);
    } else if (refused.empty()) {
      found_.code =
          Admit(WithoutGroups(state_), request_).admitted() ? Why::kMemoryGroup : Why::kNotTogether;
      Numbers(state_, request_, outcome_, refused);
    } else {
      FindShortResource(refused);
    }
  }

  void FindShortResource(const std::vector<std::string>& refused) {
    found_.resource = refused.front();
    const Request alone = Only(found_.resource, request_);
    const Verdict verdict = Admit(state_, alone);
    Numbers(state_, alone, verdict, refused);
    const ResourceNumbers* numbers = admission::Find(found_.resources, found_.resource);
    const bool device = machine_.FindResource(found_.resource) >= 0;
    const bool cpu = found_.resource == kube::kCpu;
    if (verdict.reason == Reason::kSmtAlignment) {
      found_.code = Why::kSmtAlignment;
    } else if (numbers != nullptr && numbers->free < std::max<std::int64_t>(numbers->needed, 1)) {
      found_.code = device ? Why::kNoFreeDevice : cpu ? Why::kNotEnoughCpus : Why::kNotEnoughMemory;
    } else if (!device && !cpu && Admit(WithoutGroups(state_), alone).admitted()) {
      found_.code = Why::kMemoryGroup;
    } else {
      found_.code = Why::kFreeButSpread;
    }
  }

  std::string AdmittingPolicy(const NodeState& empty) const {
    for (const TopologyPolicy policy :
         {TopologyPolicy::kRestricted, TopologyPolicy::kBestEffort, TopologyPolicy::kNone}) {
      const bool looser = policy < machine_.settings.topology_policy;
      if (looser && Admit(WithPolicy(empty, policy), request_).admitted()) return ToString(policy);
    }
    return "";
  }

  // The least number of CPUs whose width is the widest of the others, if that helps: one more than
  // the largest nodes, one fewer than the width, have.
  std::optional<std::int64_t> LeastCpus(const NodeState& empty, int container) const {
    const ResourceNumbers* cpus = admission::Find(found_.resources, kube::kCpu);
    int width = 0;
    for (const ResourceNumbers& numbers : found_.resources) width = std::max(width, numbers.width);
    if (cpus == nullptr || cpus->width >= width) return std::nullopt;
    std::vector<int> sizes;
    for (const Bits& node : machine_.cpu.in_numa) sizes.push_back(node.Count());
    std::ranges::sort(sizes, std::greater<>());
    std::int64_t more = 1;
    for (int i = 0; i + 1 < width; ++i) more += sizes[At(i)];
    const std::int64_t step =
        machine_.settings.full_pcpus_only ? std::max(machine_.cpu.cpus_per_core, 1) : 1;
    more = (more + step - 1) / step * step;
    Request request = request_;
    if (container >= 0) {
      request.containers[At(container)].demand.cpus = more;
    } else if (request.containers.size() == 1) {
      request.containers.front().demand.cpus = request.pod.cpus = more;
    } else {
      return std::nullopt;
    }
    return Admit(empty, request).admitted() ? std::optional(more) : std::nullopt;
  }

  const NodeState& state_;
  const Machine& machine_;
  const Request& request_;
  const Outcome& outcome_;
  Explanation found_;
};

}  // namespace

const char* ToString(Why why) {
  static constexpr std::array<const char*, 14> kNames = {
      "Fits",          "KubeletCannot", "OutOf",           "ReusedInitResources",
      "EmptyPodPool",  "SmtAlignment",  "WidthsDisagree",  "NeverFits",
      "NoFreeDevice",  "NotEnoughCpus", "NotEnoughMemory", "MemoryGroup",
      "FreeButSpread", "NotTogether"};
  return kNames.at(static_cast<std::size_t>(why));
}

Explanation Explain(const NodeState& state, const Request& request, const Outcome& outcome) {
  return Explainer(state, request, outcome).Run();
}

Explanation ExplainOutOf(const std::string& reason) {
  Explanation found;
  found.code = Why::kOutOf;
  found.resource = reason.substr(std::min(reason.size(), std::string_view("OutOf").size()));
  found.summary = fmt::format("the node's allocatable {} is used up", ShortName(found.resource));
  found.detail = found.summary;
  return found;
}

}  // namespace scheduler::admission
