#include "test/scheduler/cluster_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <vector>

#include "placement/encode.h"
#include "scheduler/admission/coarse.h"
#include "scheduler/admission/request.h"
#include "scheduler/reconcile/observed.h"

namespace test {
namespace {

using reference::NaiveContainer;
using scheduler::admission::At;
using scheduler::admission::Bits;
using scheduler::admission::Holding;
using scheduler::admission::Machine;
using scheduler::admission::NodeState;
using scheduler::admission::Pool;
using scheduler::ledger::Confidence;
using scheduler::ledger::NodeView;
using scheduler::ledger::Phase;
using scheduler::ledger::PodFacts;
using scheduler::ledger::Standing;
using scheduler::ledger::Waiting;

placement::PlacedContainer Placed(const NaiveContainer& naive) {
  placement::PlacedContainer container;
  container.name = naive.name;
  for (const int id : naive.cpus) container.cpus.Insert(id);
  for (const reference::NaiveBlock& block : naive.memory) {
    placement::PlacedMemory& memory = container.memory.emplace_back();
    memory.type = block.type;
    memory.bytes = block.bytes;
    for (const int id : block.nodes) memory.numa_nodes.Insert(id);
  }
  for (const auto& [resource, ids] : naive.devices) {
    container.devices.push_back({resource, {ids.begin(), ids.end()}});
  }
  return container;
}

bool HoldsNothing(const placement::PlacedContainer& container) {
  return container.cpus.empty() && container.memory.empty() && container.devices.empty();
}

// What one pod's containers hold together: an init container's CPUs and devices may be another's
// too.
struct Held {
  Bits cpus;
  std::vector<Bits> devices;
  std::vector<std::int64_t> memory;  // by type
};

Held HeldTogether(const Machine& machine, const std::vector<Holding>& holdings) {
  Held held{Bits(machine.cpu.cpu_slots), {}, {}};
  for (const auto& resource : machine.devices) {
    held.devices.push_back(Bits(static_cast<int>(resource.devices.size())));
  }
  held.memory.resize(machine.memory_types.size());
  const bool own = std::ranges::find(holdings, "", &Holding::container) != holdings.end();
  for (const Holding& holding : holdings) {
    if (!own || holding.container.empty()) {
      held.cpus |= holding.cpus;
      for (const auto& block : holding.memory) held.memory[At(block.type)] += block.bytes;
    }
    for (const auto& [resource, bits] : holding.devices) held.devices[At(resource)] |= bits;
  }
  return held;
}

// On others the kubelet itself gives CPUs out twice, or fewer than it should: it goes by averages
// (cpu_assignment.go up to 1.37), and what it does is what we must expect.
bool HasEvenCores(const Machine& machine) {
  const auto is_even = [](const std::vector<Bits>& parts, int average) {
    return std::ranges::all_of(
        parts, [&](const Bits& part) { return part.None() || part.Count() == average; });
  };
  return is_even(machine.cpu.in_core, machine.cpu.cpus_per_core) &&
         is_even(machine.cpu.in_socket, machine.cpu.cpus_per_socket) &&
         is_even(machine.cpu.in_uncore, machine.cpu.cpus_per_uncore);
}

std::string CheckMemory(const NodeState& state, const std::vector<std::int64_t>& held,
                        bool by_pod) {
  const Machine& machine = *state.machine;
  std::vector<std::int64_t> taken(machine.memory_types.size());
  for (int numa = 0; numa < machine.numa_count(); ++numa) {
    for (std::size_t type = 0; type < taken.size(); ++type) {
      const std::int64_t free = state.pool.memory[At(numa)].free[type];
      const std::int64_t allocatable = machine.memory[At(numa)][type].allocatable;
      if (free < 0 || free > allocatable) {
        return fmt::format("{} of {} bytes of {} are free on node {}", free, allocatable,
                           machine.memory_types[type], numa);
      }
      taken[type] += allocatable - free;
    }
  }
  for (std::size_t type = 0; type < taken.size(); ++type) {
    if (by_pod ? taken[type] != held[type] : taken[type] < held[type]) {
      return "the pods hold more or less memory than is taken";
    }
  }
  return "";
}

// `by_pod`: all that is held is held by pods that are named; else some may be known as sums.
std::string CheckState(const NodeState& state, bool by_pod) {
  const Machine& machine = *state.machine;
  const bool even = HasEvenCores(machine);
  Held all = HeldTogether(machine, {});
  for (const auto& [uid, holdings] : state.pods) {
    const Held own = HeldTogether(machine, holdings);
    if (even && all.cpus.Intersects(own.cpus)) {
      return fmt::format("{} holds CPUs {} of which others hold {}; reserved are {}", uid,
                         ToCpuSet(own.cpus).ToString(), ToCpuSet(own.cpus & all.cpus).ToString(),
                         ToCpuSet(machine.reserved_cpus).ToString());
    }
    all.cpus |= own.cpus;
    for (std::size_t i = 0; i < own.devices.size(); ++i) {
      if (all.devices[i].Intersects(own.devices[i])) {
        return uid + " holds devices that another pod holds";
      }
      all.devices[i] |= own.devices[i];
    }
    for (std::size_t type = 0; type < own.memory.size(); ++type) {
      all.memory[type] += own.memory[type];
    }
  }
  const auto agree = [&](const Bits& taken, const Bits& held) {
    return by_pod ? taken == held : (held - taken).None();
  };
  const Bits not_free = machine.cpu.all - machine.reserved_cpus - state.pool.cpus;
  if (even && !agree(not_free, all.cpus - machine.reserved_cpus)) {
    return "CPUs are held and free, or neither";
  }
  for (std::size_t i = 0; i < all.devices.size(); ++i) {
    if (!agree(state.pool.devices[i].allocated, all.devices[i])) {
      return "devices are held and free, or neither";
    }
  }
  return CheckMemory(state, all.memory, by_pod);
}

// Counts per NUMA node cannot tell of devices of no NUMA node or several, nor whether one that is
// ill is held, nor of cores of several CPUs and the CPU manager's options, by which a pod's
// containers may get other CPUs than those that its init containers had.
bool IsToldByCounts(const placement::NodePlacement& facts) {
  for (const placement::NumaNodePlacement& numa : facts.numa_nodes) {
    for (const placement::CoreGroup& group : numa.core_groups) {
      if (std::ranges::any_of(group.cores, [](const auto& core) { return core.size() > 1; })) {
        return false;
      }
    }
  }
  // A device of a NUMA node that the machine does not have is in no zone.
  const auto is_in_a_zone = [&](const auto& device) {
    return device.numa_nodes.size() == 1 && !device.unknown_node &&
           std::ranges::any_of(facts.numa_nodes, [&](const placement::NumaNodePlacement& numa) {
             return device.numa_nodes.Contains(numa.id);
           });
  };
  return facts.kubelet.cpu_options.empty() &&
         std::ranges::all_of(facts.devices, [&](const auto& device) {
           return device.healthy && is_in_a_zone(device);
         });
}

// What is free on each NUMA node, and of each resource together.
std::vector<std::int64_t> Counts(const NodeState& state) {
  const Machine& machine = *state.machine;
  std::vector<std::int64_t> counts;
  for (int numa = 0; numa < machine.numa_count(); ++numa) {
    counts.push_back(state.pool.cpus.CountCommon(machine.cpu.in_numa[At(numa)]));
    for (const std::int64_t free : state.pool.memory[At(numa)].free) counts.push_back(free);
    for (std::size_t i = 0; i < machine.devices.size(); ++i) {
      const Pool::Devices& devices = state.pool.devices[i];
      counts.push_back(
          (devices.healthy - devices.allocated).CountCommon(machine.devices[i].on_node[At(numa)]));
    }
  }
  for (const Pool::Devices& devices : state.pool.devices) {
    counts.push_back((devices.healthy - devices.allocated).Count());
  }
  return counts;
}

}  // namespace

placement::NodePlacement Published(placement::NodePlacement node,
                                   const reference::NaiveKubelet& kubelet) {
  for (placement::NumaNodePlacement& numa : node.numa_nodes) {
    numa.free_cpus.emplace();
    for (const int id : numa.cpus) {
      if (kubelet.shared_cpus().contains(id)) numa.free_cpus->Insert(id);
    }
    const reference::NaiveMemory& memory = kubelet.memory().at(numa.id);
    numa.memory_assignments = memory.assignments;
    numa.memory_group.emplace();
    for (const int id : memory.cells) numa.memory_group->Insert(id);
    for (placement::NodeMemory& table : numa.memory) table.free = memory.tables.at(table.type).free;
  }
  for (const auto& [uid, containers] : kubelet.pods()) {
    placement::PlacedPod pod;
    pod.uid = pod.name = uid;
    pod.namespace_name = "ns";
    for (const NaiveContainer& container : containers) {
      placement::PlacedContainer placed = Placed(container);
      if (!HoldsNothing(placed)) pod.containers.push_back(std::move(placed));
    }
    if (!pod.containers.empty()) node.pods.push_back(std::move(pod));
  }
  return node;
}

std::string CheckAccounts(const NodeView& view) {
  if (view.base == nullptr) return "";
  const bool by_pod = view.confidence != Confidence::kPredicted;
  for (const auto& state : {view.base, view.expected}) {
    const std::string wrong = CheckState(*state, by_pod);
    if (!wrong.empty()) return fmt::format("{}: {}", view.name, wrong);
  }
  for (const Waiting& pod : view.waiting) {
    const bool held = view.base->pods.contains(pod.uid);
    if (held != (pod.standing == Standing::kMissing)) {
      return fmt::format("{}: {} is charged twice or not at all", view.name, pod.uid);
    }
    const auto twice = std::ranges::count(view.waiting, pod.uid, &Waiting::uid);
    if (twice > 1) return fmt::format("{}: {} waits twice", view.name, pod.uid);
  }
  return "";
}

bool IsCharged(const NodeView& view, const PodFacts& facts) {
  if (view.base == nullptr) return true;
  const auto request = scheduler::admission::MakeRequest(facts.pod);
  if (!scheduler::reconcile::WantsSomething(*view.base->machine, request)) return true;
  const std::string& uid = facts.pod.uid;
  return view.base->pods.contains(uid) ||
         std::ranges::find(view.waiting, uid, &Waiting::uid) != view.waiting.end();
}

std::string CheckSums(const NodeView& view, const std::map<std::string, PodFacts>& told) {
  if (view.base == nullptr) return "";
  const Machine& machine = *view.base->machine;
  std::int64_t cpus = 0;
  std::map<std::string, std::int64_t> devices;
  for (const auto& [uid, facts] : told) {
    if (facts.pod.node_name != view.name || facts.phase != Phase::kRunning) continue;
    for (const kube::Container& container : facts.pod.containers) {
      const auto limits = [&](const std::string& name) {
        const auto found = container.limits.find(name);
        return found == container.limits.end() ? 0 : found->second;
      };
      const bool exclusive = facts.pod.qos == kube::Qos::kGuaranteed && limits("cpu") % 1000 == 0;
      if (exclusive && machine.settings.cpu_static) cpus += limits("cpu") / 1000;
      for (const auto& resource : machine.devices) devices[resource.name] += limits(resource.name);
    }
  }
  const Pool& pool = view.base->pool;
  const int most = (machine.cpu.all - machine.reserved_cpus).Count();
  if (HasEvenCores(machine) && pool.cpus.Count() > std::max<std::int64_t>(0, most - cpus)) {
    return fmt::format("{}: fewer CPUs are taken than running pods have", view.name);
  }
  for (std::size_t i = 0; i < machine.devices.size(); ++i) {
    const int free = (pool.devices[i].healthy - pool.devices[i].allocated).Count();
    const int healthy = pool.devices[i].healthy.Count();
    if (free > std::max<std::int64_t>(0, healthy - devices[machine.devices[i].name])) {
      return fmt::format("{}: fewer devices are taken than running pods have", view.name);
    }
  }
  return "";
}

std::string CheckCounts(const NodeView& view, const placement::NodeResourceTopology& truth,
                        const placement::NodePlacement& facts) {
  if (!IsToldByCounts(facts)) return "";
  const auto state = scheduler::admission::CoarseStateFrom(truth);
  if (!state.ok()) return view.base == nullptr ? "" : view.name + " has accounts of no data";
  if (view.base == nullptr) return view.name + " has no accounts";
  if (Counts(*view.expected) != Counts(state->state)) {
    return fmt::format("{}: free is {}, and in the accounts {}", view.name,
                       fmt::join(Counts(state->state), " "),
                       fmt::join(Counts(*view.expected), " "));
  }
  return "";
}

std::string CheckTruth(const NodeView& view, const placement::NodePlacement& truth) {
  const absl::StatusOr<NodeState> state = scheduler::admission::StateFrom(truth);
  if (!state.ok()) return std::string(state.status().message());
  if (view.base == nullptr) return view.name + " has no accounts";
  if (!view.waiting.empty()) {
    return fmt::format("{}: {} still waits", view.name, view.waiting.front().uid);
  }
  if (!(view.expected->pool == state->pool) || view.expected->pods != state->pods) {
    return fmt::format("{}: the accounts are not the kubelet's", view.name);
  }
  return "";
}

}  // namespace test
