#pragma once

// Why the kubelet itself has no answer to a pod: it would not start as it is configured, it would
// hang, or it would crash. kubelet_limits.h finds them. Paths are below pkg/kubelet/cm of 1.37.
namespace scheduler::admission {

enum class Limit {
  kNone,
  // It would not start, so a running kubelet is not what we were told: no claim about the pod.
  kUnknownPolicy,     // a policy or scope that it does not know
  kTooManyNumaNodes,  // more than max-allowable-numa-nodes (8), with a policy other than none
  kTopologyOptions,   // refused in topologymanager/policy_options.go
  kCpuOptions,        // refused in cpumanager/policy_options.go, policy_none.go
  kNoReservedCpus,    // with CPU policy static
  kReservedMemory,    // memory policy Static with none, or on a NUMA node that is not there
  // More nodes than a Mask holds. The kubelet answers, we cannot.
  kMoreThan64NumaNodes,
  // All sets of more than kMaxListedNodes NUMA nodes would be listed, or fewer for thousands of
  // devices (kMaxDeviceLooks): slow beyond use, but with time and memory enough it is an answer.
  kTooManyMasks,
  // It would crash, again after each restart, or search for ever: the pod must be kept away.
  kNumaIdAbove63,  // bitmask.NewBitMask refuses the id, and its nil mask is used all the same
  kDistances,      // prefer-closest-numa-nodes takes NUMA ids for positions (numa_info.go)
  // distribute-cpus-across-numa searches for ever, or through millions of combinations
  // (cpumanager/cpu_assignment.go).
  kEndlessSearch,
  kMissingHugePages,  // a NUMA node has no table of the size (memorymanager/policy_static.go)
};

// "UnknownPolicy", "TooManyNumaNodes", …; "" for kNone.
const char* ToString(Limit limit);

// Whether the kubelet would be lost, which makes it a rejection. Otherwise there is no
// answer, and the pod may be tried.
inline bool IsFatal(Limit limit) { return limit >= Limit::kNumaIdAbove63; }

}  // namespace scheduler::admission
