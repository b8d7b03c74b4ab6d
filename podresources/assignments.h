#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/cpu_set.h"
#include "base/diagnostic.h"

// What the kubelet says is assigned, as plain values: the replies of its podresources API, with
// everything unordered sorted and everything repeated merged, so that equal facts compare equal.
namespace podresources {

// One device of one resource. Locality has three cases: no topology given (both fields empty), an
// unknown node (-1 or an absurd id: `unknown_node`), known nodes.
struct Device {
  std::string resource;       // "nvidia.com/gpu"
  std::string id;             // the plugin's
  base::NumaMask numa_nodes;  // union over all entries of the id
  bool unknown_node = false;  // an entry named a node that cannot be
  auto operator<=>(const Device&) const = default;
};

struct MemoryBlock {
  std::string type;           // "memory", "hugepages-1Gi"
  std::int64_t bytes = 0;     // over all its NUMA nodes together
  base::NumaMask numa_nodes;  // empty: no topology given
  auto operator<=>(const MemoryBlock&) const = default;
};

// A device that a DRA driver gave to a claim.
struct ClaimDevice {
  std::string claim_namespace;
  std::string claim_name;
  std::string driver;
  std::string pool;
  std::string device;
  std::string share_id;                  // "" if none
  std::vector<std::string> cdi_devices;  // sorted
  auto operator<=>(const ClaimDevice&) const = default;
};

struct Container {
  std::string name;
  base::CpuSet cpus;                // exclusive CPUs; empty: it runs in the shared pool
  std::vector<MemoryBlock> memory;  // sorted
  std::vector<Device> devices;      // sorted by (resource, id), each once
  std::vector<ClaimDevice> claims;  // sorted
  bool operator==(const Container&) const = default;
};

struct Pod {
  std::string namespace_name;
  std::string name;
  std::vector<Container> containers;  // in the kubelet's order, which is the pod's
  base::CpuSet cpus;  // pod-level (kubelet 1.37): overlaps the containers', never added
  std::vector<MemoryBlock> memory;  // pod-level, likewise
  bool operator==(const Pod&) const = default;
};

// What the kubelet could hand out at all: reserved CPUs and memory are already taken off, unhealthy
// devices are missing.
struct Allocatable {
  base::CpuSet cpus;
  std::vector<MemoryBlock> memory;  // sorted
  std::vector<Device> devices;      // sorted by (resource, id), each once
  bool operator==(const Allocatable&) const = default;
};

struct Assignments {
  std::vector<Pod> pods;                   // sorted by (namespace, name)
  std::optional<Allocatable> allocatable;  // nullopt: the kubelet does not offer the call
  base::Diagnostics diagnostics;           // sorted
  bool operator==(const Assignments&) const = default;
};

}  // namespace podresources
