#pragma once

#include "placement/observation.h"

// What is free, counted one by one from the kubelet's list alone. It is exact where nothing is
// hidden: no finished init containers, no unhealthy devices.
namespace reference {

template <class Visit>
void ForEachContainer(const placement::Facts& facts, Visit visit) {
  for (const podresources::Pod& pod : facts.assignments->pods) {
    for (const podresources::Container& container : pod.containers) visit(container);
  }
}

inline base::CpuSet FreeCpus(const placement::Facts& facts, int node) {
  base::CpuSet free;
  for (const hwinfo::Cpu& cpu : facts.topology.cpus) {
    bool taken = cpu.numa_node != node || facts.config.reserved_cpus.value->Contains(cpu.id);
    ForEachContainer(facts, [&](const podresources::Container& container) {
      taken = taken || container.cpus.Contains(cpu.id);
    });
    if (!taken) free.Insert(cpu.id);
  }
  return free;
}

inline int FreeDevices(const placement::Facts& facts, int node) {
  int free = 0;
  for (const podresources::Device& device : facts.assignments->allocatable->devices) {
    bool taken = !device.numa_nodes.Contains(node);
    ForEachContainer(facts, [&](const podresources::Container& container) {
      for (const podresources::Device& held : container.devices) {
        taken = taken || (held.resource == device.resource && held.id == device.id);
      }
    });
    free += taken ? 0 : 1;
  }
  return free;
}

inline std::int64_t FreeMemoryInAll(const placement::Facts& facts) {
  std::int64_t free = 0;
  for (const hwinfo::NumaNode& node : facts.topology.numa_nodes) {
    free += node.memory_bytes.value_or(0);
  }
  ForEachContainer(facts, [&](const podresources::Container& container) {
    for (const podresources::MemoryBlock& block : container.memory) free -= block.bytes;
  });
  return free;
}

}  // namespace reference
