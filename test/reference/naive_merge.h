#pragma once

#include <optional>
#include <vector>

#include "scheduler/admission/machine.h"

namespace reference {

// The topology manager's merge the long way: every combination of every hint, resource by resource,
// each compared with the best so far. Exponential in the number of NUMA nodes, for small machines
// in tests only.
struct NaiveHint {
  std::optional<scheduler::admission::Mask> mask;  // nullopt: any NUMA nodes
  bool preferred = false;
};

// One list for each resource: no preference is {nullopt, preferred}, an impossible wish is
// {nullopt, not preferred}.
struct NaiveMerged {
  std::optional<scheduler::admission::Mask> affinity;
  bool preferred = false;
  bool admitted = false;
};

NaiveMerged NaiveMerge(const scheduler::admission::Machine& machine,
                       const std::vector<std::vector<NaiveHint>>& resources);

}  // namespace reference
