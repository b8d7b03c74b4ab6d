#pragma once

#include "placement/observation.h"

namespace agent {

// What of two observations differs, as far as it is worth a write.
struct Difference {
  bool nrt = false;
  bool placement = false;  // its content: the revision grows
  // Where memory is resident, and nothing else of NodePlacement: a NUMA node's share of a container
  // moved by 5 percentage points and 64 MiB, or a pod came to have memory elsewhere, or no longer
  // has.
  bool resident = false;
  bool content() const { return nrt || placement; }
};

// Pure. When an observation was made and its revision are not content. Less movement of resident
// memory is none: those bytes change all the time.
Difference Compare(const placement::Observation& published, const placement::Observation& now);

}  // namespace agent
