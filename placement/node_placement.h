#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/cpu_set.h"

// NodePlacement (plumbline.dev/v1alpha1): where the pods of one node sit, by the word of the
// kubelet and of the kernel, and all that a scheduler needs to predict the kubelet. The members
// follow the object field by field; docs/nodeplacement.md is the reference.
namespace placement {

struct KubeletFacts {
  std::string version;  // "v1.37.2"; "" unknown, as in all the strings here
  std::optional<base::Time> started_at;
  std::string config_source = "unknown";             // configz | file | state | unknown
  std::map<std::string, std::string> feature_gates;  // a missing one is unknown
  std::string topology_policy;
  std::string topology_scope;
  std::map<std::string, std::string> topology_options;
  std::string cpu_policy;
  std::map<std::string, std::string> cpu_options;
  std::optional<base::CpuSet> reserved_cpus;  // the effective set
  std::string memory_policy;
  struct ReservedMemory {
    int numa_node = -1;
    std::string type;
    std::int64_t bytes = 0;
    bool operator==(const ReservedMemory&) const = default;
  };
  std::vector<ReservedMemory> reserved_memory;
  bool operator==(const KubeletFacts&) const = default;
};

// The physical cores under one L3 of one socket, each as its online threads.
struct CoreGroup {
  int socket = -1;
  int l3 = -1;  // the id that the kubelet orders it by
  std::vector<base::CpuSet> cores;
  bool operator==(const CoreGroup&) const = default;
};

struct NodeMemory {
  std::string type;           // "memory", "hugepages-1Gi"
  std::int64_t capacity = 0;  // bytes, all of them
  std::int64_t system_reserved = 0;
  std::int64_t allocatable = 0;
  std::optional<std::int64_t> free;  // what the next admission will find; nullopt unknown
  bool operator==(const NodeMemory&) const = default;
};

struct NumaNodePlacement {
  int id = -1;
  base::CpuSet cpus;
  std::vector<CoreGroup> core_groups;
  std::optional<base::CpuSet> free_cpus;  // what the next admission will find; nullopt unknown
  std::vector<NodeMemory> memory;         // sorted by type
  std::optional<base::NumaMask> memory_group;
  std::optional<int> memory_assignments;
  std::map<int, int> distances;
  bool operator==(const NumaNodePlacement&) const = default;
};

struct PlacedDevice {
  std::string resource;
  std::string id;
  base::NumaMask numa_nodes;  // the plugin's claim; empty: it gives no topology
  bool unknown_node = false;  // the plugin claimed a node that cannot be
  bool healthy = true;
  std::string pci_address;           // "" unresolved
  std::optional<int> pci_numa_node;  // the kernel's word
  bool operator==(const PlacedDevice&) const = default;
};

enum class Alignment { kUnknown, kAligned, kSpread, kMisaligned, kUnpinned, kDrifted };

struct PlacedMemory {
  std::string type;
  std::int64_t bytes = 0;
  base::NumaMask numa_nodes;
  bool operator==(const PlacedMemory&) const = default;
};

struct HeldDevices {
  std::string resource;
  std::vector<std::string> ids;  // sorted
  bool operator==(const HeldDevices&) const = default;
};

// What the kernel enforces for a container.
struct KernelFacts {
  std::optional<base::CpuSet> cpus;
  std::optional<base::NumaMask> memory_nodes;
  std::map<int, std::int64_t> resident_bytes;  // by NUMA node
  bool operator==(const KernelFacts&) const = default;
};

struct PlacedContainer {
  // "" and first: what the pod has as a whole (kubelet 1.37, PodLevelResourceManagers). The CPUs
  // and the memory of the others are parts of it.
  std::string name;
  base::CpuSet cpus;  // exclusive ones
  std::vector<PlacedMemory> memory;
  std::vector<HeldDevices> devices;  // sorted by resource
  std::optional<KernelFacts> kernel;
  bool operator==(const PlacedContainer&) const = default;
};

struct PlacedPod {
  std::string namespace_name;
  std::string name;
  std::string uid;          // "" if it could not be told for certain
  std::string kubelet_uid;  // static pods: the kubelet's own, where it differs
  base::NumaMask numa_nodes;
  Alignment alignment = Alignment::kUnknown;
  std::string reason;   // stable and CamelCase
  std::string message;  // one sentence
  std::vector<PlacedContainer> containers;
  bool operator==(const PlacedPod&) const = default;
};

struct Summary {
  int pods = 0;
  int aligned = 0;
  int spread = 0;
  int misaligned = 0;
  int unpinned = 0;
  int drifted = 0;
  int unknown = 0;
  std::string free;  // "0: 4 gpu 36 cpu · 1: 0 gpu 44 cpu"
  bool operator==(const Summary&) const = default;
};

struct Condition {
  std::string type;
  std::string status;  // "True", "False", "Unknown"
  std::string reason;
  std::string message;
  bool operator==(const Condition&) const = default;
};

struct NodePlacement {
  std::string node_name;
  std::int64_t revision = 0;
  std::optional<base::Time> observed_at;  // nullopt: no data
  std::string boot_id;
  std::string agent_version;
  KubeletFacts kubelet;
  std::vector<NumaNodePlacement> numa_nodes;  // ascending by id
  std::vector<PlacedDevice> devices;          // sorted by (resource, id)
  std::vector<std::string> known_pods;        // UIDs, sorted
  std::vector<PlacedPod> pods;                // sorted by (namespace, name)
  Summary summary;
  std::vector<Condition> conditions;  // sorted by type
  bool operator==(const NodePlacement&) const = default;
};

// "Aligned", "Spread", …
const char* ToString(Alignment alignment);

}  // namespace placement
