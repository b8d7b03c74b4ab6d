#include "test/scheduler/nrt_of.h"

#include <algorithm>
#include <utility>

#include "placement/nrt.h"

namespace scheduler::admission {
namespace {

bool IsHeld(const NodeState& state, const placement::PlacedDevice& device) {
  const std::size_t resource = At(state.machine->FindResource(device.resource));
  const std::vector<Device>& all = state.machine->devices[resource].devices;
  const auto found = std::ranges::find(all, device.id, &Device::id);
  return state.pool.devices[resource].allocated.Test(static_cast<int>(found - all.begin()));
}

}  // namespace

placement::NodeResourceTopology NrtOf(placement::NodePlacement node, const NodeState& state) {
  WriteState(state, node);
  placement::Facts facts;
  facts.assignments = podresources::Assignments();
  facts.config.topology_options.value = node.kubelet.topology_options;
  placement::CpuAccount cpus;
  if (state.machine->settings.cpu_static) {
    cpus.allocatable.emplace();
    cpus.free.emplace();
  }
  for (const placement::NumaNodePlacement& numa : node.numa_nodes) {
    hwinfo::NumaNode hardware;
    hardware.id = numa.id;
    hardware.cpus = numa.cpus;
    hardware.memory_bytes = 1;
    if (!numa.core_groups.empty()) hardware.socket = numa.core_groups.front().socket;
    facts.topology.numa_nodes.push_back(std::move(hardware));
    if (!cpus.free) continue;
    *cpus.allocatable |= numa.cpus - node.kubelet.reserved_cpus.value_or(base::CpuSet());
    *cpus.free |= *numa.free_cpus;
  }
  placement::DeviceAccount devices;
  for (const placement::PlacedDevice& device : node.devices) {
    const placement::DeviceKey key(device.resource, device.id);
    devices.devices.emplace(key, device);
    if (IsHeld(state, device)) devices.held.insert(key);
  }
  return placement::MakeNrt(facts, node, cpus, devices);
}

}  // namespace scheduler::admission
