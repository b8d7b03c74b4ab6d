#include "test/scheduler/nrt_of.h"

#include <utility>

#include "placement/nrt.h"

namespace scheduler::admission {
namespace {

bool IsHeld(const NodeState& state, const placement::PlacedDevice& device) {
  const int resource = state.machine->FindResource(device.resource);
  return state.pool.devices[At(resource)].allocated.Test(FindDevice(state, resource, device.id));
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
