#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/cpu_set.h"
#include "placement/node_placement.h"
#include "scheduler/admission/bits.h"
#include "scheduler/admission/limit.h"

namespace scheduler::admission {

// A set of NUMA nodes as the kubelet's bitmask has it, but by position in Machine::numa_ids instead
// of by id: positions keep the order of ids, so masks compare as the kubelet's do. At most 64
// nodes.
using Mask = std::uint64_t;
inline constexpr int kMaxNumaNodes = 64;
// The kubelet's own masks are by id, so ids end there.
inline constexpr int kMaxNumaId = 63;
// Linux has no CPU above: a bound for what a machine costs here, which is CPUs times cores.
inline constexpr int kMaxCpuId = 8191;
// How many NUMA nodes the topology manager takes without max-allowable-numa-nodes.
inline constexpr int kDefaultMaxNumaNodes = 8;

// More bytes of one type than a NUMA node can have; sums over all nodes stay within 64 bits.
inline constexpr std::int64_t kMaxMemory = std::int64_t{1} << 55;

// From the loosest to the strictest.
enum class TopologyPolicy { kNone, kBestEffort, kRestricted, kSingleNumaNode };
enum class TopologyScope { kContainer, kPod };

// As the kubelet's configuration has them, in the order of the values.
inline constexpr std::array kTopologyPolicyNames = {"none", "best-effort", "restricted",
                                                    "single-numa-node"};
inline constexpr std::array kTopologyScopeNames = {"container", "pod"};
const char* ToString(TopologyPolicy policy);
const char* ToString(TopologyScope scope);

// How much is known of a node: all that the kubelet decides by, or counts per NUMA node (coarse.h).
enum class Grade { kExact, kCoarse };

// What the kubelet was started with, as far as it decides admissions and what they leave.
struct Settings {
  TopologyPolicy topology_policy = TopologyPolicy::kNone;
  TopologyScope topology_scope = TopologyScope::kContainer;
  bool prefer_closest_numa_nodes = false;
  std::int64_t max_allowable_numa_nodes = kDefaultMaxNumaNodes;
  bool cpu_static = false;
  bool full_pcpus_only = false;
  bool distribute_cpus_across_numa = false;
  bool align_by_socket = false;
  bool distribute_cpus_across_cores = false;
  bool strict_cpu_reservation = false;  // reserved CPUs are not in the shared pool either
  bool prefer_align_cpus_by_uncorecache = false;
  bool memory_static = false;
  // Gate PodLevelResourceManagers: alpha in 1.36, beta from 1.37; off by default up to 1.38.
  bool pod_level_managers = false;
  int minor_version = 37;  // of the kubelet: 1.N; 0 unknown
  bool operator==(const Settings&) const = default;
};

// How few NUMA nodes can hold an amount, by what the hardware has: taken and reserved parts count.
class Reach {
 public:
  Reach() = default;
  explicit Reach(std::vector<std::int64_t> parts);  // of each NUMA node; 0 parts are fine

  // The smallest number of nodes whose parts sum up to `need`; `otherwise` if all together do not.
  int Width(std::int64_t need, int otherwise) const;
  bool operator==(const Reach&) const = default;

