#pragma once

#include <optional>
#include <vector>

#include "scheduler/admission/machine.h"
#include "scheduler/admission/request.h"
#include "scheduler/admission/state.h"

// Pods with resources of their own, under scope pod and with the gate PodLevelResourceManagers: the
// pod holds its CPUs and memory once, its containers have parts of that (kubelet 1.37, cpumanager
// and memorymanager, policy_static.go, AllocatePod).
namespace scheduler::admission {

// The containers' parts of the pod's CPUs, in their order. Sidecars keep theirs, plain init
// containers give theirs back, and who asks for none shares what is left over. Nothing if they do
// not suffice. `affinity_nodes`: how many NUMA nodes the pod's mask has.
std::optional<std::vector<Bits>> SplitCpus(const Machine& machine, const Request& request,
                                           const Bits& whole, int affinity_nodes);

// The same with memory. All parts are on the pod's NUMA nodes.
std::vector<MemoryBlocks> SplitMemory(const Machine& machine, const Request& request,
                                      const MemoryBlocks& whole);

}  // namespace scheduler::admission
