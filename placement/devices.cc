#include "placement/devices.h"

#include <fmt/format.h>

namespace placement {
namespace {

using podresources::Device;

class Collector {
 public:
  Collector(const Facts& facts, const std::set<std::string>& active)
      : facts_(facts), active_(active) {
    for (const DeviceHardware& hardware : facts.device_hardware) {
      hardware_.emplace(DeviceKey(hardware.resource, hardware.id), &hardware.resolved);
    }
  }

  DeviceAccount Collect() && {
    if (facts_.assignments.ok()) {
      CollectAllocatable();
      CollectHeld();
      CollectHidden();
      FindUnregistered();
    }
    CollectKnown();
    for (auto& [key, device] : account_.devices) Resolve(key, device);
    return std::move(account_);
  }

 private:
  PlacedDevice& Add(const DeviceKey& key) {
    const auto [found, added] = account_.devices.try_emplace(key);
    if (added) {
      found->second.resource = key.first;
      found->second.id = key.second;
      found->second.healthy = false;  // until it is seen among the allocatable ones
    }
    return found->second;
  }
  PlacedDevice& Add(const Device& device) {
    PlacedDevice& placed = Add(DeviceKey(device.resource, device.id));
    placed.numa_nodes |= device.numa_nodes;
    placed.unknown_node |= device.unknown_node;
    return placed;
  }

  void CollectAllocatable() {
    if (!facts_.assignments->allocatable) return;
    for (const Device& device : facts_.assignments->allocatable->devices) {
      Add(device).healthy = true;
      healthy_resources_.insert(device.resource);
    }
  }

  void CollectHeld() {
    const bool health_unknown = !facts_.assignments->allocatable;
    for (const podresources::Pod& pod : facts_.assignments->pods) {
      for (const podresources::Container& container : pod.containers) {
        for (const Device& device : container.devices) {
          PlacedDevice& placed = Add(device);
          placed.healthy |= health_unknown;
          account_.held.emplace(device.resource, device.id);
        }
        for (const podresources::ClaimDevice& claim : container.claims) {
          const DeviceKey key(claim.driver, DynamicDeviceId(claim));
          Add(key).healthy = true;
          account_.held.insert(key);
          account_.dynamic.insert(key);
        }
      }
    }
  }

  // What only the checkpoint shows, of pods that live: finished init containers keep their devices.
  void CollectHidden() {
    if (!facts_.state.devices) return;
    for (const auto& [uid, containers] : facts_.state.devices->entries) {
      if (!active_.contains(uid)) continue;
      for (const auto& [name, devices] : containers) {
        for (const Device& device : devices) {
          Add(device);
          account_.held.emplace(device.resource, device.id);
        }
      }
    }
  }

  void FindUnregistered() {
    if (!facts_.assignments->allocatable) return;
    if (!facts_.state.devices) {
      for (const PlacedDevice& device : facts_.known_devices) {
        if (!healthy_resources_.contains(device.resource)) {
          account_.unregistered.insert(device.resource);
        }
      }
      return;
    }
    for (const auto& [resource, ids] : facts_.state.devices->registered) {
      if (!healthy_resources_.contains(resource)) account_.unregistered.insert(resource);
    }
  }

  void CollectKnown() {
    const bool asked = facts_.assignments.ok() && facts_.assignments->allocatable;
    for (const PlacedDevice& known : facts_.known_devices) {
      const DeviceKey key(known.resource, known.id);
      if (account_.devices.contains(key)) continue;
      if (asked && !healthy_resources_.contains(known.resource) &&
          !account_.unregistered.contains(known.resource)) {
        continue;
      }
      PlacedDevice& placed = Add(key);
      placed.numa_nodes = known.numa_nodes;
      placed.unknown_node = known.unknown_node;
      placed.healthy = !asked && known.healthy;
    }
  }

  void Resolve(const DeviceKey& key, PlacedDevice& placed) const {
    const auto found = hardware_.find(key);
    if (found == hardware_.end() || !found->second->address) return;
    placed.pci_address = hwinfo::ToString(*found->second->address);
    const hwinfo::PciDevice* device = facts_.topology.FindDevice(*found->second->address);
    if (device != nullptr) placed.pci_numa_node = device->numa_node;
  }

  const Facts& facts_;
  const std::set<std::string>& active_;
  std::map<DeviceKey, const hwinfo::ResolvedDevice*> hardware_;
  std::set<std::string> healthy_resources_;
  DeviceAccount account_;
};

void Explain(const PlacedDevice& device, const base::NumaMask& known_nodes,
             base::Diagnostics& diagnostics) {
  const std::string subject = fmt::format("{} {}", device.resource, device.id);
  const base::NumaMask missing = device.numa_nodes - known_nodes;
  if (!missing.empty() || device.unknown_node) {
    diagnostics.push_back(
        {.code = "DeviceClaimsUnknownNumaNode",
         .subject = subject,
         .message = missing.empty()
                        ? std::string("The plugin claims a NUMA node that cannot be.")
                        : fmt::format("The plugin claims NUMA node {}, which this machine does not "
                                      "have.",
                                      missing.ToString())});
  } else if (device.pci_numa_node && !device.numa_nodes.empty() &&
             !device.numa_nodes.Contains(*device.pci_numa_node)) {
    diagnostics.push_back(
        {.code = "DeviceLocalityDisagrees",
         .subject = subject,
         .message =
             fmt::format("The plugin claims NUMA node {}, the kernel says that {} is on NUMA "
                         "node {}: the kubelet aligns by the claim.",
                         device.numa_nodes.ToString(), device.pci_address, *device.pci_numa_node)});
  }
}

}  // namespace

DeviceAccount AccountDevices(const Facts& facts, const std::set<std::string>& active,
                             base::Diagnostics& diagnostics) {
  DeviceAccount account = Collector(facts, active).Collect();
  const base::NumaMask known_nodes = facts.topology.NumaNodeIds();
  for (const auto& [key, device] : account.devices) Explain(device, known_nodes, diagnostics);
  for (const std::string& resource : account.unregistered) {
    diagnostics.push_back({.code = "DevicePluginNotRegistered",
                           .subject = resource,
                           .message = fmt::format(
                               "The kubelet knows {} but has no healthy device of it: its plugin "
                               "has not registered yet, or every device has failed. How many there "
                               "are is not known.",
                               resource)});
  }
  return account;
}

base::NumaMask LocalityOf(const PlacedDevice& device, const hwinfo::Topology& topology) {
  if (topology.numa_nodes.size() == 1) return topology.NumaNodeIds();
  if (device.pci_numa_node) return base::NumaMask{*device.pci_numa_node};
  return device.numa_nodes & topology.NumaNodeIds();
}

std::string ShortName(const std::string& resource) {
  const std::size_t slash = resource.rfind('/');
  return slash == std::string::npos ? resource : resource.substr(slash + 1);
}

std::string DynamicDeviceId(const podresources::ClaimDevice& device) {
  return fmt::format("{}/{}", device.pool, device.device);
}

}  // namespace placement
