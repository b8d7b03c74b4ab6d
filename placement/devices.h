#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "placement/observation.h"

namespace placement {

using DeviceKey = std::pair<std::string, std::string>;  // resource, id

struct DeviceAccount {
  std::map<DeviceKey, PlacedDevice> devices;
  std::set<DeviceKey> held;            // by active pods, also those their finished containers keep
  std::set<DeviceKey> dynamic;         // of DRA drivers: the device manager does not count them
  std::set<std::string> unregistered;  // resources whose plugin the kubelet waits for
};

// The devices that the kubelet counts, which are more than it lists as allocatable: unhealthy ones
// are missing there. A device is unhealthy if it is not listed as allocatable and either held or in
// `known_devices`. A resource of which nothing is allocatable any more, while the kubelet's
// checkpoint still has it, is waiting for its plugin (a kubelet that has just started); one that
// the checkpoint has lost, too, is gone, and its known devices with it. A device that is held by
// way of its plugin and by way of a DRA driver, which know nothing of each other, is a diagnostic.
DeviceAccount AccountDevices(const Facts& facts, const std::set<std::string>& active,
                             base::Diagnostics& diagnostics);

// Where a device is for people: by the kernel's word on its PCI function if there is one, else by
// the plugin's claim; on a machine with one NUMA node always there. Empty: nobody says.
base::NumaMask LocalityOf(const PlacedDevice& device, const hwinfo::Topology& topology);

// "gpu" of "nvidia.com/gpu".
std::string ShortName(const std::string& resource);

// The id under which a DRA device is found in `device_hardware`.
std::string DynamicDeviceId(const podresources::ClaimDevice& device);

}  // namespace placement
