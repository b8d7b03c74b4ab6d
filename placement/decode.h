#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "placement/node_placement.h"
#include "placement/node_resource_topology.h"

namespace placement {

// Reads what ToJson(NodePlacement) writes, also from another release: fields that are not known
// here are ignored, ones that are missing keep their defaults, an alignment that is not known is
// Unknown. InvalidArgument if the text is no JSON, is another kind of object, or a known field has
// a value that cannot be; the message names the field.
absl::StatusOr<NodePlacement> ParseNodePlacement(const std::string& json);

// Reads a NodeResourceTopology (topology.node.k8s.io) whoever wrote it: amounts as integers or
// quantities, in any order, with zones of any type. Lists come out sorted. An amount that is
// missing stays unknown; fractions round down, since a part of a CPU is none that can be given out.
// Of the annotations only those of the object's own API group are kept. Errors as above.
absl::StatusOr<NodeResourceTopology> ParseNodeResourceTopology(const std::string& json);

}  // namespace placement
