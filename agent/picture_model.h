#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/cpu_set.h"
#include "hwinfo/topology.h"
#include "placement/node_placement.h"

// What the picture shows, sorted by where it is: the joins between hardware and pods, before any
// text. Pointers lead into the topology and the placement, which must outlive it.
namespace agent {

// A PCI device and what the kubelet made of it: one id or, for partitions and shares, several.
struct DeviceView {
  const hwinfo::PciDevice* device = nullptr;
  std::string pcie_switch;  // "A", "B", …: the same letter is the same switch; "" if it shares none
  int ids = 0;              // device ids that the kubelet hands out of it
  int ids_held = 0;
  bool unhealthy = false;      // one of its ids is
  base::NumaMask other_claim;  // where its plugin puts it, if that is not its node
  std::vector<const placement::PlacedPod*> holders;
  std::vector<const DeviceView*> functions;  // its virtual functions on the same node
};

// What a pod holds on one NUMA node.
struct PodView {
  const placement::PlacedPod* pod = nullptr;
  base::CpuSet cpus;
  std::map<std::string, int> devices;           // count by resource
  std::vector<placement::PlacedMemory> memory;  // blocks on several nodes show on each of them
};

struct NodeView {
  const hwinfo::NumaNode* hardware = nullptr;  // nullptr: the place of what is on no known node
  const placement::NumaNodePlacement* placed = nullptr;  // nullptr: nothing was observed of it
  std::vector<const DeviceView*> devices;  // virtual functions only where their parent is not here
  std::vector<PodView> pods;
};

struct PictureModel {
  std::vector<DeviceView> devices;  // of the topology, in its order
  std::vector<NodeView> nodes;      // ascending by id
  NodeView nowhere;
};

PictureModel BuildPictureModel(const hwinfo::Topology& topology,
                               const placement::NodePlacement& placement);

}  // namespace agent
