#include "placement/conditions.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>

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

// What a diagnostic says; "" if there is none of this code.
std::string MessageOf(const base::Diagnostics& diagnostics, std::string_view code) {
  const auto found = std::ranges::find(diagnostics, code, &base::Diagnostic::code);
  return found == diagnostics.end() ? "" : found->message;
}

Condition ConfigKnown(const Facts& facts, const KubeletFacts& kubelet) {
  std::string missing;
  const auto check = [&](const std::string& value, std::string_view name) {
    if (value.empty()) missing += fmt::format("{}{}", missing.empty() ? "" : ", ", name);
  };
  check(kubelet.topology_policy, "topology manager policy");
  // Without a policy, the scope decides nothing.
  if (kubelet.topology_policy != "none") check(kubelet.topology_scope, "topology manager scope");
  check(kubelet.cpu_policy, "CPU manager policy");
  check(kubelet.memory_policy, "memory manager policy");
  const std::string why = MessageOf(facts.config.diagnostics, "ConfigzUnreadable");
  const std::string by_files =
      why.empty() ? "" : fmt::format("The kubelet did not say it itself: {}", why);
  if (!missing.empty()) {
    return {"ConfigKnown", "False", "PartlyUnknown",
            fmt::format("Not known: {}.{}{}", missing, by_files.empty() ? "" : " ", by_files)};
  }
  return {"ConfigKnown", "True", by_files.empty() ? "AllKnown" : "KnownByFiles", by_files};
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

// The condition is there only where a permission is missing.
std::optional<Condition> NodeUnreadable(const Facts& facts) {
  constexpr const char* kType = "NodeUnreadable";
  const std::string why = MessageOf(facts.diagnostics, kType);
  if (why.empty()) return std::nullopt;
  return Condition{
      kType, "True", "PermissionMissing",
      fmt::format("What is written has no owner, unhealthy devices are not told from missing ones, "
                  "and the kubelet is not asked for its configuration: {}",
                  why)};
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
  const std::string old = MessageOf(diagnostics, "StateFilesOld");
  if (!old.empty()) return {"StateKnown", "False", "FilesOld", old};
  const std::string unread = MessageOf(facts.diagnostics, "NodePodsUnreadable");
  if (unread.empty()) return {"StateKnown", "True", "AllRead", ""};
  return {"StateKnown", "True", "PodsByLogFolders",
          fmt::format("The API server does not name the node's pods: {}", unread)};
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
  std::vector<Condition> conditions = {AllocatableKnown(facts, cpus),
                                       ConfigKnown(facts, placement.kubelet),
                                       DevicesRegistered(facts, devices),
                                       KernelAgrees(facts, placement, compared),
                                       PodResourcesReachable(facts),
                                       Settled(facts),
                                       StateKnown(facts, placement.kubelet, diagnostics),
                                       TopologyConsistent(diagnostics)};
  if (auto unreadable = NodeUnreadable(facts)) conditions.push_back(*std::move(unreadable));
  std::ranges::sort(conditions, {}, &Condition::type);
  return conditions;
}

}  // namespace placement
