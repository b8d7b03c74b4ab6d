#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "kube/pod.h"
#include "scheduler/admission/bits.h"
#include "scheduler/admission/machine.h"

namespace scheduler::admission {

// What is free on a node at one moment: small, flat, cheap to copy.
struct Pool {
  struct NodeMemory {
    int assignments = 0;  // one for each block, memory type and node
    Mask group = 0;       // the nodes that share multi-node blocks; itself alone if none
    absl::InlinedVector<std::int64_t, 3> free;  // bytes, by memory type
    bool operator==(const NodeMemory&) const = default;
  };
  struct Devices {
    Bits healthy;
    Bits allocated;
    bool operator==(const Devices&) const = default;
  };
  Bits cpus;  // CPUs that may be given out: neither reserved nor exclusive
  absl::InlinedVector<NodeMemory, 2> memory;  // by NUMA position
  absl::InlinedVector<Devices, 1> devices;    // by position in Machine::devices
  bool operator==(const Pool&) const = default;
};

struct MemoryBlock {
  int type = 0;  // position in Machine::memory_types
  Mask nodes = 0;
  std::int64_t bytes =
      0;  // spread over the nodes; 0 after an init container's block was used again
  bool operator==(const MemoryBlock&) const = default;
};

using MemoryBlocks = absl::InlinedVector<MemoryBlock, 1>;

// What one container holds, or, without a name, a pod with resources of its own: CPUs and memory of
// its containers are parts of that and may overlap.
struct Holding {
  std::string container;
  Bits cpus;
  MemoryBlocks memory;
  absl::InlinedVector<std::pair<int, Bits>, 1> devices;  // resource, devices; ascending
  bool operator==(const Holding&) const = default;
};

// The accounts of one node's managers. A plain value.
struct NodeState {
  std::shared_ptr<const Machine> machine;
  std::shared_ptr<const DeviceIds> device_ids;
  Pool pool;
  std::map<std::string, std::vector<Holding>> pods;  // by UID
};

// The position of a device of the resource, -1 if there is none of this id.
int FindDevice(const NodeState& state, int resource, const std::string& id);

// The state of a node without pods.
NodeState EmptyState(const MachineWithIds& node);

// The state that a NodePlacement publishes. InvalidArgument if it contradicts the machine. Of a
// machine of more than 64 NUMA nodes the state is empty.
absl::StatusOr<NodeState> StateFrom(const placement::NodePlacement& node,
                                    const DeviceOrder& order = {}, Grade grade = Grade::kExact);

// Writes the state into a NodePlacement: free CPUs, memory, groups, device health, pods. Whatever
// the state holds is in the object afterwards; it stays as it is for more than 64 NUMA nodes.
void WriteState(const NodeState& state, placement::NodePlacement& node);

// The pod's containers start. Finished init containers give up their memory blocks, and nothing
// else: their CPUs and devices stay the pod's (kubelet 1.37, memorymanager AddContainer).
void Started(NodeState& state, const kube::Pod& pod);

// The pod is gone: all that it holds is free for the next admission. No change for an unknown UID.
void Remove(NodeState& state, const std::string& uid);

// From now on exactly these devices of the resource are unhealthy.
void SetDevices(NodeState& state, const std::string& resource,
                const std::vector<std::string>& unhealthy);

// Puts back into the pool what a container holds. Memory goes to its nodes in ascending order, as
// much as each has given out; a node without blocks leaves its group.
void Release(const Machine& machine, const Holding& holding, Pool& pool);

}  // namespace scheduler::admission
