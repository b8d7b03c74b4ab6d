#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/diagnostic.h"
#include "hwinfo/device_id.h"
#include "hwinfo/enforced.h"
#include "hwinfo/topology.h"
#include "placement/api_pods.h"
#include "placement/node_placement.h"
#include "placement/node_resource_topology.h"
#include "podresources/assignments.h"
#include "podresources/kubelet_config.h"
#include "podresources/kubelet_state.h"

namespace placement {

// A device id of the kubelet and what it stands for here: the join is made outside, since it reads
// files, and passed in.
struct DeviceHardware {
  std::string resource;  // of a DRA device: its driver
  std::string id;        // of a DRA device: "pool/device"
  hwinfo::ResolvedDevice resolved;
  std::optional<int> claimed_node = {};  // of a DRA device: the NUMA node that its driver says
};

// All that is known at one moment. An error status says why a part is not known; it is never taken
// for an empty answer.
struct Facts {
  std::string node_name;
  std::string agent_version;
  base::Time observed_at;
  hwinfo::Topology topology;
  absl::StatusOr<podresources::Assignments> assignments = absl::UnavailableError("not asked");
  podresources::KubeletConfig config;
  podresources::KubeletState state;
  absl::StatusOr<hwinfo::Enforced> enforced = absl::UnavailableError("not read");
  // Names of containers by the ids that cgroups have (podresources/container_names.h). Without a
  // name, a cgroup can only be seen to agree with a container, never to differ.
  std::map<std::string, std::string> container_names;
  // This node's pods, as the API server has them; nullopt: it is not asked, or does not answer.
  std::optional<std::vector<ApiPod>> api_pods;
  std::vector<DeviceHardware> device_hardware;  // sorted by (resource, id)
  // Devices of the last observation: one that is missing from GetAllocatableResources now, while
  // its resource is still there, has turned unhealthy and still counts for the kubelet.
  std::vector<PlacedDevice> known_devices;
  // That NodeResourceTopology is not to have. NodePlacement has all, since the kubelet has.
  std::set<std::string> excluded_resources;
  base::Diagnostics diagnostics;  // of gathering them
  // false: the kubelet's files changed, or were half of a change, at every attempt to read them
  bool settled = true;
};

// One look at the node, accounted for. Plain values.
struct Observation {
  NodePlacement placement;
  // Nothing if the kubelet could not be asked: zones that are empty, or full of resources that
  // nobody knows to be free, would send pods here.
  std::optional<NodeResourceTopology> nrt;
  base::Diagnostics diagnostics;  // all of the inputs' and its own, sorted
  bool operator==(const Observation&) const = default;
};

// Pure: equal facts give the equal observation, whatever the order of their lists.
Observation Observe(const Facts& facts);

}  // namespace placement
