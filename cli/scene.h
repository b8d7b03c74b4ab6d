#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/settings.h"
#include "kube/pod.h"
#include "placement/node_placement.h"
#include "scheduler/admission/state.h"

namespace cli {

// A node and the pods that are to be admitted to it, one after the other.
struct Scene {
  std::string node_name;
  placement::KubeletFacts kubelet;  // with the other settings
  scheduler::admission::NodeState state;
  std::optional<kube::Resources> allocatable;  // nullopt: the node's sums are not to be checked
  std::set<std::string> pods_there;            // UIDs of the pods that the node has already
  std::vector<kube::Pod> pods;                 // with UIDs, each another
  std::vector<std::string> notes;              // what was read otherwise than one might think
};

struct Source {
  std::string name;  // of the file, for messages
  std::string text;
};

// Reads the objects of a file, YAML or JSON: one node and any number of pods. The node comes from
// `node_file` if that is given. Errors name the file, the object and what is wrong with it.
absl::StatusOr<Scene> ReadScene(const Source& file, const std::optional<Source>& node_file,
                                const OtherSettings& settings);

}  // namespace cli
