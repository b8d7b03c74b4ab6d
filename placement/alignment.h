#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "placement/devices.h"

// Whether what a pod holds sits together.
//
// The unit is the pod under the Topology Manager's scope pod, otherwise each container; the pod
// shows its worst unit. S is the set of NUMA nodes of all that the unit holds exclusively: CPUs,
// memory blocks, devices. W is the fewest NUMA nodes whose installed capacity could hold all of it
// together. In this order:
//   Drifted     the kernel enforces something else (see below)
//   Unknown     the locality of something that it holds is not known
//   Misaligned  |S| > W
//   Unpinned    it holds a device and no exclusive CPUs
//   Spread      |S| = W > 1
//   Aligned
//
// Which locality of a device counts: LocalityOf, the kernel's before the plugin's. A device that
// nobody can place makes the unit Unknown if it should have a place: it is a PCI function of this
// machine, or its plugin claimed a NUMA node, or other devices of its resource are placed. Devices
// of a resource that has nothing to do with NUMA (/dev/fuse) are left out. A device that is local
// to several NUMA nodes adds none to S if one of them is in S already, else its lowest.
//
// Drifted: a container's effective cpuset differs from its exclusive CPUs (it is wider, misses some
// or has lost them to CPUs that went offline), or, under the memory manager's policy Static, its
// effective memory nodes differ from those of its blocks; nodes without memory never appear in
// there and are not missed. Where memory is resident is no drift: pages that were touched before,
// page cache and shared libraries are where they are, and no controller moves them back. It is a
// finding of its own (MemoryElsewhere) that the message mentions.
namespace placement {

// What one NUMA node could hold if it were empty.
struct Installed {
  int id = -1;
  std::int64_t cpus = 0;
  std::map<std::string, std::int64_t> memory;   // by type; "memory" without the huge pages
  std::map<std::string, std::int64_t> devices;  // by resource
};

std::vector<Installed> InstalledOn(const hwinfo::Topology& topology, const DeviceAccount& devices);

// How much a unit needs.
struct Demand {
  std::int64_t cpus = 0;
  std::map<std::string, std::int64_t> memory;
  std::map<std::string, std::int64_t> devices;
};

// The fewest NUMA nodes that could hold `demand`; `at_most` where fewer cannot. Node sets are tried
// by ascending width, up to 65536 of them: exact for 16 NUMA nodes and, since only widths below
// `at_most` are tried, in practice for many more. Beyond that `at_most` is returned: nothing is
// called misaligned without proof.
int FewestNumaNodes(const Demand& demand, const std::vector<Installed>& nodes, int at_most);

// Resources of which the place of a device is known.
std::set<std::string> PlacedResources(const hwinfo::Topology& topology,
                                      const DeviceAccount& devices);

// What is the same for all pods, and is gone through once: a node may have thousands of both.
struct AlignmentContext {
  const hwinfo::Topology* topology = nullptr;
  const DeviceAccount* devices = nullptr;
  std::vector<Installed> installed;
  std::set<std::string> placed_resources;
  bool scope_is_pod = false;
  bool memory_is_static = false;
};

// Sets the pod's numa_nodes, alignment, reason and message from its containers. Findings that are
// no drift go to `diagnostics`.
void JudgePod(const AlignmentContext& context, PlacedPod& pod, base::Diagnostics& diagnostics);

}  // namespace placement