 private:
  std::vector<std::int64_t> most_;  // the sum of the largest 1, 2, … parts
};

// The CPUs as the kubelet's CPU manager sees them. Everything is by position in ascending order of
// id, so that comparing positions is comparing ids. The averages are the kubelet's own integer
// divisions, wrong on asymmetric machines in the same way (up to 1.37).
struct CpuTopology {
  struct Place {
    int numa = -1;  // position in Machine::numa_ids
    int socket = -1;
    int core = -1;
    int uncore = -1;
    bool operator==(const Place&) const = default;
  };
  int cpu_slots = 0;         // highest CPU id + 1: the length of all Bits here
  std::vector<Place> place;  // by CPU id; numa is -1 where there is no such CPU
  Bits all;
  std::vector<Bits> in_numa;  // by NUMA position; empty sets for nodes without CPUs
  std::vector<Bits> in_socket;
  std::vector<Bits> in_core;  // ordered by lowest CPU, which is the kubelet's core id
  std::vector<Bits> in_uncore;
  std::vector<std::vector<int>> cores_in_numa;    // ascending
  std::vector<std::vector<int>> cores_in_socket;  // ascending
  std::vector<std::vector<int>> cores_in_uncore;  // ascending
  Mask nodes_with_cpus = 0;
  Reach reach;
  int cpus = 0;
  int cpus_per_core = 0;
  int cpus_per_socket = 0;
  int cpus_per_uncore = 0;
  int numa_nodes = 0;  // with CPUs
  int sockets() const { return static_cast<int>(in_socket.size()); }
  bool numa_first() const { return sockets() >= numa_nodes; }
  bool operator==(const CpuTopology&) const = default;
};

// The CPUs of a set: their positions are their ids.
base::CpuSet ToCpuSet(const Bits& cpus);

// One device as its plugin announced it.
struct Device {
  Mask nodes = 0;  // NUMA nodes of the machine that it names
  bool operator==(const Device&) const = default;
};

struct DeviceResource {
  std::string name;
  std::vector<Device> devices;  // in the plugin's order of preference
  bool aligned = false;         // some device names a NUMA node, known or not: hints are made
  Mask nodes = 0;               // the NUMA nodes that hints iterate over
  Bits without_topology;        // devices that name no NUMA node, known or not
  std::vector<Bits> on_node;    // by NUMA position: the devices that name it
  bool one_node_each = true;    // no device names several NUMA nodes
  Reach reach;                  // exact only with one_node_each
  bool operator==(const DeviceResource&) const = default;
};

// The ids of the devices, by position in Machine::devices and in DeviceResource::devices. Nodes
// that are alike differ in these alone.
using DeviceIds = std::vector<std::vector<std::string>>;

// What does not change from pod to pod: hardware, devices, settings. Immutable once built; shared
// by all states of a node, and by nodes that are alike.
struct Machine {
  Grade grade = Grade::kExact;  // verdicts that rest on this machine are as good
  Settings settings;
  std::vector<int> numa_ids;  // ascending; position i is bit i of a Mask
  // By position, as the kubelet looks them up for prefer-closest-numa-nodes: the column is found by
  // NUMA id in a list that is by position, so with gaps in the ids it is another node's. Empty if
  // not all are known.
  std::vector<std::vector<double>> distances;
  Mask beyond_distances = 0;     // nodes whose ids are beyond that list: looking them up is a crash
  Limit limit = Limit::kNone;    // why no pod gets an answer here
  std::string refused;           // what the kubelet would not start with
  bool may_limit_hints = false;  // what FindHintLimit and FindMemoryLimit look for is possible
  Mask all_nodes = 0;
  CpuTopology cpu;
  Bits reserved_cpus;
  Bits reserved_physical_cpus;            // with the sibling threads of the reserved ones
  std::vector<std::string> memory_types;  // sorted: "hugepages-…", "memory"
  struct NodeMemory {
    std::int64_t allocatable = 0;
    bool present = false;  // the kubelet has a table of this type for the node
    bool operator==(const NodeMemory&) const = default;
  };
  std::vector<std::vector<NodeMemory>> memory;  // by NUMA position, then by type
  std::vector<Reach> memory_reach;              // by type
  std::vector<DeviceResource> devices;          // sorted by name

  int numa_count() const { return static_cast<int>(numa_ids.size()); }
  int MemoryType(const std::string& name) const;    // position, -1 if there is none
  int FindResource(const std::string& name) const;  // position in devices, -1 if there is none
  base::NumaMask ToIds(Mask mask) const;
  Mask FromIds(const base::NumaMask& ids) const;  // ids that the machine lacks are left out
  bool operator==(const Machine&) const = default;
};

// Lets nodes that are alike share one machine: thousands of nodes are of a few kinds. Not
// thread-safe.
class Machines {
 public:
  // A machine equal to this one: this one, if there is none yet.
  std::shared_ptr<const Machine> Share(std::shared_ptr<const Machine> machine);

 private:
  std::vector<std::shared_ptr<const Machine>> kinds_;
};

// Order of preference of a plugin's devices, by resource; ids that are missing come last, by NUMA
// node and id. Not visible on a live node.
using DeviceOrder = std::map<std::string, std::vector<std::string>>;

struct MachineWithIds {
  std::shared_ptr<const Machine> machine;
  std::shared_ptr<const DeviceIds> device_ids;
};

// Builds the machine that a NodePlacement describes. InvalidArgument if it contradicts itself (a
// CPU on two NUMA nodes, duplicate ids) or has an amount or a CPU id that cannot be. A machine of
// more than 64 NUMA nodes has settings and a limit, and no NUMA nodes.
absl::StatusOr<MachineWithIds> BuildMachine(const placement::NodePlacement& node,
                                            const DeviceOrder& order = {},
                                            Grade grade = Grade::kExact);

}  // namespace scheduler::admission
