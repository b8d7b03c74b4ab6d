#pragma once

#include <string>

#include "placement/node_placement.h"
#include "placement/node_resource_topology.h"

namespace placement {

struct Observation;

// The objects as they are published: fields in a fixed order, lists sorted, so that equal values
// give equal bytes. What is not known is left out. docs/nodeplacement.md and docs/nrt.md describe
// the fields.
enum class JsonStyle { kCompact, kIndented };

std::string ToJson(const NodePlacement& placement, JsonStyle style = JsonStyle::kCompact);
std::string ToJson(const NodeResourceTopology& nrt, JsonStyle style = JsonStyle::kCompact);
// Both objects, as a List of API version v1; NodeResourceTopology first, if there is one.
std::string ToJson(const Observation& observation, JsonStyle style = JsonStyle::kCompact);

// As they are applied: owned by the Node of their name and of this UID, so that they go with it; ""
// leaves the owner out.
std::string ToOwnedJson(const NodeResourceTopology& nrt, const std::string& node_uid);
// Without its status, which is applied by itself once the object is there.
std::string ToOwnedJson(const NodePlacement& placement, const std::string& node_uid);

std::string ToYaml(const NodePlacement& placement);
std::string ToYaml(const NodeResourceTopology& nrt);
// Both objects, as two documents in the order above.
std::string ToYaml(const Observation& observation);

}  // namespace placement
