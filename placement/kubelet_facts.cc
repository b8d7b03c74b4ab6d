#include "placement/kubelet_facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

namespace placement {
namespace {

using podresources::ConfigSource;
using podresources::Sourced;

std::string SourceOf(const podresources::KubeletConfig& config,
                     const podresources::KubeletState& state) {
  bool file = false;
  bool from_state = state.cpu || state.memory;
  for (const ConfigSource source : {config.topology_policy.source, config.topology_scope.source,
                                    config.cpu_policy.source, config.memory_policy.source}) {
    if (source == ConfigSource::kConfigz) return "configz";
    file |= source == ConfigSource::kFile || source == ConfigSource::kDefault ||
            source == ConfigSource::kCommandLine;
    from_state |= source == ConfigSource::kState;
  }
  if (file) return "file";
  return from_state ? "state" : "unknown";
}

// The policy in force, of "cpu" or "memory".
std::string PolicyInForce(const char* manager, const Sourced<std::string>& configured,
                          const std::string& in_state, bool kubelet_answers,
                          base::Diagnostics& diagnostics) {
  const std::string wanted = configured.value.value_or("");
  if (!in_state.empty() && !wanted.empty() && in_state != wanted) {
    diagnostics.push_back(
        {.code = "PolicyDiffersFromState",
         .subject = fmt::format("{} manager", manager),
         .message = fmt::format(
             "The kubelet is configured with the {} manager policy \"{}\", but its state file was "
             "written under \"{}\": a kubelet that starts now refuses to run until "
             "{}_manager_state "
             "is removed.",
             manager, wanted, in_state, manager)});
  }
  if (kubelet_answers && !in_state.empty()) return in_state;
  return wanted.empty() ? in_state : wanted;
}

bool ListsExclusiveCpus(const podresources::Assignments& assignments) {
  return std::ranges::any_of(assignments.pods, [](const podresources::Pod& pod) {
    return std::ranges::any_of(pod.containers, [](const podresources::Container& container) {
      return !container.cpus.empty();
    });
  });
}

std::optional<base::CpuSet> ReservedCpus(const Facts& facts, const KubeletFacts& kubelet) {
  if (facts.config.reserved_cpus.value) return facts.config.reserved_cpus.value;
  if (!HasStaticCpus(kubelet) || !facts.assignments.ok() || !facts.assignments->allocatable) {
    return std::nullopt;
  }
  const base::CpuSet& allocatable = facts.assignments->allocatable->cpus;
  if (allocatable.empty()) return std::nullopt;
  base::CpuSet all = facts.topology.OnlineCpus();
  // CPUs that were added later are in no set of the kubelet and are not reserved either. Under
  // strict-cpu-reservation the reserved ones are in none, too.
  const auto strict = kubelet.cpu_options.find("strict-cpu-reservation");
  const bool is_strict = strict != kubelet.cpu_options.end() && strict->second == "true";
  if (facts.state.cpu && !is_strict) {
    base::CpuSet known = facts.state.cpu->default_cpus;
    for (const auto& [uid, containers] : facts.state.cpu->entries) {
      for (const auto& [name, cpus] : containers) known |= cpus;
    }
    for (const auto& [uid, cpus] : facts.state.cpu->pod_entries) known |= cpus;
    all &= known;
  }
  return all - allocatable;
}

void FillReservedMemory(const Facts& facts, KubeletFacts& kubelet) {
  if (facts.config.reserved_memory.value) {
    for (const podresources::ReservedMemory& reserved : *facts.config.reserved_memory.value) {
      kubelet.reserved_memory.push_back(
          {.numa_node = reserved.numa_node, .type = reserved.type, .bytes = reserved.bytes});
    }
  } else if (facts.state.memory) {
    for (const auto& [id, node] : facts.state.memory->nodes) {
      for (const auto& [type, table] : node.memory) {
        if (table.system_reserved <= 0) continue;
        kubelet.reserved_memory.push_back(
            {.numa_node = id, .type = type, .bytes = table.system_reserved});
      }
    }
  }
  std::ranges::sort(kubelet.reserved_memory, {}, [](const KubeletFacts::ReservedMemory& reserved) {
    return std::tuple(reserved.numa_node, reserved.type, reserved.bytes);
  });
}

}  // namespace

bool HasStaticCpus(const KubeletFacts& kubelet) { return kubelet.cpu_policy == "static"; }
bool HasStaticMemory(const KubeletFacts& kubelet) { return kubelet.memory_policy == "Static"; }

KubeletFacts GatherKubeletFacts(const Facts& facts, base::Diagnostics& diagnostics) {
  const podresources::KubeletConfig& config = facts.config;
  KubeletFacts kubelet;
  kubelet.version = config.version.value.value_or("");
  kubelet.started_at = config.started_at;
  kubelet.config_source = SourceOf(config, facts.state);
  kubelet.feature_gates = config.feature_gates.value.value_or(podresources::Options());
  kubelet.topology_policy = config.topology_policy.value.value_or("");
  kubelet.topology_scope = config.topology_scope.value.value_or("");
  kubelet.topology_options = config.topology_options.value.value_or(podresources::Options());
  kubelet.cpu_options = config.cpu_options.value.value_or(podresources::Options());
  const bool answers = facts.assignments.ok();
  kubelet.cpu_policy =
      PolicyInForce("cpu", config.cpu_policy, facts.state.cpu ? facts.state.cpu->policy : "",
                    answers, diagnostics);
  kubelet.memory_policy =
      PolicyInForce("memory", config.memory_policy,
                    facts.state.memory ? facts.state.memory->policy : "", answers, diagnostics);
  if (answers && kubelet.cpu_policy.empty() && ListsExclusiveCpus(*facts.assignments)) {
    kubelet.cpu_policy = "static";
  }
  if (answers && facts.assignments->allocatable) {
    const podresources::Allocatable& allocatable = *facts.assignments->allocatable;
    if (kubelet.cpu_policy.empty()) {
      kubelet.cpu_policy = allocatable.cpus.empty() ? "none" : "static";
    }
    if (kubelet.memory_policy.empty()) {
      kubelet.memory_policy = allocatable.memory.empty() ? "None" : "Static";
    }
  }
  kubelet.reserved_cpus = ReservedCpus(facts, kubelet);
  FillReservedMemory(facts, kubelet);
  return kubelet;
}

base::CpuSet EstimateReservedCpus(const hwinfo::Topology& topology, std::int64_t milli) {
  std::int64_t wanted = (milli + 999) / 1000;
  base::CpuSet reserved;
  for (const bool whole_cores : {true, false}) {
    for (const hwinfo::Cpu& cpu : topology.cpus) {
      if (wanted <= 0 || reserved.Contains(cpu.id)) continue;
      const base::CpuSet taken = whole_cores ? cpu.siblings : base::CpuSet{cpu.id};
      if (taken.size() > wanted || taken.empty()) continue;
      reserved |= taken;
      wanted -= taken.size();
    }
  }
  return reserved;
}

}  // namespace placement
