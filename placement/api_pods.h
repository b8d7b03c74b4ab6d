#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "podresources/assignments.h"
#include "podresources/kubelet_state.h"

namespace placement {

// What the API server knows of a pod of this node, and the kubelet's own API does not tell.
struct ApiPod {
  std::string namespace_name = {};
  std::string name = {};
  std::string uid = {};
  // Static pods, of which the API server has a mirror: the kubelet's own UID, which cgroups and
  // state files have; "" for all others.
  std::string kubelet_uid = {};
  // "Running", "Succeeded". A pod that is being deleted holds what it has until it has ended.
  std::string phase = {};
  std::string qos_class = {};                          // "Guaranteed", "Burstable"; "" not said
  std::map<std::string, std::string> containers = {};  // names by the runtime's ids
  // The pod's key in the kubelet's state files.
  const std::string& state_uid() const { return kubelet_uid.empty() ? uid : kubelet_uid; }
  bool operator==(const ApiPod&) const = default;
};

// The one of that name; nullptr if there is none.
const ApiPod* FindApiPod(const std::vector<ApiPod>& pods, const podresources::Pod& listed);

// The kubelet's list without what the API server proves wrong in it; nullopt: nothing is.
//   - Kubelets before 1.34 go on listing pods that have ended, with what others hold by now
//     (kubernetes#132020): those are taken out, as the kubelet's next admission does not count them
//     either. Not so if the state files have what is listed under a UID that the API server did not
//     tell: then it is a pod that was made anew under the name, and we have not heard of it yet.
//   - CPUs of a pod that is not Guaranteed are those of the shared pool (kubelets up to 1.20,
//     kubernetes#100211), unless the state file has them as somebody's own.
std::optional<podresources::Assignments> Correct(const podresources::Assignments& listed,
                                                 const podresources::KubeletState& state,
                                                 const std::vector<ApiPod>& pods);

}  // namespace placement
