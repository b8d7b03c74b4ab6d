#include "kube/pod.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace kube {
namespace {

Qos QosOf(const Resources& requests, const Resources& limits, const std::string& resource) {
  const std::int64_t request = Amount(requests, resource);
  if (request != Amount(limits, resource)) return Qos::kBurstable;
  return request == 0 ? Qos::kBestEffort : Qos::kGuaranteed;
}

Qos QosOf(const Resources& requests, const Resources& limits) {
  const Qos cpu = QosOf(requests, limits, kCpu);
  return cpu == QosOf(requests, limits, kMemory) ? cpu : Qos::kBurstable;
}

void Add(Resources& sum, const std::string& name, std::int64_t amount) {
  std::int64_t& entry = sum[name];
  entry = Sum(entry, amount);
}

void Raise(Resources& most, const std::string& name, std::int64_t amount) {
  const auto [entry, added] = most.try_emplace(name, amount);
  if (!added) entry->second = std::max(entry->second, amount);
}

// The containers together, without what spec.resources and the overhead say.
Resources OfContainers(const Pod& pod, Resources Container::*pick) {
  Resources total;
  for (const Container& container : pod.containers) {
    for (const auto& [name, amount] : container.*pick) Add(total, name, amount);
  }
  Resources sidecars;  // those started so far
  Resources at_start;
  for (const Container& container : pod.init_containers) {
    for (const auto& [name, amount] : container.*pick) {
      std::int64_t& before = sidecars[name];
      const std::int64_t step = Sum(before, amount);
      if (container.sidecar) {
        before = step;
        Add(total, name, amount);
      }
      Raise(at_start, name, step);
    }
  }
  for (const auto& [name, amount] : at_start) Raise(total, name, amount);
  return total;
}

bool EveryContainerLimits(const Pod& pod, const std::string& resource) {
  const auto limited = [&](const Container& container) {
    return container.limits.contains(resource);
  };
  return std::ranges::all_of(pod.init_containers, limited) &&
         std::ranges::all_of(pod.containers, limited);
}

// Steps 2 to 4 of ApplyDefaults.
void DefaultPodLevel(Pod& pod) {
  Resources requests = pod.pod_requests.value_or(Resources());
  Resources limits = pod.pod_limits.value_or(Resources());
  if (requests.empty() && limits.empty()) return;
  const Resources together = OfContainers(pod, &Container::limits);
  for (const auto& [name, amount] : together) {
    if (IsHugePages(name) && !requests.contains(name)) limits.try_emplace(name, amount);
  }
  for (const auto& [name, amount] : OfContainers(pod, &Container::requests)) {
    if (IsPodLevel(name) && !IsHugePages(name)) requests.try_emplace(name, amount);
  }
  for (const auto& [name, amount] : limits) {
    if (IsPodLevel(name)) requests.try_emplace(name, amount);
  }
  for (const auto& [name, amount] : requests) {
    if (!IsPodLevel(name) || limits.contains(name) || !EveryContainerLimits(pod, name)) continue;
    const auto limit = together.find(name);
    if (limit != together.end()) limits[name] = std::max(limit->second, amount);
  }
  if (!requests.empty()) pod.pod_requests = std::move(requests);
  if (!limits.empty()) pod.pod_limits = std::move(limits);
}

}  // namespace

std::int64_t Sum(std::int64_t a, std::int64_t b) {
  using Limits = std::numeric_limits<std::int64_t>;
  std::int64_t sum = 0;
  if (!__builtin_add_overflow(a, b, &sum)) return sum;
  return a > 0 ? Limits::max() : Limits::min();
}

std::int64_t Amount(const Resources& resources, const std::string& name) {
  const auto found = resources.find(name);
  return found == resources.end() ? 0 : found->second;
}

Qos ComputeQos(const Pod& pod) {
  if (HasPodLevelResources(pod)) {
    return QosOf(pod.pod_requests.value_or(Resources()), pod.pod_limits.value_or(Resources()));
  }
  std::optional<Qos> qos;
  for (const auto* list : {&pod.init_containers, &pod.containers}) {
    for (const Container& container : *list) {
      const Qos own = QosOf(container.requests, container.limits);
      if (own == Qos::kBurstable || qos.value_or(own) != own) return Qos::kBurstable;
      qos = own;
    }
  }
  return qos.value_or(Qos::kBestEffort);
}

void ApplyDefaults(Pod& pod) {
  for (auto* list : {&pod.init_containers, &pod.containers}) {
    for (Container& container : *list) {
      container.requests.insert(container.limits.begin(), container.limits.end());
    }
  }
  DefaultPodLevel(pod);
}

const char* ToString(Qos qos) {
  switch (qos) {
    case Qos::kBestEffort:
      return "BestEffort";
    case Qos::kBurstable:
      return "Burstable";
    case Qos::kGuaranteed:
      return "Guaranteed";
  }
  return "BestEffort";
}

bool IsHugePages(const std::string& resource) { return resource.starts_with("hugepages-"); }

bool IsMemory(const std::string& resource) { return resource == kMemory || IsHugePages(resource); }

bool MayBeDevice(const std::string& resource) {
  return resource != kCpu && !IsMemory(resource) && resource != "ephemeral-storage" &&
         resource != "storage" && resource != "pods";
}

bool IsPodLevel(const std::string& resource) { return resource == kCpu || IsMemory(resource); }

bool HasPodLevelResources(const Pod& pod) {
  for (const auto* list : {&pod.pod_requests, &pod.pod_limits}) {
    if (!*list) continue;
    for (const auto& [name, amount] : **list) {
      if (IsPodLevel(name)) return true;
    }
  }
  return false;
}

Resources Effective(const Pod& pod, Resources Container::*pick) {
  const bool limits = pick == &Container::limits;
  Resources total = OfContainers(pod, pick);
  const Resources own = (limits ? pod.pod_limits : pod.pod_requests).value_or(Resources());
  for (const auto& [name, amount] : own) {
    if (IsPodLevel(name)) total[name] = amount;
  }
  for (const auto& [name, amount] : pod.overhead) {
    if (limits && Amount(total, name) == 0) continue;
    Add(total, name, amount);
  }
  return total;
}

}  // namespace kube
