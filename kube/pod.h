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

struct Container {
  std::string name;
  bool sidecar = false;  // an init container with restartPolicy Always
  Resources requests;    // after defaulting: a missing request equals the limit
  Resources limits;
  bool operator==(const Container&) const = default;
};

enum class Qos { kBestEffort, kBurstable, kGuaranteed };

struct Pod {
  std::string uid;
  std::string namespace_name;
  std::string name;
  std::string node_name;                   // "" while not bound
  std::vector<Container> init_containers;  // in the pod's order
  std::vector<Container> containers;
  std::optional<Resources> pod_requests;  // pod-level resources (spec.resources)
  std::optional<Resources> pod_limits;
  Resources overhead;
  Qos qos = Qos::kBestEffort;
  bool operator==(const Pod&) const = default;
};

// The QoS class as kubelet 1.37 computes it: Guaranteed if every container, init containers
// included, has equal non-zero requests and limits for both cpu and memory; with pod-level
// resources these alone decide.
Qos ComputeQos(const Pod& pod);

// A missing request equals the limit, as the API server fills it in.
void ApplyDefaults(Pod& pod);

// "Guaranteed", "Burstable", "BestEffort".
const char* ToString(Qos qos);

// Whether the kubelet regards the pod as one with pod-level resources: cpu, memory or huge pages
// are set in spec.resources.
bool HasPodLevelResources(const Pod& pod);

// "hugepages-2Mi" and the like.
bool IsHugePages(const std::string& resource);

// What a pod takes over its life: the sum of its containers and sidecars, or an init container with
// the sidecars started before it, whichever is more, resource by resource.
// `pick` is &Container::requests or &Container::limits.
Resources Effective(const Pod& pod, Resources Container::*pick);

}  // namespace kube
