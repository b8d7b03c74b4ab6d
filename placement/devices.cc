#include "placement/devices.h"

#include <fmt/format.h>

namespace placement {
namespace {

using podresources::Device;

// Two partitions of one device are told apart by plugin and driver in ways that cannot be compared.
bool Overlap(const hwinfo::ResolvedDevice& one, const hwinfo::ResolvedDevice& other) {
  return one.address == other.address && (!one.partition || !other.partition);
}

base::Diagnostic HeldTwice(const DeviceKey& dynamic, const DeviceKey& plugins,
                           const hwinfo::PciAddress& address) {
  return {
      .code = "DeviceHeldTwice",
      .subject = fmt::format("{} {}", dynamic.first, dynamic.second),
      .message = fmt::format("The driver and the device plugin of {} have both given {} away, the "
                             "plugin as {}: neither knows of the other.",
                             plugins.first, hwinfo::ToString(address), plugins.second)};
}

class Collector {
 public:
  Collector(const Facts& facts, const std::set<std::string>& active)
      : facts_(facts), active_(active) {
    for (const DeviceHardware& hardware : facts.device_hardware) {
      hardware_.emplace(DeviceKey(hardware.resource, hardware.id), &hardware);
    }
  }

  DeviceAccount Collect(base::Diagnostics& diagnostics) && {
    if (facts_.assignments.ok()) {
      CollectAllocatable();
      CollectHeld();
      CollectHidden();
      FindUnregistered();
    }
    CollectKnown();
    for (auto& [key, device] : account_.devices) Resolve(key, device);
    FindHeldTwice(diagnostics);
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
    if (found == hardware_.end()) return;
    const std::optional<int> claimed = found->second->claimed_node;
    if (claimed && base::NumaMask::Fits(*claimed)) placed.numa_nodes.Insert(*claimed);
    const std::optional<hwinfo::PciAddress>& address = found->second->resolved.address;
    if (!address) return;
    placed.pci_address = hwinfo::ToString(*address);
    const hwinfo::PciDevice* device = facts_.topology.FindDevice(*address);
    if (device != nullptr) placed.pci_numa_node = device->numa_node;
  }

  void FindHeldTwice(base::Diagnostics& diagnostics) const {
    for (const DeviceKey& dynamic : account_.dynamic) {
      for (const DeviceKey& plugins : account_.held) {
        if (account_.dynamic.contains(plugins)) continue;
        const hwinfo::ResolvedDevice* const one = ResolvedOf(dynamic);
        const hwinfo::ResolvedDevice* const other = ResolvedOf(plugins);
        if (one == nullptr || other == nullptr || !Overlap(*one, *other)) continue;
        diagnostics.push_back(HeldTwice(dynamic, plugins, *one->address));
      }
    }
  }

  const hwinfo::ResolvedDevice* ResolvedOf(const DeviceKey& key) const {
    const auto found = hardware_.find(key);
    const bool known = found != hardware_.end() && found->second->resolved.address;
    return known ? &found->second->resolved : nullptr;
  }

  const Facts& facts_;
  const std::set<std::string>& active_;
  std::map<DeviceKey, const DeviceHardware*> hardware_;
  std::set<std::string> healthy_resources_;
  DeviceAccount account_;
};

// `dynamic`: of a DRA driver, whose word the kubelet does not align by.
void Explain(const PlacedDevice& device, bool dynamic, const base::NumaMask& known_nodes,
             base::Diagnostics& diagnostics) {
  const char* const who = dynamic ? "driver" : "plugin";
  const std::string subject = fmt::format("{} {}", device.resource, device.id);
  const base::NumaMask missing = device.numa_nodes - known_nodes;
  if (!missing.empty() || device.unknown_node) {
    diagnostics.push_back(
        {.code = "DeviceClaimsUnknownNumaNode",
         .subject = subject,
         .message = missing.empty()
                        ? fmt::format("The {} claims a NUMA node that cannot be.", who)
                        : fmt::format("The {} claims NUMA node {}, which this machine does not "
                                      "have.",
                                      who, missing.ToString())});
  } else if (device.pci_numa_node && !device.numa_nodes.empty() &&
             !device.numa_nodes.Contains(*device.pci_numa_node)) {
    diagnostics.push_back(
        {.code = "DeviceLocalityDisagrees",
         .subject = subject,
         .message = fmt::format(
             "The {} claims NUMA node {}, the kernel says that {} is on NUMA node {}{}.", who,
             device.numa_nodes.ToString(), device.pci_address, *device.pci_numa_node,
             dynamic ? "" : ": the kubelet aligns by the claim")});
  }
}

}  // namespace

DeviceAccount AccountDevices(const Facts& facts, const std::set<std::string>& active,
                             base::Diagnostics& diagnostics) {
  DeviceAccount account = Collector(facts, active).Collect(diagnostics);
  const base::NumaMask known_nodes = facts.topology.NumaNodeIds();
  for (const auto& [key, device] : account.devices) {
    Explain(device, account.dynamic.contains(key), known_nodes, diagnostics);
  }
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
