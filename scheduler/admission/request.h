#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "kube/pod.h"

namespace scheduler::admission {

// What one container (or a pod as a whole, under scope pod) asks the managers for.
struct Demand {
  std::int64_t cpus = 0;  // exclusive CPUs; 0: it runs in the shared pool
  std::vector<std::pair<std::string, std::int64_t>> memory;  // type, bytes; sorted; 0 is a request
  std::vector<std::pair<std::string, std::int64_t>>
      devices;  // resource, count; sorted; 0 is a request
  bool operator==(const Demand&) const = default;
};

struct ContainerDemand {
  std::string name;
  bool init = false;  // an init container, sidecar or not
  bool sidecar = false;
  Demand demand;
  bool reuses() const { return init && !sidecar; }  // what it leaves may be used again
  bool operator==(const ContainerDemand&) const = default;
};

// A pod as the managers see it, independent of any node: made once, asked on every node.
struct Request {
  std::vector<ContainerDemand> containers;  // init containers first, in the pod's order
  Demand pod;  // what scope pod merges with: the sums, or the pod's own CPUs and memory
  // Of memory types that only init containers and sidecars ask for: part of the sums since 1.38.
  std::vector<std::pair<std::string, std::int64_t>> pod_init_memory;
  kube::Qos qos = kube::Qos::kBestEffort;
  // spec.resources: the CPU and memory managers leave the pod alone, unless they manage such pods
  // (Settings::pod_level_managers).
  bool pod_level = false;
  // Of such a pod: its containers' exclusive CPUs or memory leave nothing to those that share.
  bool cpus_leave_no_pool = false;
  bool memory_leaves_no_pool = false;
  bool operator==(const Request&) const = default;
};

// Mirrors, as of kubelet 1.35 to 1.38: guaranteedCPUs and podGuaranteedCPUs (cpumanager), the
// memory manager's getContainerRequestedResources and getPodRequestedResources, the device
// manager's use of limits. Every extended resource is taken down: whether it is a device plugin's,
// the node knows.
Request MakeRequest(const kube::Pod& pod);

}  // namespace scheduler::admission
