#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>

#include "placement/observation.h"

// What the next admission will find free. The kubelet's state files keep entries of dead pods until
// then; here they are taken out first, the way the kubelet does it.
namespace placement {

struct CpuAccount {
  // Nothing under the policy none, where no CPU is ever exclusive, and where it is not known.
  std::optional<base::CpuSet> allocatable;
  std::optional<base::CpuSet> free;
  bool estimated = false;  // `allocatable` is not the kubelet's word
};

// `active` are the UIDs of pods in the kubelet's list. CPUs that the list does not show but an
// active pod's entry has (of finished init containers, which keep them until the pod is gone) are
// held. CPUs in neither the shared pool nor any entry are not free: the kubelet has lost them, or
// has not seen them yet.
CpuAccount AccountCpus(const Facts& facts, const KubeletFacts& kubelet,
                       const std::set<std::string>& active, base::Diagnostics& diagnostics);

// Takes the entries of pods that are not active out of a memory manager's state as the kubelet's
// own clean-up does (policy_static.go, RemoveContainer): each block gives back to its NUMA nodes in
// ascending order, as much as is reserved there; each block counts once for each of its nodes, and
// a node forgets its group only when its last block goes. Blocks of size 0 count, too. Of a pod
// with pod-level blocks (kubelet 1.37) only those count: its containers' are parts of them.
podresources::MemoryManagerState ReleaseInactive(podresources::MemoryManagerState state,
                                                 const std::set<std::string>& active);

struct MemoryAccount {
  struct Node {
    std::map<std::string, NodeMemory> types;
    std::optional<base::NumaMask> group;
    std::optional<int> assignments;
  };
  std::map<int, Node> nodes;  // every NUMA node of the topology
};

// From the state file where there is one. Without it, from what the kubelet lists: single-node
// blocks are exact, multi-node ones are taken to fill their nodes in ascending order, and what
// finished init containers hold is not known.
MemoryAccount AccountMemory(const Facts& facts, const KubeletFacts& kubelet,
                            const std::set<std::string>& active, base::Diagnostics& diagnostics);

}  // namespace placement
