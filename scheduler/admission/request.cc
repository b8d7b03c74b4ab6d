#include "scheduler/admission/request.h"

#include <algorithm>
#include <map>
#include <set>

namespace scheduler::admission {
namespace {

// Whole CPUs of a container of a Guaranteed pod; a fraction unpins this container only.
std::int64_t ExclusiveCpus(const kube::Resources& requests) {
  const std::int64_t milli = kube::Amount(requests, kube::kCpu);
  return milli > 0 && milli % 1000 == 0 ? milli / 1000 : 0;
}

std::vector<std::pair<std::string, std::int64_t>> Select(const kube::Resources& resources,
                                                         bool (*wanted)(const std::string&)) {
  std::vector<std::pair<std::string, std::int64_t>> selected;
  for (const auto& [name, amount] : resources) {
    if (wanted(name)) selected.push_back({name, std::max<std::int64_t>(amount, 0)});
  }
  return selected;
}

// What a pod needs at once of one amount, container by container in their order: the app containers
// and sidecars together, or an init container with the sidecars that were started before it.
class Need {
 public:
  void Add(const ContainerDemand& container, std::int64_t own) {
    if (!container.init) {
      running_ = kube::Sum(running_, own);
    } else if (container.sidecar) {
      sidecars_ = kube::Sum(sidecars_, own);
    } else {
      at_start_ = std::max(at_start_, kube::Sum(sidecars_, own));
    }
  }
  std::int64_t Most() const { return std::max(kube::Sum(running_, sidecars_), at_start_); }

 private:
  std::int64_t sidecars_ = 0;
  std::int64_t at_start_ = 0;
  std::int64_t running_ = 0;
};

using Needs = std::map<std::string, Need>;  // by resource

// Of a list that is sorted by name.
std::int64_t AmountOf(const std::vector<std::pair<std::string, std::int64_t>>& amounts,
                      const std::string& name) {
  const auto found =
      std::ranges::lower_bound(amounts, name, {}, &std::pair<std::string, std::int64_t>::first);
  return found == amounts.end() || found->first != name ? 0 : found->second;
}

// Whether exclusive parts use up the pod's whole amount though a container needs some of the rest:
// a plain init container while the sidecars before it run, or one that lasts as long as the pod.
template <class Shares, class Amount>
bool LeavesNoPool(const Request& request, std::int64_t whole, Shares shares, Amount amount) {
  std::int64_t lasting = 0;
  bool lasting_one_shares = false;
  for (const ContainerDemand& container : request.containers) {
    if (container.reuses()) {
      if (shares(container.demand) && lasting >= whole) return true;
      continue;
    }
    lasting_one_shares = lasting_one_shares || shares(container.demand);
    lasting = kube::Sum(lasting, amount(container.demand));
  }
  return lasting_one_shares && lasting >= whole;
}

// The pod's sums, in one pass: a pod may name tens of thousands of resources. Memory types that
// only init containers or sidecars ask for are kept apart.
void SumUp(Request& request) {
  Need cpus;
  Needs memory;
  Needs devices;
  std::set<std::string> of_apps;
  for (const ContainerDemand& container : request.containers) {
    cpus.Add(container, container.demand.cpus);
    for (const auto& [name, count] : container.demand.devices) devices[name].Add(container, count);
    for (const auto& [name, bytes] : container.demand.memory) {
      memory[name].Add(container, bytes);
      if (!container.init) of_apps.insert(name);
    }
  }
  Demand& pod = request.pod;
  pod.cpus = cpus.Most();
  for (const auto& [name, need] : devices) pod.devices.push_back({name, need.Most()});
  for (const auto& [name, need] : memory) {
    auto& list = of_apps.contains(name) ? pod.memory : request.pod_init_memory;
    list.push_back({name, need.Most()});
  }
}

// A pod's own resources. All its containers live on them: those with exclusive CPUs or memory get
// parts, the others share the rest (validatePodScopeResources).
void UsePodsOwn(const kube::Pod& pod, Request& request) {
  request.pod.cpus = 0;
  request.pod.memory.clear();
  request.pod_init_memory.clear();
  if (pod.qos != kube::Qos::kGuaranteed || !pod.pod_requests) return;
  const kube::Resources& own = *pod.pod_requests;
  request.pod.cpus = ExclusiveCpus(own);
  for (const auto& [name, bytes] : Select(own, kube::IsMemory)) {
    if (bytes > 0) request.pod.memory.push_back({name, bytes});
  }
  request.cpus_leave_no_pool = LeavesNoPool(
      request, request.pod.cpus, [](const Demand& demand) { return demand.cpus == 0; },
      [](const Demand& demand) { return demand.cpus; });
  for (const auto& [name, bytes] : request.pod.memory) {
    const bool none = LeavesNoPool(
        request, bytes, [](const Demand& demand) { return demand.memory.empty(); },
        [&name = name](const Demand& demand) { return AmountOf(demand.memory, name); });
    request.memory_leaves_no_pool = request.memory_leaves_no_pool || none;
  }
}

// Whether the managers of a pod with resources of its own see this container as Guaranteed
// (cm/qos, IsContainerEquivalentQOSGuaranteed).
bool LooksGuaranteed(const kube::Container& container) {
  for (const char* name : {kube::kCpu, kube::kMemory}) {
    const std::int64_t request = kube::Amount(container.requests, name);
    if (request == 0 || request != kube::Amount(container.limits, name)) return false;
  }
  return true;
}

}  // namespace

Request MakeRequest(const kube::Pod& pod) {
  Request request;
  request.qos = pod.qos;
  request.pod_level = kube::HasPodLevelResources(pod);
  const bool guaranteed = pod.qos == kube::Qos::kGuaranteed;
  for (const auto* list : {&pod.init_containers, &pod.containers}) {
    for (const kube::Container& container : *list) {
      ContainerDemand own;
      own.name = container.name;
      own.init = list == &pod.init_containers;
      own.sidecar = own.init && container.sidecar;
      if (guaranteed && (!request.pod_level || LooksGuaranteed(container))) {
        own.demand.cpus = ExclusiveCpus(container.requests);
        own.demand.memory = Select(container.requests, kube::IsMemory);
      }
      own.demand.devices = Select(container.limits, kube::MayBeDevice);
      request.containers.push_back(std::move(own));
    }
  }
  SumUp(request);
  if (request.pod_level) UsePodsOwn(pod, request);
  return request;
}

}  // namespace scheduler::admission
