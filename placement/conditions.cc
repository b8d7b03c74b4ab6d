#include "placement/conditions.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace placement {
namespace {

std::string ReasonOf(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kNotFound:
      return "SocketMissing";
    case absl::StatusCode::kPermissionDenied:
      return "PermissionDenied";
    case absl::StatusCode::kUnavailable:
      return "NotAnswering";
    case absl::StatusCode::kResourceExhausted:
      return "RateLimited";
    case absl::StatusCode::kOutOfRange:
      return "ReplyTooLarge";
    case absl::StatusCode::kUnimplemented:
      return "NotSupported";
    case absl::StatusCode::kInvalidArgument:
      return "InvalidAnswer";
    default:
      return "Failed";
  }
}

Condition PodResourcesReachable(const Facts& facts) {
  if (facts.assignments.ok()) {
    return {"PodResourcesReachable", "True", "Answered", "The kubelet answers."};
  }
  return {"PodResourcesReachable", "False", ReasonOf(facts.assignments.status()),
          std::string(facts.assignments.status().message())};
}

Condition AllocatableKnown(const Facts& facts, const CpuAccount& cpus) {
  constexpr const char* kType = "AllocatableKnown";
  if (!facts.assignments.ok()) return {kType, "Unknown", "NoAnswer", ""};
  if (facts.assignments->allocatable) return {kType, "True", "KubeletSays", ""};
  return {kType, "False", "Estimated",
          fmt::format("The kubelet does not offer GetAllocatableResources: what it can hand out is "
                      "estimated from the hardware{}, and devices that nobody holds are not known.",
                      cpus.estimated ? " less the reserved CPUs and memory" : "")};
}

Condition ConfigKnown(const KubeletFacts& kubelet) {
  std::string missing;
  const auto check = [&](const std::string& value, std::string_view name) {
    if (value.empty()) missing += fmt::format("{}{}", missing.empty() ? "" : ", ", name);
  };
  check(kubelet.topology_policy, "topology manager policy");
  // Without a policy, the scope decides nothing.
  if (kubelet.topology_policy != "none") check(kubelet.topology_scope, "topology manager scope");
  check(kubelet.cpu_policy, "CPU manager policy");
  check(kubelet.memory_policy, "memory manager policy");
  if (missing.empty()) return {"ConfigKnown", "True", "AllKnown", ""};
  return {"ConfigKnown", "False", "PartlyUnknown", fmt::format("Not known: {}.", missing)};
}

Condition DevicesRegistered(const Facts& facts, const DeviceAccount& devices) {
  constexpr const char* kType = "DevicesRegistered";
  if (!facts.assignments.ok()) return {kType, "Unknown", "NoAnswer", ""};
  if (devices.unregistered.empty()) return {kType, "True", "AllRegistered", ""};
  std::string resources;
  for (const std::string& resource : devices.unregistered) {
    resources += fmt::format("{}{}", resources.empty() ? "" : ", ", resource);
  }
  return {kType, "False", "Settling",
          fmt::format("No healthy device of {} yet: what is free of it is not known.", resources)};
}

Condition KernelAgrees(const Facts& facts, const NodePlacement& placement,
                       const Compared& compared) {
  constexpr const char* kType = "KernelAgrees";
  if (!facts.enforced.ok()) {
    return {kType, "Unknown", "NotRead", std::string(facts.enforced.status().message())};
  }
  if (!facts.assignments.ok()) return {kType, "Unknown", "NoAnswer", ""};
  if (placement.summary.drifted > 0) {
    return {kType, "False", "Drifted",
            fmt::format("{} of {} pods do not run where the kubelet put them.",
                        placement.summary.drifted, placement.summary.pods)};
  }
  if (compared.count == compared.of) return {kType, "True", "AllAgree", ""};
  return {kType, compared.count > 0 ? "True" : "Unknown", "PartlyCompared",
          fmt::format("{} of {} containers with CPUs of their own could be compared.",
                      compared.count, compared.of)};
}

Condition Settled(const Facts& facts) {
  if (facts.settled) return {"Settled", "True", "FilesUnchanged", ""};
  return {"Settled", "False", "FilesChanging",
          "The kubelet's state files changed, or were half of a change, at every attempt to read "
          "them."};
}

Condition StateKnown(const Facts& facts, const KubeletFacts& kubelet,
                     const base::Diagnostics& diagnostics) {
  std::string missing;
  const auto check = [&](bool wanted, bool there, std::string_view name) {
    if (wanted && !there) missing += fmt::format("{}{}", missing.empty() ? "" : ", ", name);
  };
  check(kubelet.cpu_policy != "none", facts.state.cpu.has_value(), "cpu_manager_state");
  check(kubelet.memory_policy != "None", facts.state.memory.has_value(), "memory_manager_state");
  check(true, facts.state.devices.has_value(), "kubelet_internal_checkpoint");
  // It tells the pods' UIDs, which the API server tells as well.
  check(!facts.api_pods, facts.state.pod_logs.has_value(), "the folder of pod logs");
  if (!missing.empty()) {
    return {"StateKnown", "False", "FilesMissing", fmt::format("Not read: {}.", missing)};
  }
  const auto old = std::ranges::find(diagnostics, "StateFilesOld", &base::Diagnostic::code);
  if (old != diagnostics.end()) return {"StateKnown", "False", "FilesOld", old->message};
  return {"StateKnown", "True", "AllRead", ""};
}

Condition TopologyConsistent(const base::Diagnostics& diagnostics) {
  constexpr std::array<std::string_view, 5> kContradictions = {
      "CpusUnusable", "DeviceClaimsUnknownNumaNode", "DeviceHeldTwice", "DeviceLocalityDisagrees",
      "PolicyDiffersFromState"};
  std::string found;
  for (const std::string_view code : kContradictions) {
    const auto count = std::ranges::count(diagnostics, code, &base::Diagnostic::code);
    if (count > 0) found += fmt::format("{}{} {}", found.empty() ? "" : ", ", count, code);
  }
  if (found.empty()) return {"TopologyConsistent", "True", "NoContradiction", ""};
  return {"TopologyConsistent", "False", "SourcesDisagree",
          fmt::format("The kubelet, its plugins and the kernel disagree: {}.", found)};
}

}  // namespace

std::vector<Condition> MakeConditions(const Facts& facts, const NodePlacement& placement,
                                      const Compared& compared, const CpuAccount& cpus,
                                      const DeviceAccount& devices,
                                      const base::Diagnostics& diagnostics) {
  return {AllocatableKnown(facts, cpus),
          ConfigKnown(placement.kubelet),
          DevicesRegistered(facts, devices),
          KernelAgrees(facts, placement, compared),
          PodResourcesReachable(facts),
          Settled(facts),
          StateKnown(facts, placement.kubelet, diagnostics),
          TopologyConsistent(diagnostics)};
}

}  // namespace placement
