#include "agent/picture_model.h"

#include <algorithm>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "placement/amounts.h"

namespace agent {
namespace {

using DeviceKey = std::pair<std::string, std::string>;  // resource, id
using PlacedDevices = std::map<DeviceKey, const placement::PlacedDevice*>;

PlacedDevices IndexDevices(const placement::NodePlacement& placement) {
  PlacedDevices index;
  for (const placement::PlacedDevice& device : placement.devices) {
    index.try_emplace({device.resource, device.id}, &device);
  }
  return index;
}

std::string SwitchName(std::size_t index) {
  std::string name(1, static_cast<char>('A' + index % 26));
  return index < 26 ? name : name + std::to_string(index / 26);
}

// Devices share a switch if they share more than the root port. Only those that really share it
// with another physical device are named, in the order of their addresses.
void NameSwitches(std::vector<DeviceView>& devices) {
  using Upstream = std::pair<hwinfo::PciAddress, hwinfo::PciAddress>;
  std::map<Upstream, std::vector<DeviceView*>> below;
  std::vector<Upstream> order;
  for (DeviceView& view : devices) {
    const hwinfo::PciDevice& device = *view.device;
    if (device.bridges.size() < 2 || device.physical_function) continue;
    const Upstream upstream = {device.bridges[0], device.bridges[1]};
    std::vector<DeviceView*>& members = below[upstream];
    if (members.empty()) order.push_back(upstream);
    members.push_back(&view);
  }
  std::size_t named = 0;
  for (const Upstream& upstream : order) {
    std::set<std::tuple<std::uint32_t, std::uint8_t, std::uint8_t>> slots;
    for (const DeviceView* view : below[upstream]) {
      const hwinfo::PciAddress& at = view->device->address;
      slots.insert({at.domain, at.bus, at.device});
    }
    if (slots.size() < 2) continue;
    const std::string name = SwitchName(named++);
    for (DeviceView* view : below[upstream]) view->pcie_switch = name;
  }
}

template <class Visit>
void ForEachHeldDevice(const placement::PlacedPod& pod, const Visit& visit) {
  for (const placement::PlacedContainer& container : pod.containers) {
    for (const placement::HeldDevices& held : container.devices) {
      for (const std::string& id : held.ids) visit(held.resource, id);
    }
  }
}

void AddKubeletsWord(const placement::NodePlacement& placement, const PlacedDevices& placed,
                     std::map<std::string, DeviceView*>& by_address) {
  for (const placement::PlacedDevice& device : placement.devices) {
    const auto at = by_address.find(device.pci_address);
    if (at == by_address.end()) continue;
    DeviceView& view = *at->second;
    ++view.ids;
    view.unhealthy |= !device.healthy;
    const std::optional<int> real = view.device->numa_node;
    if (real && !device.numa_nodes.empty() && !device.numa_nodes.Contains(*real)) {
      view.other_claim |= device.numa_nodes;
    }
  }
  for (const placement::PlacedPod& pod : placement.pods) {
    ForEachHeldDevice(pod, [&](const std::string& resource, const std::string& id) {
      const auto known = placed.find({resource, id});
      if (known == placed.end()) return;
      const auto at = by_address.find(known->second->pci_address);
      if (at == by_address.end()) return;
      DeviceView& view = *at->second;
      ++view.ids_held;
      if (view.holders.empty() || view.holders.back() != &pod) view.holders.push_back(&pod);
    });
  }
}

// Where a held device is: the kernel's word, else the plugin's; empty if nobody knows.
base::NumaMask NodesOf(const placement::PlacedDevice& device) {
  return device.pci_numa_node ? base::NumaMask{*device.pci_numa_node} : device.numa_nodes;
}

// Splits what a pod holds over the NUMA nodes it is on; -1 stands for no known node.
std::map<int, PodView> SplitPod(const placement::PlacedPod& pod, const hwinfo::Topology& topology,
                                const PlacedDevices& placed) {
  std::map<int, PodView> parts;
  const auto add_to = [&](const base::NumaMask& nodes, const auto& change) {
    for (const int node : nodes) change(parts[node]);
    if (nodes.empty()) change(parts[-1]);
  };
  const bool of_the_whole = !pod.containers.empty() && pod.containers.front().name.empty();
  for (const placement::PlacedContainer& container : pod.containers) {
    if (of_the_whole && !container.name.empty())
      break;  // its CPUs and memory are parts of the pod's
    for (const hwinfo::NumaNode& node : topology.numa_nodes) {
      const base::CpuSet here = container.cpus & node.cpus;
      if (!here.empty()) parts[node.id].cpus |= here;
    }
    for (const placement::PlacedMemory& block : container.memory) {
      add_to(block.numa_nodes, [&block](PodView& part) { part.memory.push_back(block); });
    }
  }
  ForEachHeldDevice(pod, [&](const std::string& resource, const std::string& id) {
    const auto known = placed.find({resource, id});
    add_to(known == placed.end() ? base::NumaMask{} : NodesOf(*known->second),
           [&resource](PodView& part) { ++part.devices[resource]; });
  });
  for (auto& [node, part] : parts) part.pod = &pod;
  return parts;
}

// Blocks of one type and the same nodes are one amount for the reader.
void MergeMemory(PodView& part) {
  std::map<std::pair<std::string, base::NumaMask>, std::int64_t> sums;
  for (const placement::PlacedMemory& block : part.memory) {
    std::int64_t& sum = sums[{block.type, block.numa_nodes}];
    sum = placement::SaturatingAdd(sum, block.bytes);
  }
  part.memory.clear();
  for (const auto& [key, bytes] : sums) {
    part.memory.push_back({.type = key.first, .bytes = bytes, .numa_nodes = key.second});
  }
}

void PlaceDevices(PictureModel& model, const std::map<int, NodeView*>& nodes) {
  std::map<hwinfo::PciAddress, DeviceView*> views;
  for (DeviceView& view : model.devices) views.try_emplace(view.device->address, &view);
  for (DeviceView& view : model.devices) {
    const hwinfo::PciDevice& device = *view.device;
    if (device.physical_function) {
      const auto parent = views.find(*device.physical_function);
      if (parent != views.end() && parent->second->device->numa_node == device.numa_node) {
        parent->second->functions.push_back(&view);
        continue;
      }
    }
    const auto node = device.numa_node ? nodes.find(*device.numa_node) : nodes.end();
    (node == nodes.end() ? model.nowhere : *node->second).devices.push_back(&view);
  }
}

}  // namespace

PictureModel BuildPictureModel(const hwinfo::Topology& topology,
                               const placement::NodePlacement& placement) {
  PictureModel model;
  std::map<std::string, DeviceView*> by_address;
  model.devices.reserve(topology.devices.size());
  for (const hwinfo::PciDevice& device : topology.devices) {
    model.devices.emplace_back().device = &device;
    by_address.try_emplace(hwinfo::ToString(device.address), &model.devices.back());
  }
  const PlacedDevices placed = IndexDevices(placement);
  NameSwitches(model.devices);
  AddKubeletsWord(placement, placed, by_address);

  std::map<int, const placement::NumaNodePlacement*> observed;
  for (const placement::NumaNodePlacement& node : placement.numa_nodes) observed[node.id] = &node;
  model.nodes.reserve(topology.numa_nodes.size());
  std::map<int, NodeView*> nodes;
  for (const hwinfo::NumaNode& node : topology.numa_nodes) {
    const auto seen = observed.find(node.id);
    NodeView& view = model.nodes.emplace_back();
    view.hardware = &node;
    if (seen != observed.end()) view.placed = seen->second;
    nodes[node.id] = &view;
  }
  PlaceDevices(model, nodes);
  for (const placement::PlacedPod& pod : placement.pods) {
    for (auto& [node, part] : SplitPod(pod, topology, placed)) {
      MergeMemory(part);
      const auto at = nodes.find(node);
      (at == nodes.end() ? model.nowhere : *at->second).pods.push_back(std::move(part));
    }
  }
  return model;
}

}  // namespace agent
