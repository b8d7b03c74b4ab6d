#include "agent/content.h"

#include <fmt/format.h>

#include <cstdint>
#include <cstdlib>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>

namespace agent {
namespace {

using placement::NodePlacement;
using placement::Observation;
using placement::PlacedContainer;
using placement::PlacedPod;
using Bytes = std::map<int, std::int64_t>;  // by NUMA node

double Sum(const Bytes& bytes) {
  double sum = 0;
  for (const auto& [node, here] : bytes) sum += static_cast<double>(here);
  return sum;
}

bool Moved(const Bytes& before, const Bytes& now) {
  constexpr double kShare = 0.05;
  constexpr double kBytes = 64 << 20;
  const double all_before = Sum(before);
  const double all_now = Sum(now);
  std::set<int> nodes;
  for (const auto& [node, bytes] : before) nodes.insert(node);
  for (const auto& [node, bytes] : now) nodes.insert(node);
  const auto on = [](const Bytes& bytes, int node) {
    const auto found = bytes.find(node);
    return found == bytes.end() ? 0.0 : static_cast<double>(found->second);
  };
  for (const int node : nodes) {
    const double share_before = all_before > 0 ? on(before, node) / all_before : 0;
    const double share_now = all_now > 0 ? on(now, node) / all_now : 0;
    if (std::abs(share_now - share_before) < kShare) continue;
    if (std::abs(on(now, node) - on(before, node)) >= kBytes) return true;
  }
  return false;
}

bool Moved(const PlacedPod& before, const PlacedPod& now) {
  for (std::size_t i = 0; i < now.containers.size(); ++i) {
    const PlacedContainer& container = now.containers[i];
    if (!container.kernel) continue;
    if (Moved(before.containers[i].kernel->resident_bytes, container.kernel->resident_bytes)) {
      return true;
    }
  }
  return false;
}

// Gives `pod` what another has resident, and the sentence that may speak of it.
PlacedPod WithMemoryOf(PlacedPod pod, const PlacedPod& other) {
  pod.message = other.message;
  for (std::size_t i = 0; i < pod.containers.size() && i < other.containers.size(); ++i) {
    auto& kernel = pod.containers[i].kernel;
    if (kernel && other.containers[i].kernel) {
      kernel->resident_bytes = other.containers[i].kernel->resident_bytes;
    }
  }
  return pod;
}

std::set<std::string> PodsWithMemoryElsewhere(const Observation& observation) {
  std::set<std::string> subjects;
  for (const base::Diagnostic& diagnostic : observation.diagnostics) {
    if (diagnostic.code == "MemoryElsewhere") subjects.insert(diagnostic.subject);
  }
  return subjects;
}

using PodKey = std::tuple<std::string, std::string, std::string, std::string>;
PodKey KeyOf(const PlacedPod& pod) {
  return {pod.namespace_name, pod.name, pod.uid, pod.kubelet_uid};
}

}  // namespace

Difference Compare(const Observation& published, const Observation& now) {
  Difference difference;
  difference.nrt = now.nrt != published.nrt;
  std::map<PodKey, const PlacedPod*> before;
  for (const PlacedPod& pod : published.placement.pods) before.emplace(KeyOf(pod), &pod);
  const std::set<std::string> elsewhere_before = PodsWithMemoryElsewhere(published);
  const std::set<std::string> elsewhere_now = PodsWithMemoryElsewhere(now);

  NodePlacement same = now.placement;
  same.observed_at = published.placement.observed_at;
  same.revision = published.placement.revision;
  for (PlacedPod& pod : same.pods) {
    const auto found = before.find(KeyOf(pod));
    if (found == before.end()) continue;
    const PlacedPod& other = *found->second;
    PlacedPod adapted = WithMemoryOf(pod, other);
    if (adapted != other) continue;
    const std::string subject = fmt::format("pod {}/{}", pod.namespace_name, pod.name);
    difference.resident = difference.resident || Moved(other, pod) ||
                          elsewhere_before.contains(subject) != elsewhere_now.contains(subject);
    pod = std::move(adapted);
  }
  difference.placement = same != published.placement;
  return difference;
}

}  // namespace agent
