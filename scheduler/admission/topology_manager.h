#pragma once

#include "scheduler/admission/hints.h"
#include "scheduler/admission/machine.h"

namespace scheduler::admission {

// The topology manager's merged hint.
struct Merged {
  Mask affinity = 0;  // 0: "no mask" (single-numa-node) or not computed
  bool preferred = false;
  bool admitted = false;
  bool computed = true;  // false: rejected or non-preferred on more than 16 NUMA nodes
  bool operator==(const Merged&) const = default;
};

// Whether `a` beats `b` where both are preferred or both are not: fewer nodes, then (where asked
// for) closer ones, then the lower number.
bool Fitter(const Machine& machine, Mask a, Mask b);

// best-effort's choice among masks that nobody prefers is exact up to this many NUMA nodes in the
// resources' hints.
inline constexpr int kMaxEnumeratedNodes = 16;

// Merges the opinions as the node's policy does (kubelet 1.37, policy.go and the policies' files).
// The result equals that of the kubelet's enumeration of all combinations of all hints. The mask of
// a rejection takes longer than the rejection itself: without `explain` it is not computed.
Merged Merge(const Machine& machine, const Opinions& opinions, bool explain = true);

}  // namespace scheduler::admission
