#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "placement/observation.h"

// What a kubelet that has just started does not tell yet. Pure.
namespace agent {

// After this long, what a kubelet does not list is not there. It is also how long the kubelet
// itself keeps devices whose plugin is away (endpointStopGracePeriod).
inline constexpr std::chrono::minutes kSettlingEnds{5};

// The UIDs of pods that an observation knows.
std::set<std::string> PodsOf(const placement::NodePlacement& placement);
// Those that have entries in the kubelet's state files.
std::set<std::string> PodsOf(const podresources::KubeletState& state);

// The pods that run here and that the kubelet does not list.
//
// A kubelet opens its podresources socket before it has its pods: it lists none, then the static
// ones, and the others once the API server has answered, while the pods go on running and its state
// files go on holding their entries. Taken for the truth, that would free the whole node. Nothing
// in its answer tells this list from that of a node without pods; what tells is that pods which
// should be in it are alive. `expected` are the pods that the last good observation knew, or those
// of the state files where there is none. A pod is alive
//   - if it has a cgroup: the kubelet takes that away when a pod has ended, also of pods that ended
//     or were deleted while it was down, once it has its pods;
//   - where no pod has cgroups (`cgroups_count` is false, or there are none), if it has a folder of
//     logs: that stays until the pod object is gone, which is longer than it should, so that the
//     wait has a bound.
// A pod is listed if the list has its UID, or the name that its folder of logs has. Call this for
// an answer, and only while the kubelet is new: later it is the kubelet that knows.
std::vector<std::string> UnlistedPods(const std::set<std::string>& expected,
                                      const placement::Facts& facts,
                                      const placement::NodePlacement& now, bool cgroups_count);

// Node.status.capacity by resource, in units of the resource; nullopt: it is named, with a quantity
// that makes no sense.
using Capacity = std::map<std::string, std::optional<std::int64_t>>;

// Since when each resource that had devices has had no healthy one.
using MissingSince = std::map<std::string, base::Instant>;
void NoteMissing(const std::vector<placement::PlacedDevice>& last, const placement::Facts& facts,
                 base::Instant now, MissingSince& missing);

// Which of the last devices the kubelet may still count although it does not list them: for
// placement::Facts::known_devices. It counts unhealthy devices, and all devices of a resource whose
// plugin has gone, for five minutes.
//   - The node's capacity counts healthy and unhealthy ones. Where it is known and the kubelet
//   lists
//     as many healthy ones, or it does not name the resource, there are no others. So a plugin that
//     made other devices of its hardware (MIG) leaves nothing behind.
//   - Where it is not known, the kubelet's checkpoint decides (placement/devices.h); and where that
//     cannot be read, the five minutes.
// Devices of DRA drivers are not counted by the device manager and never kept.
std::vector<placement::PlacedDevice> StillCounted(const std::vector<placement::PlacedDevice>& last,
                                                  const placement::Facts& facts,
                                                  const std::optional<Capacity>& capacity,
                                                  const MissingSince& missing, base::Instant now);

}  // namespace agent
