#pragma once

#include <vector>

#include "placement/accounting.h"
#include "placement/devices.h"
#include "placement/observation.h"

namespace placement {

// How many of the listed containers with CPUs of their own the kernel's word is known for.
struct Compared {
  int count = 0;
  int of = 0;
};

// All conditions, sorted by type; docs/nodeplacement.md lists them. `diagnostics` are those that
// the observation has come to by itself.
std::vector<Condition> MakeConditions(const Facts& facts, const NodePlacement& placement,
                                      const Compared& compared, const CpuAccount& cpus,
                                      const DeviceAccount& devices,
                                      const base::Diagnostics& diagnostics);

}  // namespace placement
