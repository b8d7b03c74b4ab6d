// What the kubelet (v1.37; the rules are the same since 1.22, where the option exists) refuses at
// its start.
#include <fmt/format.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/quantity.h"
#include "base/text.h"
#include "podresources/kubelet_config.h"
#include "podresources/kubelet_state.h"

namespace podresources {
namespace {

constexpr int kMaxNumaNodes = 8;

bool Is(const Sourced<std::string>& value, std::string_view text) {
  return value.value && *value.value == text;
}

void CheckStatePolicy(const Sourced<std::string>& configured, const std::string& state_policy,
                      const std::string& file, base::Diagnostics& found) {
  if (!configured.value || configured.source == ConfigSource::kState) return;
  if (*configured.value == state_policy) return;
  found.push_back(
      {"StatePolicyDiffers", file,
       fmt::format("policy \"{}\" is configured ({}) and {} is of policy \"{}\": the kubelet does "
                   "not start with both, so it fails now or at its next start. Drain the node, "
                   "stop the kubelet, delete {}, start it",
                   *configured.value, configured.where, file, state_policy, file)});
}

// Bytes by type over all NUMA nodes; nullopt: beyond 64 bits.
std::optional<std::map<std::string, std::int64_t>> SumReservations(
    const std::vector<ReservedMemory>& reservations) {
  std::map<std::string, std::int64_t> sums;
  for (const ReservedMemory& reservation : reservations) {
    std::int64_t& sum = sums[reservation.type];
    if (__builtin_add_overflow(sum, reservation.bytes, &sum)) return std::nullopt;
  }
  return sums;
}

std::string Bytes(std::int64_t bytes) {
  return fmt::format("{} ({} bytes)", base::FormatBytes(bytes), bytes);
}

void CheckMemorySum(std::int64_t reserved, const Sourced<std::int64_t>& wanted,
                    base::Diagnostics& found) {
  if (!wanted.value) return;
  if (*wanted.value == 0 && reserved == 0) {
    found.push_back({"NoReservedMemory", "reservedMemory",
                     "memory policy Static needs memory set aside: give kubeReserved, "
                     "systemReserved or evictionHard memory.available, and the same sum in "
                     "reservedMemory"});
    return;
  }
  if (reserved == *wanted.value) return;
  const bool more = reserved < *wanted.value;
  const std::int64_t difference = more ? *wanted.value - reserved : reserved - *wanted.value;
  found.push_back(
      {"ReservedMemorySum", "reservedMemory",
       fmt::format("reservedMemory is {} over all NUMA nodes; it must be {}, which is kubeReserved "
                   "+ systemReserved + evictionHard memory.available, to the byte: {} {}, or the "
                   "kubelet does not start",
                   Bytes(reserved), Bytes(*wanted.value), more ? "add" : "take away",
                   Bytes(difference))});
}

void CheckReservedMemory(const KubeletConfig& config, base::Diagnostics& found) {
  if (!Is(config.memory_policy, "Static") || !config.reserved_memory.value) return;
  const auto sums = SumReservations(*config.reserved_memory.value);
  if (!sums) {
    found.push_back({"ReservedMemorySum", "reservedMemory",
                     "reservedMemory adds up to more than 2^63 bytes: the kubelet does not start"});
    return;
  }
  const auto memory = sums->find("memory");
  CheckMemorySum(memory == sums->end() ? 0 : memory->second, config.reserved_memory_bytes, found);
  for (const auto& [type, bytes] : *sums) {
    if (type == "memory" || bytes == 0) continue;
    found.push_back(
        {"ReservedHugePages", "reservedMemory",
         fmt::format("reservedMemory has {} of {}; it must be 0, since neither kubeReserved nor "
                     "systemReserved can hold huge pages, or the kubelet does not start",
                     Bytes(bytes), type)});
  }
}

// As Go's strconv.Atoi, on 64-bit machines.
std::optional<std::int64_t> ParseInt(std::string_view text) {
  if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
  return base::ParseNumber<std::int64_t>(text);
}

void CheckNumaNodes(const KubeletConfig& config, int numa_nodes, base::Diagnostics& found) {
  constexpr const char* kOption = "max-allowable-numa-nodes";
  // Policy none starts no topology manager that could refuse.
  if (!config.topology_policy.value || Is(config.topology_policy, "none")) return;
  if (!config.topology_options.value) return;
  std::int64_t limit = kMaxNumaNodes;
  const auto option = config.topology_options.value->find(kOption);
  if (option != config.topology_options.value->end()) {
    const std::optional<std::int64_t> given = ParseInt(option->second);
    if (!given || *given < kMaxNumaNodes) {
      found.push_back(
          {"MaxNumaNodesInvalid", kOption,
           fmt::format("topologyManagerPolicyOptions has {}: \"{}\"; it must be a whole number, {} "
                       "or more, or the kubelet does not start: use \"{}\"",
                       kOption, option->second, kMaxNumaNodes,
                       numa_nodes > kMaxNumaNodes ? numa_nodes : kMaxNumaNodes)});
      return;
    }
    limit = *given;
  }
  if (numa_nodes <= limit) return;
  found.push_back(
      {"TooManyNumaNodes", kOption,
       fmt::format("{} NUMA nodes are more than the {} that topology policy {} allows: the kubelet "
                   "does not start. Set topologyManagerPolicyOptions {}: \"{}\"",
                   numa_nodes, limit, *config.topology_policy.value, kOption, numa_nodes)});
}

void CheckCpus(const KubeletConfig& config, base::Diagnostics& found) {
  if (!Is(config.cpu_policy, "static")) return;
  if (config.reserved_cpus.value && config.reserved_cpus.value->empty() &&
      config.reserved_cpu_milli.value && *config.reserved_cpu_milli.value == 0) {
    found.push_back({"NoReservedCpus", "reservedSystemCPUs",
                     "CPU policy static needs reserved CPUs, or the kubelet does not start: set "
                     "reservedSystemCPUs, or cpu in kubeReserved or systemReserved, to at least "
                     "one CPU"});
  }
  if (!config.cpu_options.value || !Is(config.topology_policy, "single-numa-node")) return;
  const auto option = config.cpu_options.value->find("align-by-socket");
  if (option == config.cpu_options.value->end() || option->second != "true") return;
  found.push_back({"AlignBySocketConflict", "align-by-socket",
                   "the CPU policy option align-by-socket and topology policy single-numa-node "
                   "exclude each other: the kubelet does not start. Take one of them away"});
}

}  // namespace

base::Diagnostics CheckKubeletConfig(const KubeletConfig& config, const KubeletState& state,
                                     int numa_nodes) {
  base::Diagnostics found;
  if (state.cpu) {
    CheckStatePolicy(config.cpu_policy, state.cpu->policy,
                     fmt::format("{}/cpu_manager_state", config.root_dir), found);
  }
  if (state.memory) {
    CheckStatePolicy(config.memory_policy, state.memory->policy,
                     fmt::format("{}/memory_manager_state", config.root_dir), found);
  }
  CheckReservedMemory(config, found);
  CheckCpus(config, found);
  CheckNumaNodes(config, numa_nodes, found);
  return found;
}

}  // namespace podresources
