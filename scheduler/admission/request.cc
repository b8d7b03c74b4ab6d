#include "scheduler/admission/request.h"

#include <algorithm>
#include <map>

namespace scheduler::admission {
namespace {

using Amounts = std::map<std::string, std::int64_t>;

// Whole CPUs of a container of a Guaranteed pod; a fraction unpins this container only.
std::int64_t ExclusiveCpus(const kube::Container& container) {
  const std::int64_t milli = kube::Amount(container.requests, kube::kCpu);
  return milli > 0 && milli % 1000 == 0 ? milli / 1000 : 0;
}

bool IsMemory(const std::string& name) { return name == kube::kMemory || kube::IsHugePages(name); }

bool IsNative(const std::string& name) {
  return name == kube::kCpu || IsMemory(name) || name == "ephemeral-storage" || name == "storage" ||
         name == "pods";
}

std::vector<std::pair<std::string, std::int64_t>> Select(const kube::Resources& resources,
                                                         bool (*wanted)(const std::string&)) {
  std::vector<std::pair<std::string, std::int64_t>> selected;
  for (const auto& [name, amount] : resources) {
    if (wanted(name)) selected.push_back({name, std::max<std::int64_t>(amount, 0)});
  }
  return selected;
}

// The most that the pod needs at once of one amount: the app containers and sidecars together, or
// an init container with the sidecars that were started before it.
template <class Amount>
std::int64_t Peak(const Request& request, Amount amount) {
  std::int64_t sidecars = 0;
  std::int64_t at_start = 0;
  std::int64_t running = 0;
  for (const ContainerDemand& container : request.containers) {
    const std::int64_t own = amount(container.demand);
    if (!container.init) {
      running = kube::Sum(running, own);
    } else if (container.sidecar) {
      sidecars = kube::Sum(sidecars, own);
    } else {
      at_start = std::max(at_start, kube::Sum(sidecars, own));
    }
  }
  return std::max(kube::Sum(running, sidecars), at_start);
}

std::int64_t AmountOf(const std::vector<std::pair<std::string, std::int64_t>>& amounts,
                      const std::string& name) {
  for (const auto& [own, amount] : amounts) {
    if (own == name) return amount;
  }
  return 0;
}

// The pod's sums. Memory types that only init containers or sidecars ask for are kept apart.
void SumUp(Request& request) {
  Demand& pod = request.pod;
  pod.cpus = Peak(request, [](const Demand& demand) { return demand.cpus; });
  Amounts memory;
  Amounts init_memory;
  Amounts devices;
  for (const ContainerDemand& container : request.containers) {
    for (const auto& [name, amount] : container.demand.devices) devices[name] = 0;
    Amounts& own = container.init ? init_memory : memory;
    for (const auto& [name, amount] : container.demand.memory) own[name] = 0;
  }
  const auto peak_of_memory = [&request](const std::string& name) {
    return Peak(request, [&name](const Demand& d) { return AmountOf(d.memory, name); });
  };
  for (const auto& [name, amount] : memory) pod.memory.push_back({name, peak_of_memory(name)});
  for (const auto& [name, amount] : init_memory) {
    if (memory.contains(name)) continue;
    request.pod_init_memory.push_back({name, peak_of_memory(name)});
  }
  for (auto& [name, amount] : devices) {
    amount = Peak(request, [&name = name](const Demand& d) { return AmountOf(d.devices, name); });
    pod.devices.push_back({name, amount});
  }
}

}  // namespace

Request MakeRequest(const kube::Pod& pod) {
  Request request;
  request.qos = pod.qos;
  request.pod_level = kube::HasPodLevelResources(pod);
  const bool pinned = pod.qos == kube::Qos::kGuaranteed && !request.pod_level;
  for (const auto* list : {&pod.init_containers, &pod.containers}) {
    for (const kube::Container& container : *list) {
      ContainerDemand own;
      own.name = container.name;
      own.init = list == &pod.init_containers;
      own.sidecar = own.init && container.sidecar;
      if (pinned) {
        own.demand.cpus = ExclusiveCpus(container);
        own.demand.memory = Select(container.requests, IsMemory);
      }
      own.demand.devices =
          Select(container.limits, [](const std::string& name) { return !IsNative(name); });
      request.containers.push_back(std::move(own));
    }
  }
  SumUp(request);
  return request;
}

}  // namespace scheduler::admission
