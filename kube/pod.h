#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

// A Pod as a plain request: the part of a Kubernetes Pod that the kubelet's admission looks at.
namespace kube {

// Amounts by resource name: "cpu" in milli-CPUs, everything else in whole units (bytes, devices).
// A name with amount 0 is present: the kubelet treats it differently from an absent one.
using Resources = std::map<std::string, std::int64_t>;

inline constexpr const char* kCpu = "cpu";
inline constexpr const char* kMemory = "memory";

// a + b; the largest or the smallest value where the sum is beyond it. Amounts come from people and
// may be absurd.
std::int64_t Sum(std::int64_t a, std::int64_t b);

// The amount of that name, 0 if there is none.
std::int64_t Amount(const Resources& resources, const std::string& name);

struct Container {
  std::string name = {};
  bool sidecar = false;  // an init container with restartPolicy Always
  Resources requests = {};
  Resources limits = {};
  bool operator==(const Container&) const = default;
};

enum class Qos { kBestEffort, kBurstable, kGuaranteed };

struct Pod {
  std::string uid = {};
  std::string namespace_name = {};
  std::string name = {};
  std::string node_name = {};                   // "" while not bound
  std::vector<Container> init_containers = {};  // in the pod's order
  std::vector<Container> containers = {};
  std::optional<Resources> pod_requests = {};  // pod-level resources (spec.resources)
  std::optional<Resources> pod_limits = {};
  Resources overhead = {};
  Qos qos = Qos::kBestEffort;  // the one that the kubelet goes by
  bool operator==(const Pod&) const = default;
};

// The QoS class that follows from the resources (1.37, helper/qos, ComputePodQOS): Guaranteed if
// every container, init containers included, has equal non-zero requests and limits for both cpu
// and memory; BestEffort if none has any; else Burstable. With pod-level resources these alone
// decide. The kubelet itself goes by status.qosClass where that is set; that is Pod::qos.
Qos ComputeQos(const Pod& pod);

// Fills in what the API server fills in when a pod is created (1.37, SetDefaults_Pod and then
// DefaultPodLevelResources):
//   1. A container's missing request equals its limit.
// And if spec.resources holds anything:
//   2. A missing pod-level limit of huge pages is the containers' together, unless the pod has a
//      request for them.
//   3. A missing pod-level request of cpu or memory is the containers' together; otherwise a
//      missing pod-level request equals the pod-level limit.
//   4. A missing pod-level limit is the containers' together, at least the pod-level request, if
//      every container has a limit of that resource.
void ApplyDefaults(Pod& pod);

// "Guaranteed", "Burstable", "BestEffort".
const char* ToString(Qos qos);

// "hugepages-2Mi" and the like.
bool IsHugePages(const std::string& resource);

// "memory" or huge pages.
bool IsMemory(const std::string& resource);

// Whether a device plugin may offer the resource: it is none of Kubernetes' own.
bool MayBeDevice(const std::string& resource);

// Whether a resource counts in spec.resources: cpu, memory, huge pages.
bool IsPodLevel(const std::string& resource);

// Whether the kubelet regards the pod as one with pod-level resources: spec.resources names one
// that counts there.
bool HasPodLevelResources(const Pod& pod);

// What a pod takes over its life, as scheduler and kubelet count it on a node (component-helpers
// 0.37, resource, PodRequests and PodLimits). `pick` is &Container::requests or &Container::limits.
// Resource by resource it is the sum of the containers and sidecars, or an init container with the
// sidecars started before it, whichever is more; a pod-level amount takes its place; the overhead
// comes on top, of limits only where there is one.
Resources Effective(const Pod& pod, Resources Container::*pick);

}  // namespace kube
