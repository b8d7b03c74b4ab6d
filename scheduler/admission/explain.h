#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/cpu_set.h"
#include "scheduler/admission/request.h"
#include "scheduler/admission/state.h"
#include "scheduler/admission/verdict.h"

namespace scheduler::admission {

// Why a pod is refused. The rules are tried in this order, each by asking Admit again: "alone" is
// the pod with all requests but one taken out, "empty" is the node without pods, its unhealthy
// devices still unhealthy.
enum class Why {
  kFits,
  kKubeletCannot,        // Verdict::limit
  kOutOf,                // the node's sums, the check after the managers; from ExplainOutOf alone
  kReusedInitResources,  // the container that fails would be admitted if no plain init container
                         // had been before it: what they keep is in the way
  kEmptyPodPool,         // the pod's own resources: containers with parts of their own use them up
  kSmtAlignment,         // full-pcpus-only, also when empty if fits_empty_node is false
  kWidthsDisagree,       // even when empty, each resource is admitted alone, but their preferred
                         // masks differ in width, so that restricted can never prefer
  kNeverFits,            // even when empty it is refused, for another reason
  // From here on it would be admitted when empty.
  kNoFreeDevice,     // alone refused: on the whole node fewer are free and healthy than needed
  kNotEnoughCpus,    // the same of CPUs
  kNotEnoughMemory,  // the same of a memory type
  kMemoryGroup,      // admitted if no NUMA node were tied to a memory group or to single blocks
  kFreeButSpread,    // alone refused: enough on the whole node, but not on the NUMA nodes wanted
  kNotTogether,      // each resource is admitted alone, all of them are not
};

// "Fits", "KubeletCannot", …
const char* ToString(Why why);

// One resource of what failed: "cpu" in CPUs, memory types in bytes, devices in pieces.
struct ResourceNumbers {
  struct Numa {
    int id = 0;
    std::int64_t free = 0;
    std::int64_t short_by = 0;  // how much more this node alone would need
    bool operator==(const Numa&) const = default;
  };
  std::string resource;
  std::int64_t needed = 0;
  std::int64_t free = 0;   // on the node as a whole
  int width = 0;           // NUMA nodes of a preferred mask; 0: it makes no hints
  bool alone = false;      // the pod would be admitted with this resource alone
  std::vector<Numa> numa;  // ascending; empty: it is on no NUMA node
  // The NUMA nodes, as many as the width, which lack least and could hold the need when empty, and
  // what they lack. Not known above 16 NUMA nodes, or where no such nodes are.
  std::optional<base::NumaMask> nearest;
  std::int64_t short_by = 0;
  bool operator==(const ResourceNumbers&) const = default;
};

struct Explanation {
  Why code = Why::kFits;
  // One sentence without a full stop. It has the pod's numbers and none of the node's, so that it
  // is the same on all nodes of a kind.
  std::string summary;
  std::string detail;                      // the same with this node's numbers
  std::string resource;                    // the one that is short, where it is one
  std::string container;                   // the one that fails; "" is the pod as a whole
  bool fits_empty_node = false;            // a node like this one without pods would admit it
  std::string admitting_policy;            // of kNeverFits: the strictest that would when empty
  std::optional<std::int64_t> least_cpus;  // of kWidthsDisagree: so many CPUs would be admitted
  std::vector<ResourceNumbers> resources;  // devices, CPUs, memory; of the container or the pod
  bool operator==(const Explanation&) const = default;
};

// Explains the answer that Admit or Answer gave for this state and request. Pure, and some twenty
// admissions long: for people who ask, not for every node of every pod.
Explanation Explain(const NodeState& state, const Request& request, const Outcome& outcome);

// Explains what NodeSums::Check says: "OutOfcpu", "OutOfmemory", …
Explanation ExplainOutOf(const std::string& reason);

}  // namespace scheduler::admission
