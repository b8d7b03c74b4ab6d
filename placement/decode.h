#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "placement/node_placement.h"

namespace placement {

// Reads what ToJson(NodePlacement) writes, also from another release: fields that are not known
// here are ignored, ones that are missing keep their defaults, an alignment that is not known is
// Unknown. InvalidArgument if the text is no JSON, is another kind of object, or a known field has
// a value that cannot be; the message names the field.
absl::StatusOr<NodePlacement> ParseNodePlacement(const std::string& json);

}  // namespace placement
