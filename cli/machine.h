#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "kube/pod.h"
#include "placement/node_placement.h"

namespace cli {

// A node without pods, described in a few lines by a person (kind: Machine).
struct DescribedMachine {
  placement::NodePlacement node;
  kube::Resources allocatable;  // for the check of the node's sums
};

// Reads a Machine, as JSON. docs/simulate.md is the reference of its fields. InvalidArgument names
// the field that is not known, is missing or has a value that cannot be.
absl::StatusOr<DescribedMachine> ParseMachine(const std::string& json);

}  // namespace cli
