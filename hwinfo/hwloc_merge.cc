#include "hwinfo/hwloc_merge.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "hwinfo/pci_devices.h"

namespace hwinfo {
namespace {

using base::CpuSet;
using base::NumaMask;

bool NeverHasCpus(const NumaNode& node) {
  constexpr std::array<std::string_view, 6> kTypes = {"HBM", "MCDRAM",    "NVM",
                                                      "SPM", "GPUMemory", "CXL-DRAM"};
  return std::ranges::count(kTypes, node.memory_type) > 0;
}

NumaMask NodesWithCpus(const Topology& topology) {
  NumaMask nodes;
  for (const NumaNode& node : topology.numa_nodes) {
    if (!node.cpus.empty()) nodes.Insert(node.id);
  }
  return nodes;
}

void Differ(std::string code, std::string subject, std::string message, Topology& topology) {
  topology.diagnostics.push_back({std::move(code), std::move(subject), std::move(message)});
}

void CompareNodes(const HwlocView& hwloc, Topology& topology) {
  NumaMask seen;
  for (const NumaNode& node : hwloc.nodes) seen.Insert(node.id);
  const NumaMask ours = topology.NumaNodeIds();
  if (seen != ours) {
    Differ("HwlocNodesDiffer", "",
           fmt::format("hwloc shows the NUMA nodes {}, sysfs shows {}", seen.ToString(),
                       ours.ToString()),
           topology);
  }
}

void CompareCpus(const HwlocView& hwloc, Topology& topology) {
  const CpuSet ours = topology.OnlineCpus();
  if (hwloc.online != ours) {
    Differ("HwlocCpusDiffer", "",
           fmt::format("hwloc shows the CPUs {}, sysfs shows {}", hwloc.online.ToString(),
                       ours.ToString()),
           topology);
  }
}

// Adds kinds, and compares sockets and cores on the way.
void AddCpus(const HwlocView& hwloc, Topology& topology) {
  CpuSet placed_elsewhere;
  auto other = hwloc.cpus.begin();
  for (Cpu& cpu : topology.cpus) {
    while (other != hwloc.cpus.end() && other->id < cpu.id) ++other;
    if (other == hwloc.cpus.end()) break;
    if (other->id != cpu.id) continue;
    cpu.kind = other->kind;
    if (other->socket != cpu.socket || other->siblings != cpu.siblings) {
      placed_elsewhere.Insert(cpu.id);
    }
  }
  if (!placed_elsewhere.empty()) {
    Differ("HwlocCoresDiffer", "",
           fmt::format("hwloc and sysfs put the CPUs {} on different sockets or cores",
                       placed_elsewhere.ToString()),
           topology);
  }
}

void AddNodes(const HwlocView& hwloc, Topology& topology) {
  for (NumaNode& node : topology.numa_nodes) {
    const auto found = std::ranges::lower_bound(hwloc.nodes, node.id, {}, &NumaNode::id);
    if (found == hwloc.nodes.end() || found->id != node.id) continue;
    if (node.memory_type.empty()) node.memory_type = found->memory_type;
    if (!node.gpu) node.gpu = found->gpu;
    if (node.cpus.empty()) {
      node.nearest_cpus = found->nearest_cpus & hwloc.online;
    } else if (node.cpus != found->nearest_cpus) {
      Differ("HwlocNodesDiffer", fmt::format("node {}", node.id),
             fmt::format("hwloc gives the node the CPUs {}, sysfs {}",
                         found->nearest_cpus.ToString(), node.cpus.ToString()),
             topology);
    }
  }
}

// A device by hwloc's word alone.
PciDevice FromAnchor(const HwlocView::Pci& pci, DeviceKind kind, const NumaMask& with_cpus) {
  PciDevice device = pci.device;
  device.kind = kind;
  device.hwloc_numa_nodes = pci.numa_nodes & with_cpus;
  if (device.hwloc_numa_nodes.size() == 1) {
    device.numa_node = device.hwloc_numa_nodes.First();
    device.locality = LocalitySource::kHwloc;
  }
  return device;
}

void NoteHiddenCpus(const HwlocView& hwloc, Topology& topology) {
  static constexpr char kMessage[] =
      "hwloc knows of the CPUs {} but does not show them: they are offline, or were not allowed to "
      "the program that wrote the file";
  const CpuSet hidden = hwloc.complete - hwloc.online;
  if (hidden.empty()) return;
  Differ("CpusNotShown", "", fmt::format(kMessage, hidden.ToString()), topology);
  for (const auto& [node, cpus] : hwloc.complete_cpus) {
    if (!cpus.Intersects(hidden)) continue;
    Differ("CpusNotShown", fmt::format("node {}", node),
           fmt::format(kMessage, (cpus & hidden).ToString()), topology);
  }
}

}  // namespace

std::vector<NumaNode> NodesFromHwloc(const HwlocView& hwloc) {
  std::vector<NumaNode> nodes = hwloc.nodes;
  std::vector<NumaNode*> order;
  for (NumaNode& node : nodes) order.push_back(&node);
  std::ranges::stable_sort(order, {},
                           [](const NumaNode* node) { return node->nearest_cpus.size(); });
  CpuSet taken;
  bool any_memory = false;
  for (NumaNode* node : order) {
    any_memory = any_memory || node->memory_bytes.value_or(0) > 0;
    if (NeverHasCpus(*node)) continue;
    node->cpus = node->nearest_cpus - taken;
    if (!node->cpus.empty()) node->nearest_cpus = node->cpus;
    taken |= node->cpus;
  }
  // A file that gives no node any memory was written by somebody who did not know it.
  for (NumaNode& node : nodes) {
    if (!any_memory) node.memory_bytes.reset();
  }
  return nodes;
}

Topology FromHwloc(const HwlocView& hwloc) {
  Topology topology;
  topology.architecture = hwloc.architecture;
  topology.cpus = hwloc.cpus;
  topology.numa_nodes = NodesFromHwloc(hwloc);
  const NumaMask with_cpus = NodesWithCpus(topology);
  for (const auto& [address, pci] : hwloc.pci) {
    const auto kind = KindOf(pci.device.device_class, pci.device.vendor, address);
    if (kind) topology.devices.push_back(FromAnchor(pci, *kind, with_cpus));
  }
  NoteHiddenCpus(hwloc, topology);
  return topology;
}

void AddHwloc(const HwlocView& hwloc, Topology& topology) {
  if (topology.architecture.empty()) topology.architecture = hwloc.architecture;
  CompareCpus(hwloc, topology);
  AddCpus(hwloc, topology);
  if (!topology.numa_visible) return;  // hwloc, too, makes one node up
  CompareNodes(hwloc, topology);
  AddNodes(hwloc, topology);
}

void AddAnchors(const HwlocView& hwloc, Topology& topology) {
  const NumaMask with_cpus = NodesWithCpus(topology);
  for (PciDevice& device : topology.devices) {
    const auto found = hwloc.pci.find(device.address);
    if (found == hwloc.pci.end()) continue;
    const NumaMask& anchored = found->second.numa_nodes;
    device.hwloc_numa_nodes = anchored & with_cpus;
    if (!device.numa_node && device.hwloc_numa_nodes.size() == 1) {
      device.numa_node = device.hwloc_numa_nodes.First();
      device.locality = LocalitySource::kHwloc;
    } else if (device.numa_node && !anchored.empty() && !anchored.Contains(*device.numa_node)) {
      Differ("LocalityDiffers", ToString(device.address),
             fmt::format("sysfs puts the device on NUMA node {}, hwloc on {}", *device.numa_node,
                         anchored.ToString()),
             topology);
    }
  }
}

}  // namespace hwinfo
