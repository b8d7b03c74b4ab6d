#pragma once

#include "placement/accounting.h"
#include "placement/devices.h"
#include "placement/observation.h"

namespace placement {

// The standard object; docs/nrt.md has each field and why. Call it only with assignments that are
// known.
NodeResourceTopology MakeNrt(const Facts& facts, const NodePlacement& placement,
                             const CpuAccount& cpus, const DeviceAccount& devices);

}  // namespace placement
