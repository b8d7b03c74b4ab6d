#include "hwinfo/topology.h"

#include <algorithm>

namespace hwinfo {

base::CpuSet Topology::OnlineCpus() const {
  base::CpuSet online;
  for (const Cpu& cpu : cpus) online.Insert(cpu.id);
  return online;
}

base::NumaMask Topology::NumaNodeIds() const {
  base::NumaMask ids;
  for (const NumaNode& node : numa_nodes) ids.Insert(node.id);
  return ids;
}

base::NumaMask Topology::NumaNodesOf(const base::CpuSet& cpu_set) const {
  base::NumaMask nodes;
  for (const NumaNode& node : numa_nodes) {
    if (node.cpus.Intersects(cpu_set)) nodes.Insert(node.id);
  }
  return nodes;
}

const NumaNode* Topology::FindNumaNode(int id) const {
  const auto found = std::ranges::lower_bound(numa_nodes, id, {}, &NumaNode::id);
  return found != numa_nodes.end() && found->id == id ? &*found : nullptr;
}

const PciDevice* Topology::FindDevice(const PciAddress& address) const {
  const auto found = std::ranges::lower_bound(devices, address, {}, &PciDevice::address);
  return found != devices.end() && found->address == address ? &*found : nullptr;
}

}  // namespace hwinfo
