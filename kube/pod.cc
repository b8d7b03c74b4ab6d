#include "kube/pod.h"

#include <algorithm>

namespace kube {
namespace {

std::int64_t Amount(const Resources& resources, const std::string& name) {
  const auto found = resources.find(name);
  return found == resources.end() ? 0 : found->second;
}

Qos QosOf(const Resources& requests, const Resources& limits, const std::string& resource) {
  const std::int64_t request = Amount(requests, resource);
  if (request != Amount(limits, resource)) return Qos::kBurstable;
  return request == 0 ? Qos::kBestEffort : Qos::kGuaranteed;
}

Qos QosOf(const Resources& requests, const Resources& limits) {
  const Qos cpu = QosOf(requests, limits, kCpu);
  return cpu == QosOf(requests, limits, kMemory) ? cpu : Qos::kBurstable;
}

void Add(Resources& sum, const Resources& more) {
  for (const auto& [name, amount] : more) sum[name] += amount;
}

void Raise(Resources& most, const Resources& other) {
  for (const auto& [name, amount] : other) {
    const auto [entry, added] = most.try_emplace(name, amount);
    if (!added) entry->second = std::max(entry->second, amount);
  }
}

void FillRequests(Resources& requests, const Resources& limits) {
  for (const auto& [name, amount] : limits) requests.try_emplace(name, amount);
}

}  // namespace

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
  for (Container& container : pod.init_containers)
    FillRequests(container.requests, container.limits);
  for (Container& container : pod.containers) FillRequests(container.requests, container.limits);
  if (pod.pod_limits) {
    if (!pod.pod_requests) pod.pod_requests.emplace();
    FillRequests(*pod.pod_requests, *pod.pod_limits);
  }
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

bool HasPodLevelResources(const Pod& pod) {
  for (const auto* list : {&pod.pod_requests, &pod.pod_limits}) {
    if (!*list) continue;
    for (const auto& [name, amount] : **list) {
      if (name == kCpu || name == kMemory || IsHugePages(name)) return true;
    }
  }
  return false;
}

Resources Effective(const Pod& pod, Resources Container::*pick) {
  Resources total;
  for (const Container& container : pod.containers) Add(total, container.*pick);
  Resources sidecars;
  Resources at_start;
  for (const Container& container : pod.init_containers) {
    Resources step = sidecars;
    Add(step, container.*pick);
    if (container.sidecar) {
      Add(total, container.*pick);
      sidecars = step;
    }
    Raise(at_start, step);
  }
  Raise(total, at_start);
  return total;
}

}  // namespace kube
