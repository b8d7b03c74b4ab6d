#include "scheduler/reconcile/observed.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "base/status_macros.h"
#include "scheduler/admission/wants.h"

namespace scheduler::reconcile {
namespace {

using admission::Holding;
using admission::Machine;
using admission::Request;
using admission::Wants;
using placement::NodePlacement;
using placement::NumaNodePlacement;

// Each CPU a core of its own, each NUMA node a socket.
void InventCores(NumaNodePlacement& numa) {
  placement::CoreGroup group{.socket = numa.id, .l3 = numa.id, .cores = {}};
  for (const int id : numa.cpus) group.cores.push_back(base::CpuSet{id});
  numa.core_groups.push_back(std::move(group));
}

// Fills in what an older agent does not publish, and says what that is and whom it matters to.
base::Diagnostics FillGaps(NodePlacement& node, ledger::Roughly& roughly) {
  base::Diagnostics gaps;
  const auto add = [&](const char* code, std::string message, bool ledger::Roughly::*matters_to) {
    roughly.*matters_to = true;
    const base::Diagnostic gap{code, node.node_name, std::move(message)};
    if (std::ranges::find(gaps, gap) == gaps.end()) gaps.push_back(gap);
  };
  const placement::KubeletFacts& kubelet = node.kubelet;
  if (kubelet.topology_scope.empty()) {
    add("ScopeMissing", "the scope is taken to be container", &ledger::Roughly::several);
  }
  if (kubelet.version.empty()) {
    add("VersionMissing", "the kubelet is taken to be 1.37", &ledger::Roughly::all);
  }
  for (NumaNodePlacement& numa : node.numa_nodes) {
    if (!numa.cpus.empty() && numa.core_groups.empty()) {
      InventCores(numa);
      add("CoresMissing", "each CPU is taken to be a core: full-pcpus-only is not checked",
          &ledger::Roughly::cpus);
    }
    if (kubelet.cpu_policy == "static" && !numa.free_cpus) {
      add("FreeCpusMissing", "CPUs that no pod is seen to hold are taken to be free",
          &ledger::Roughly::cpus);
    }
    if (kubelet.memory_policy == "Static" && !numa.memory_group) {
      add("MemoryGroupMissing", "memory groups are those of the blocks that pods are seen to hold",
          &ledger::Roughly::memory);
    }
  }
  std::ranges::sort(gaps);
  return gaps;
}

// "False" only: a condition that is missing or unknown is held against nobody.
bool IsCurrent(const NodePlacement& node) {
  return std::ranges::none_of(node.conditions, [](const placement::Condition& condition) {
    return (condition.type == "PodResourcesReachable" || condition.type == "Settled") &&
           condition.status == "False";
  });
}

std::vector<std::string> ListOfKnown(const NodePlacement& node) {
  std::vector<std::string> known = node.known_pods;
  for (const placement::PlacedPod& pod : node.pods) known.push_back(pod.uid);
  std::ranges::sort(known);
  known.erase(std::unique(known.begin(), known.end()), known.end());
  known.shrink_to_fit();
  return known;
}

// Each manager gives a container all at once, on uneven machines fewer CPUs than it wants:
// something of each kind is all.
bool Holds(const Wants& wants, const Holding& holding) {
  const bool devices = std::ranges::all_of(wants.devices, [&](const auto& wanted) {
    const auto held =
        std::ranges::find(holding.devices, wanted.first, &std::pair<int, admission::Bits>::first);
    return wanted.second == 0 || (held != holding.devices.end() && !held->second.None());
  });
  const bool memory = std::ranges::all_of(wants.memory, [&](const auto& wanted) {
    const auto block =
        std::ranges::find(holding.memory, wanted.first, &admission::MemoryBlock::type);
    return wanted.second == 0 || block != holding.memory.end();
  });
  return devices && memory && (wants.cpus == 0 || !holding.cpus.None());
}

// Memory of 0 bytes is a block nevertheless; no devices are none.
bool IsNothing(const Wants& wants) {
  return wants.cpus == 0 && wants.memory.empty() &&
         std::ranges::all_of(wants.devices, [](const auto& wanted) { return wanted.second == 0; });
}

}  // namespace

bool Observed::Lists(const std::string& uid) const {
  return std::ranges::binary_search(known, uid);
}

absl::StatusOr<Observed> Observe(NodePlacement node, admission::Machines& machines) {
  if (!node.observed_at) return absl::NotFoundError("its agent has no data");
  if (node.numa_nodes.empty()) return absl::NotFoundError("it names no NUMA nodes");
  if (node.kubelet.topology_policy.empty()) {
    return absl::NotFoundError("it does not tell the topology manager's policy");
  }
  Observed observed;
  observed.gaps = FillGaps(node, observed.roughly);
  for (placement::PlacedPod& pod : node.pods) {
    if (pod.uid.empty()) pod.uid = pod.namespace_name + "/" + pod.name;
  }
  const auto grade = observed.gaps.empty() ? admission::Grade::kExact : admission::Grade::kCoarse;
  ASSIGN_OR_RETURN(admission::NodeState state, admission::StateFrom(node, {}, grade));
  state.machine = machines.Share(state.machine);
  observed.known = ListOfKnown(node);
  observed.current = IsCurrent(node);
  observed.boot_id = std::move(node.boot_id);
  observed.kubelet = std::move(node.kubelet);
  observed.state = std::make_shared<const admission::NodeState>(std::move(state));
  return observed;
}

bool IsComplete(const Machine& machine, const Request& request, const std::vector<Holding>& held) {
  const bool managed = admission::ManagesPod(machine.settings, request);
  const bool own = std::ranges::find(held, "", &Holding::container) != held.end();
  bool lasting = own;  // some container that lasts must hold something
  for (const admission::ContainerDemand& container : request.containers) {
    const Wants wants(machine, container.demand, managed && !own);
    if (container.reuses() || IsNothing(wants)) continue;
    const auto holding = std::ranges::find(held, container.name, &Holding::container);
    if (holding == held.end() || !Holds(wants, *holding)) return false;
    lasting = true;
  }
  return lasting || !held.empty() || !WantsSomething(machine, request);
}

bool WantsSomething(const Machine& machine, const Request& request) {
  const bool managed = admission::ManagesPod(machine.settings, request);
  if (!IsNothing(Wants(machine, request.pod, managed))) return true;
  return std::ranges::any_of(request.containers, [&](const auto& container) {
    return !IsNothing(Wants(machine, container.demand, managed));
  });
}

}  // namespace scheduler::reconcile
