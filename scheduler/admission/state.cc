#include "scheduler/admission/state.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "absl/status/status.h"
#include "base/status_macros.h"

namespace scheduler::admission {
namespace {

using placement::NodePlacement;
using placement::NumaNodePlacement;
using placement::PlacedContainer;
using placement::PlacedPod;

// Of one NUMA node; a count stays within an int for as long as one reads it back.
constexpr int kMaxAssignments = 1'000'000;

int PositionOf(const Machine& machine, int numa_id) {
  const auto found = std::ranges::lower_bound(machine.numa_ids, numa_id);
  return static_cast<int>(found - machine.numa_ids.begin());
}

Bits ToBits(const base::CpuSet& cpus, const CpuTopology& cpu) {
  Bits bits(cpu.cpu_slots);
  for (const int id : cpus) {
    if (id < cpu.cpu_slots && cpu.all.Test(id)) bits.Set(id);
  }
  return bits;
}

absl::Status ReadNodeMemory(const NumaNodePlacement& numa, const Machine& machine,
                            Pool::NodeMemory& memory) {
  memory.assignments = numa.memory_assignments.value_or(0);
  if (memory.assignments < 0 || memory.assignments > kMaxAssignments) {
    return absl::InvalidArgumentError(
        fmt::format("NUMA node {} cannot have {} memory assignments", numa.id, memory.assignments));
  }
  if (numa.memory_group) memory.group = machine.FromIds(*numa.memory_group);
  for (const placement::NodeMemory& table : numa.memory) {
    if (!table.free) continue;
    if (*table.free < 0 || *table.free > kMaxMemory) {
      return absl::InvalidArgumentError(fmt::format("NUMA node {} cannot have {} bytes of {} free",
                                                    numa.id, *table.free, table.type));
    }
    memory.free[At(machine.MemoryType(table.type))] = *table.free;
  }
  return absl::OkStatus();
}

absl::Status ReadPool(const NodePlacement& node, NodeState& state) {
  const Machine& machine = *state.machine;
  for (const NumaNodePlacement& numa : node.numa_nodes) {
    const int position = PositionOf(machine, numa.id);
    if (numa.free_cpus) {
      state.pool.cpus -= machine.cpu.in_numa[At(position)];
      state.pool.cpus |= ToBits(*numa.free_cpus, machine.cpu) - machine.reserved_cpus;
    }
    RETURN_IF_ERROR(ReadNodeMemory(numa, machine, state.pool.memory[At(position)]));
  }
  for (const placement::PlacedDevice& device : node.devices) {
    if (device.healthy) continue;
    const int resource = machine.FindResource(device.resource);  // built from the same list
    const int position = FindDevice(state, resource, device.id);
    if (position >= 0) state.pool.devices[At(resource)].healthy.Clear(position);
  }
  return absl::OkStatus();
}

absl::StatusOr<Holding> ReadHolding(const PlacedContainer& container, const NodeState& state) {
  const Machine& machine = *state.machine;
  Holding holding;
  holding.container = container.name;
  holding.cpus = ToBits(container.cpus, machine.cpu);
  for (const placement::PlacedMemory& block : container.memory) {
    const int type = machine.MemoryType(block.type);
    if (type < 0) {
      return absl::InvalidArgumentError(
          fmt::format("container {} holds {}, which no NUMA node has", container.name, block.type));
    }
    if (block.bytes < 0) {
      return absl::InvalidArgumentError(fmt::format("container {} cannot hold {} bytes of {}",
                                                    container.name, block.bytes, block.type));
    }
    holding.memory.push_back({type, machine.FromIds(block.numa_nodes), block.bytes});
  }
  for (const placement::HeldDevices& held : container.devices) {
    const int resource = machine.FindResource(held.resource);
    if (resource < 0) continue;  // no plugin announces it any more: nothing can be given out
    Bits bits(static_cast<int>(machine.devices[At(resource)].devices.size()));
    for (const std::string& id : held.ids) {
      const int device = FindDevice(state, resource, id);
      if (device >= 0) bits.Set(device);
    }
    holding.devices.push_back({resource, std::move(bits)});
  }
  return holding;
}

void AddNames(const NodeState& state, const Holding& holding, PlacedContainer& container) {
  const Machine& machine = *state.machine;
  container.name = holding.container;
  container.cpus = ToCpuSet(holding.cpus);
  for (const MemoryBlock& block : holding.memory) {
    container.memory.push_back(
        {machine.memory_types[At(block.type)], block.bytes, machine.ToIds(block.nodes)});
  }
  for (const auto& [resource, bits] : holding.devices) {
    const std::vector<std::string>& ids = (*state.device_ids)[At(resource)];
    placement::HeldDevices held{.resource = machine.devices[At(resource)].name, .ids = {}};
    bits.ForEach([&](int device) { held.ids.push_back(ids[At(device)]); });
    std::ranges::sort(held.ids);
    container.devices.push_back(std::move(held));
  }
}

void ReleaseMemory(const Machine& machine, const MemoryBlock& block, Pool& pool) {
  std::int64_t rest = block.bytes;
  for (Mask nodes = block.nodes; nodes != 0; nodes &= nodes - 1) {
    const int node = std::countr_zero(nodes);
    Pool::NodeMemory& memory = pool.memory[At(node)];
    if (--memory.assignments == 0) memory.group = Mask{1} << node;
    std::int64_t& free = memory.free[At(block.type)];
    const std::int64_t reserved = machine.memory[At(node)][At(block.type)].allocatable - free;
    const std::int64_t released = std::clamp<std::int64_t>(reserved, 0, rest);
    free += released;
    rest -= released;
  }
}

// What the pod holds itself, nullptr if its containers do.
const Holding* PodsOwn(const std::vector<Holding>& holdings) {
  const auto own = std::ranges::find(holdings, "", &Holding::container);
  return own == holdings.end() ? nullptr : &*own;
}

// Puts back into the pool what the containers of a pod hold, or the pod itself.
void ReleaseAll(const Machine& machine, const std::vector<Holding>& holdings, Pool& pool) {
  const Holding* own = PodsOwn(holdings);
  for (const Holding& holding : holdings) {
    if (own == nullptr || own == &holding) {
      Release(machine, holding, pool);
      continue;
    }
    for (const auto& [resource, bits] : holding.devices) {
      pool.devices[At(resource)].allocated -= bits;
    }
  }
}

// What is untold of the nodes of a block: ascending nodes, as much as each has.
void TakeUntold(const NodePlacement& node, const MemoryBlock& block, NodeState& state) {
  std::int64_t rest = block.bytes;
  const std::string& type = state.machine->memory_types[At(block.type)];
  for (Mask nodes = block.nodes; nodes != 0; nodes &= nodes - 1) {
    const int position = std::countr_zero(nodes);
    const int id = state.machine->numa_ids[At(position)];
    const auto numa = std::ranges::find(node.numa_nodes, id, &NumaNodePlacement::id);
    Pool::NodeMemory& memory = state.pool.memory[At(position)];
    if (!numa->memory_assignments) ++memory.assignments;
    if (!numa->memory_group) memory.group = block.nodes;
    const auto table = std::ranges::find(numa->memory, type, &placement::NodeMemory::type);
    if (table == numa->memory.end() || table->free) continue;
    std::int64_t& free = memory.free[At(block.type)];
    const std::int64_t taken = std::clamp<std::int64_t>(free, 0, rest);
    free -= taken;
    rest -= taken;
  }
}

// Where it is not told what is free, at least nothing is that a pod of the object holds.
void TakeUntold(const NodePlacement& node, const std::vector<Holding>& holdings, NodeState& state) {
  const Holding* own = PodsOwn(holdings);
  for (const Holding& holding : holdings) {
    if (own != nullptr && own != &holding) continue;
    for (const NumaNodePlacement& numa : node.numa_nodes) {
      if (numa.free_cpus) continue;
      const std::size_t position = At(PositionOf(*state.machine, numa.id));
      state.pool.cpus -= holding.cpus & state.machine->cpu.in_numa[position];
    }
    for (const MemoryBlock& block : holding.memory) TakeUntold(node, block, state);
  }
}

}  // namespace

int FindDevice(const NodeState& state, int resource, const std::string& id) {
  const std::vector<std::string>& ids = (*state.device_ids)[At(resource)];
  const auto found = std::ranges::find(ids, id);
  return found == ids.end() ? -1 : static_cast<int>(found - ids.begin());
}

NodeState EmptyState(const MachineWithIds& node) {
  const Machine& machine = *node.machine;
  NodeState state{.machine = node.machine, .device_ids = node.device_ids, .pool = {}, .pods = {}};
  state.pool.cpus = machine.cpu.all - machine.reserved_cpus;
  for (int numa = 0; numa < machine.numa_count(); ++numa) {
    Pool::NodeMemory memory{.assignments = 0, .group = Mask{1} << numa, .free = {}};
    for (const Machine::NodeMemory& table : machine.memory[At(numa)]) {
      memory.free.push_back(table.allocatable);
    }
    state.pool.memory.push_back(std::move(memory));
  }
  for (const DeviceResource& resource : machine.devices) {
    const int count = static_cast<int>(resource.devices.size());
    Bits healthy(count);
    for (int device = 0; device < count; ++device) healthy.Set(device);
    state.pool.devices.push_back({std::move(healthy), Bits(count)});
  }
  return state;
}

absl::StatusOr<NodeState> StateFrom(const NodePlacement& node, const DeviceOrder& order,
                                    Grade grade) {
  ASSIGN_OR_RETURN(const MachineWithIds built, BuildMachine(node, order, grade));
  NodeState state = EmptyState(built);
  if (state.machine->numa_ids.empty()) return state;
  RETURN_IF_ERROR(ReadPool(node, state));
  for (const PlacedPod& pod : node.pods) {
    std::vector<Holding>& holdings = state.pods[pod.uid];
    for (const PlacedContainer& container : pod.containers) {
      ASSIGN_OR_RETURN(Holding holding, ReadHolding(container, state));
      for (const auto& [resource, bits] : holding.devices) {
        state.pool.devices[At(resource)].allocated |= bits;
      }
      holdings.push_back(std::move(holding));
    }
  }
  for (const auto& [uid, holdings] : state.pods) TakeUntold(node, holdings, state);
  return state;
}

void WriteState(const NodeState& state, NodePlacement& node) {
  const Machine& machine = *state.machine;
  if (machine.numa_ids.empty()) return;
  for (NumaNodePlacement& numa : node.numa_nodes) {
    const std::size_t position = At(PositionOf(machine, numa.id));
    numa.free_cpus = ToCpuSet(state.pool.cpus & machine.cpu.in_numa[position]);
    const Pool::NodeMemory& memory = state.pool.memory[position];
    numa.memory_assignments = memory.assignments;
    numa.memory_group = machine.ToIds(memory.group);
    for (placement::NodeMemory& table : numa.memory) {
      table.free = memory.free[At(machine.MemoryType(table.type))];
    }
  }
  for (placement::PlacedDevice& device : node.devices) {
    const int resource = machine.FindResource(device.resource);
    device.healthy =
        state.pool.devices[At(resource)].healthy.Test(FindDevice(state, resource, device.id));
  }
  node.pods.clear();
  for (const auto& [uid, holdings] : state.pods) {
    PlacedPod pod;
    pod.uid = uid;
    pod.name = uid;
    for (const Holding& holding : holdings) AddNames(state, holding, pod.containers.emplace_back());
    node.pods.push_back(std::move(pod));
  }
}

void Started(NodeState& state, const kube::Pod& pod) {
  const auto found = state.pods.find(pod.uid);
  if (found == state.pods.end()) return;
  const auto finishes = [&](const std::string& container) {
    const auto init = std::ranges::find(pod.init_containers, container, &kube::Container::name);
    return init != pod.init_containers.end() && !init->sidecar;
  };
  if (PodsOwn(found->second) != nullptr) return;  // its memory is the pod's
  for (Holding& holding : found->second) {
    if (!finishes(holding.container)) continue;
    for (const MemoryBlock& block : holding.memory)
      ReleaseMemory(*state.machine, block, state.pool);
    holding.memory.clear();
  }
}

void Release(const Machine& machine, const Holding& holding, Pool& pool) {
  // On an uneven machine a container may hold a reserved CPU; that one stays reserved.
  pool.cpus |= holding.cpus - machine.reserved_cpus;
  for (const MemoryBlock& block : holding.memory) ReleaseMemory(machine, block, pool);
  for (const auto& [resource, bits] : holding.devices) pool.devices[At(resource)].allocated -= bits;
}

void Remove(NodeState& state, const std::string& uid) {
  const auto pod = state.pods.find(uid);
  if (pod == state.pods.end()) return;
  ReleaseAll(*state.machine, pod->second, state.pool);
  state.pods.erase(pod);
}

void SetDevices(NodeState& state, const std::string& resource,
                const std::vector<std::string>& unhealthy) {
  const int position = state.machine->FindResource(resource);
  if (position < 0) return;
  const std::size_t count = state.machine->devices[At(position)].devices.size();
  Bits& healthy = state.pool.devices[At(position)].healthy;
  for (std::size_t device = 0; device < count; ++device) healthy.Set(static_cast<int>(device));
  for (const std::string& id : unhealthy) {
    const int device = FindDevice(state, position, id);
    if (device >= 0) healthy.Clear(device);
  }
}

}  // namespace scheduler::admission
