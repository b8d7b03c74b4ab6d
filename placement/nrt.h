#pragma once

#include "placement/accounting.h"
#include "placement/devices.h"
#include "placement/observation.h"

namespace placement {

// The zone type that schedulers read, and the one they ignore: scheduler-plugins indexes an array
// of 64 by the id in the name of a zone of type Node, so larger ids must not have that type.
inline constexpr const char* kZoneType = "Node";
inline constexpr const char* kZoneTypeAbove63 = "NodeAbove63";

// The standard object; docs/nrt.md has each field and why. Call it only with assignments that are
// known.
NodeResourceTopology MakeNrt(const Facts& facts, const NodePlacement& placement,
                             const CpuAccount& cpus, const DeviceAccount& devices);

}  // namespace placement
