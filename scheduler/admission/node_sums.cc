#include "scheduler/admission/node_sums.h"

#include <limits>
#include <utility>
#include <vector>

namespace scheduler::admission {
namespace {

std::int64_t Amount(const kube::Resources& resources, const std::string& name) {
  const auto found = resources.find(name);
  return found == resources.end() ? 0 : found->second;
}

std::int64_t Sum(std::int64_t a, std::int64_t b) {
  std::int64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) return std::numeric_limits<std::int64_t>::max();
  return sum;
}

// What the pod counts for: its effective requests and its overhead.
kube::Resources Requested(const kube::Pod& pod) {
  kube::Resources requested = kube::Effective(pod, &kube::Container::requests);
  if (pod.pod_requests) {
    for (const auto& [name, amount] : *pod.pod_requests) requested[name] = amount;
  }
  for (const auto& [name, amount] : pod.overhead) {
    requested[name] = Sum(Amount(requested, name), amount);
  }
  return requested;
}

}  // namespace

std::string NodeSums::Check(const kube::Pod& pod) const {
  const kube::Resources own = Requested(pod);
  std::vector<std::string> names = {kube::kCpu, kube::kMemory};
  for (const auto& [name, amount] : own) {
    if (name != kube::kCpu && name != kube::kMemory) names.push_back(name);
  }
  for (const std::string& name : names) {
    const auto limit = allocatable_.find(name);
    const std::int64_t wanted = Amount(own, name);
    if (limit == allocatable_.end() || wanted == 0) continue;
    if (Sum(Amount(requested_, name), wanted) > limit->second) return "OutOf" + name;
  }
  return "";
}

void NodeSums::Add(const kube::Pod& pod) {
  for (const auto& [name, amount] : Requested(pod)) {
    requested_[name] = Sum(Amount(requested_, name), amount);
  }
}

void NodeSums::Remove(const kube::Pod& pod) {
  for (const auto& [name, amount] : Requested(pod)) requested_[name] -= amount;
}

}  // namespace scheduler::admission
