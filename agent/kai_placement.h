#pragma once

#include <string>
#include <vector>

#include "placement/node_placement.h"
#include "placement/node_resource_topology.h"

namespace agent {

// What a pod holds on the NUMA nodes, as the KAI scheduler reads it from an annotation of the pod:
// [{"zone":"node-0","amount":{"cpu":"8","memory":"17179869184","nvidia.com/gpu":"2"}}], zones and
// resources as in NodeResourceTopology, sorted by their names.
struct KaiPlacement {
  std::string namespace_name = {};
  std::string name = {};
  std::string uid = {};    // "" if it is not known
  std::string value = {};  // "" if it holds nothing that has a place: KAI warns of empty lists
  bool operator==(const KaiPlacement&) const = default;
};

// Of all pods that hold something. KAI takes what is available in a zone to be what is allocatable
// less what pods hold there, so nothing is missing and nothing counted twice:
//   - Only what the NodeResourceTopology lists in a zone of type Node: KAI discards the whole
//     placement for the sake of a zone that it does not know.
//   - A device that is local to several NUMA nodes counts in each, as it does in what is
//     allocatable there. One that has failed counts nowhere, as it does there.
//   - A memory block on several NUMA nodes counts once, in parts. What the kubelet has taken from
//     each node is known and who has which part of it is not: it is shared out to the pods in their
//     order, the lowest node first, as the kubelet takes it.
std::vector<KaiPlacement> KaiPlacements(const placement::NodePlacement& placement,
                                        const placement::NodeResourceTopology& nrt);

}  // namespace agent
