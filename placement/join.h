#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/diagnostic.h"
#include "placement/api_pods.h"
#include "podresources/assignments.h"
#include "podresources/kubelet_state.h"

namespace placement {

// A pod of the kubelet's list and the UID that it could be told to have.
struct JoinedPod {
  const podresources::Pod* pod = nullptr;  // into the assignments that were joined
  std::string uid;                         // "" if it could not be told for certain
  std::string kubelet_uid;  // static pods: the kubelet's own; uid is the API's mirror's, or ""
  // The pod's key in the state files; "" if not known.
  const std::string& state_uid() const { return kubelet_uid.empty() ? uid : kubelet_uid; }
};

struct Joined {
  std::vector<JoinedPod> pods;   // one for each pod of the list, in its order
  std::set<std::string> active;  // UIDs whose entries in the state files belong to listed pods
  base::Diagnostics diagnostics;
};

// UIDs under which the state files have anything.
std::set<std::string> UidsWithEntries(const podresources::KubeletState& state);
// Whether what they have under that UID is what the pod is listed with.
bool HasEntriesOf(const podresources::KubeletState& state, const std::string& uid,
                  const podresources::Pod& pod);

// podresources has names, the state files have UIDs, the folders of /var/log/pods have both, and so
// have the pods that the API server knows, where we may ask it. Those come first: of one name there
// is only one at a time. But what is heard of them may be older or newer than the list, so a UID
// that the state files refute is not taken.
//
// A pod that holds something gets the UID of a folder of its name only if the state files' entries
// for that UID equal what the kubelet lists: a pod that was created anew under the name of a dead
// one must not inherit its UID. What a part of the state does not say (file missing, manager off)
// proves nothing and refutes nothing. A pod that holds nothing gets the UID of the only folder of
// its name. Containers that only the state files know (finished init containers) are no difference.
//
// Entries of UIDs that are not `active` are left over from dead pods. A pod whose folder is missing
// (it is just starting, or the folders cannot be read) still makes the entry active that equals
// what it holds. Entries that nothing speaks for count as left over: to count them as held would
// keep pods away from a node that is empty, for as long as no pod comes.
Joined JoinPods(const podresources::Assignments& assignments,
                const podresources::KubeletState& state,
                const std::optional<std::vector<ApiPod>>& api_pods = std::nullopt);

}  // namespace placement
