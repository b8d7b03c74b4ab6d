#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "scheduler/admission/machine.h"
#include "scheduler/admission/memory_manager.h"
#include "scheduler/admission/release.h"
#include "scheduler/admission/request.h"

namespace scheduler::admission {

// Whether the CPU and memory managers do not leave the pod alone.
inline bool ManagesPod(const Settings& settings, const Request& request) {
  return !request.pod_level ||
         (settings.pod_level_managers && KnowsPodLevelManagers(settings.minor_version));
}

// What a container or pod wants of this machine: positions instead of names. What no device plugin
// and no NUMA node offers is not the managers'.
struct Wants {
  std::int64_t cpus = 0;
  MemoryDemand memory;
  bool unknown_memory = false;  // a memory type that no NUMA node has
  absl::InlinedVector<std::pair<int, std::int64_t>, 2> devices;

  // `managed`: the CPU and memory managers do not leave the pod alone.
  Wants(const Machine& machine, const Demand& demand, bool managed) {
    if (machine.settings.cpu_static && managed) cpus = demand.cpus;
    for (const auto& [name, count] : demand.devices) {
      const int resource = machine.FindResource(name);
      if (resource >= 0) devices.push_back({resource, count});
    }
    if (managed) AddMemory(machine, demand.memory);
  }
  void AddMemory(const Machine& machine,
                 const std::vector<std::pair<std::string, std::int64_t>>& amounts) {
    if (!machine.settings.memory_static) return;
    for (const auto& [name, bytes] : amounts) {
      const int type = machine.MemoryType(name);
      unknown_memory = unknown_memory || (type < 0 && name != kube::kMemory);
      if (type >= 0) memory.push_back({type, bytes});
    }
  }
};

}  // namespace scheduler::admission
