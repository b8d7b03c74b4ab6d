#pragma once

#include <algorithm>

// What differs between the kubelet's releases in admission. Each fact says the release that brought
// it and the file below pkg/kubelet/cm/ that it mirrors (1.35.4, 1.36.3, 1.37.2, 1.38.0-beta.0).
// `minor` is Settings::minor_version: 35 for 1.35; 0, not known, counts as 1.37.
namespace scheduler::admission {

inline constexpr int kOldestRelease = 35;
inline constexpr int kUsualRelease = 37;
inline constexpr int kNewestRelease = 38;

// The release whose recorded admissions are all predicted. Others are mirrored by their source.
inline constexpr int kVerifiedRelease = 37;

// The release whose rules stand for a kubelet 1.`minor`: its own, or the nearest that is mirrored.
constexpr int MirroredRelease(int minor) {
  return minor == 0 ? kUsualRelease : std::clamp(minor, kOldestRelease, kNewestRelease);
}

// Device hints are made of the nodes that host devices of the resource, before: of all nodes
// (devicemanager/topology_hints.go, deviceNUMANodes).
constexpr bool DeviceHintsUseOnlyHostNodes(int minor) { return MirroredRelease(minor) >= 36; }

// With align-by-socket, distribute-cpus-across-numa prefers NUMA nodes of one socket and lets a
// node give less than an even share (cpumanager/cpu_assignment.go).
constexpr bool DistributesWithinSockets(int minor) { return MirroredRelease(minor) >= 37; }

// distribute-cpus-across-numa asks no node for more than it has, also where the combination was
// overwritten (cpumanager/cpu_assignment.go).
constexpr bool CapsEvenShares(int minor) { return MirroredRelease(minor) >= 37; }

// distribute-cpus-across-numa remembers copies of its combinations, before: slices that later
// combinations overwrite (cpumanager/cpu_assignment.go, iterateCombinations).
constexpr bool CopiesCombinations(int minor) { return MirroredRelease(minor) >= 38; }

// distribute-cpus-across-numa passes over nodes whose whole groups of CPUs cannot hold the rest,
// before: it searches them for ever (cpumanager/cpu_assignment.go).
constexpr bool CountsGroupsOfTheRest(int minor) { return MirroredRelease(minor) >= 38; }

// distribute-cpus-across-numa uses at least as many nodes as the merged hint has
// (cpumanager/cpu_assignment.go, rangeNUMANodesNeededToSatisfy).
constexpr bool DistributesOverHintedNodes(int minor) { return MirroredRelease(minor) >= 38; }

// A socket or core is free if all of its own CPUs are, before: if as many as the machine's average
// are (cpumanager/cpu_assignment.go, isSocketFree, isCoreFree).
constexpr bool KnowsRealSizes(int minor) { return MirroredRelease(minor) >= 38; }

// distribute-cpus-across-cores takes one CPU of each core in turns, before: a socket's CPUs by id
// (cpumanager/cpu_assignment.go, sortAvailableCPUsSpread).
constexpr bool SpreadsCoreByCore(int minor) { return MirroredRelease(minor) >= 38; }

// prefer-align-cpus-by-uncorecache takes all whole caches first, then a part of one, before: it
// tries both at each cache (cpumanager/cpu_assignment.go, takeUncoreCache).
constexpr bool TakesWholeUncoresFirst(int minor) { return MirroredRelease(minor) >= 38; }

// Under scope pod the merge counts memory types that only init containers ask for, before: those
// of the app containers alone (memorymanager/policy_static.go, getPodRequestedResources).
constexpr bool PodMemoryCountsInitTypes(int minor) { return MirroredRelease(minor) >= 38; }

// The managers can manage pods that have resources of their own (gate PodLevelResourceManagers;
// cpumanager and memorymanager, policy_static.go, AllocatePod).
constexpr bool KnowsPodLevelManagers(int minor) { return MirroredRelease(minor) >= 36; }

}  // namespace scheduler::admission
