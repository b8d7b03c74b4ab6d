#include "scheduler/admission/memory_manager.h"

#include <algorithm>
#include <bit>

#include "scheduler/admission/mask_search.h"

namespace scheduler::admission {
namespace {

std::int64_t Free(const Pool& pool, Mask mask, int type) {
  std::int64_t free = 0;
  for (Mask rest = mask; rest != 0; rest &= rest - 1) {
    free += pool.memory[At(std::countr_zero(rest))].free[At(type)];
  }
  return free;
}

// isAffinityViolatingNUMAAllocations: checked for masks of several nodes only, so a merged mask of
// one node may take a node out of its group.
bool ViolatesGroups(const Pool& pool, Mask mask) {
  if (std::popcount(mask) == 1) return false;
  for (Mask rest = mask; rest != 0; rest &= rest - 1) {
    const Pool::NodeMemory& node = pool.memory[At(std::countr_zero(rest))];
    if (node.assignments > 0 && node.group != mask) return true;
  }
  return false;
}

// updateMachineState: ascending nodes, as much as each has free.
void Charge(Mask nodes, int type, std::int64_t bytes, Pool& pool) {
  for (Mask rest = nodes; rest != 0; rest &= rest - 1) {
    Pool::NodeMemory& node = pool.memory[At(std::countr_zero(rest))];
    ++node.assignments;
    node.group = nodes;
    std::int64_t& free = node.free[At(type)];
    const std::int64_t taken = std::clamp<std::int64_t>(free, 0, bytes);
    free -= taken;
    bytes -= taken;
  }
}

}  // namespace

std::int64_t ReusableMemory::Of(Mask nodes, int type) const {
  for (const Entry& entry : entries_) {
    if (entry.nodes == nodes && entry.type == type) return entry.bytes;
  }
  return 0;
}

void ReusableMemory::Offer(Mask nodes, int type, std::int64_t bytes) {
  for (Entry& entry : entries_) {
    if (entry.nodes != nodes || entry.type != type) continue;
    entry.bytes = std::max(entry.bytes, bytes);
    return;
  }
  entries_.push_back({nodes, type, bytes});
}

void ReusableMemory::TakeOver(Mask nodes, int type, std::int64_t bytes) {
  for (Entry& entry : entries_) {
    if (entry.nodes == nodes && entry.type == type) {
      entry.bytes = std::max<std::int64_t>(entry.bytes - bytes, 0);
    }
  }
}

MemoryHints::MemoryHints(const Machine& machine, const Pool& pool, const MemoryDemand& demand,
                         const ReusableMemory& reusable)
    : machine_(machine), pool_(pool), demand_(demand), reusable_(reusable), width_(FindWidth()) {}

int MemoryHints::FindWidth() const {
  int least = 1;
  for (const auto& want : demand_) {
    least = std::max(
        least, machine_.memory_reach[At(want.first)].Width(want.second, machine_.numa_count()));
  }
  if (demand_.size() == 1) return least;
  for (int size = least; size < machine_.numa_count(); ++size) {
    const auto accept = [this](Mask mask) { return Allocatable(mask); };
    if (LowestMask(machine_.all_nodes, 0, size, {}, accept) != 0) return size;
  }
  return machine_.numa_count();
}

bool MemoryHints::Allocatable(Mask mask) const {
  for (const auto& want : demand_) {
    std::int64_t sum = 0;
    for (Mask rest = mask; rest != 0; rest &= rest - 1) {
      sum += machine_.memory[At(std::countr_zero(rest))][At(want.first)].allocatable;
    }
    if (sum < want.second) return false;
  }
  return true;
}

bool MemoryHints::AllowedByGroups(Mask mask) const {
  if (std::popcount(mask) == 1) {
    return std::popcount(pool_.memory[At(std::countr_zero(mask))].group) <= 1;
  }
  return !ViolatesGroups(pool_, mask);
}

bool MemoryHints::Feasible(Mask mask) const {
  for (const auto& want : demand_) {
    if (Free(pool_, mask, want.first) + reusable_.Of(mask, want.first) < want.second) return false;
  }
  return AllowedByGroups(mask) && Allocatable(mask);
}

std::int64_t MemoryHints::Supply(int node) const {
  return pool_.memory[At(node)].free[At(demand_.front().first)];
}

bool MemoryHints::Any() const {
  Mask unassigned = 0;
  for (int node = 0; node < machine_.numa_count(); ++node) {
    const Pool::NodeMemory& memory = pool_.memory[At(node)];
    if (Feasible(Mask{1} << node)) return true;
    if (std::popcount(memory.group) > 1 && Feasible(memory.group)) return true;
    if (memory.assignments == 0) unassigned |= Mask{1} << node;
  }
  // Of the nodes without blocks every set may be taken, so the whole of them has the most to give.
  if (std::popcount(unassigned) > 1 && Feasible(unassigned)) return true;
  // What an init container left is taken over by the very same set of nodes only.
  return !reusable_.empty() && Best(0) != 0;
}

Mask MemoryHints::Best(Mask within) const {
  const auto accept = [this](Mask mask) { return Feasible(mask); };
  const int least = std::max({1, std::popcount(within), width_});
  for (int size = least; size <= machine_.numa_count(); ++size) {
    const Mask found = LowestMask(machine_.all_nodes, within, size, {this}, accept);
    if (found != 0) return found;
  }
  return 0;
}

bool Satisfies(const Pool& pool, Mask mask, const MemoryDemand& demand) {
  return std::all_of(demand.begin(), demand.end(),
                     [&](const auto& want) { return Free(pool, mask, want.first) >= want.second; });
}

Mask ChooseMemoryNodes(const Machine& machine, const MemoryDemand& demand, Mask affinity,
                       bool preferred, const ReusableMemory& reusable, const Pool& pool) {
  Mask nodes = affinity;
  if (nodes == 0 || !Satisfies(pool, nodes, demand)) {
    const MemoryHints hints(machine, pool, demand, reusable);
    bool good = preferred;
    if (nodes == 0) {
      nodes = hints.Best(0);
      if (nodes == 0 || (!hints.Preferred(nodes) && good)) return 0;
      good = hints.Preferred(nodes);
    }
    if (!Satisfies(pool, nodes, demand)) {
      nodes = hints.Best(nodes);
      if (nodes == 0 || (!hints.Preferred(nodes) && good)) return 0;
    }
  }
  return ViolatesGroups(pool, nodes) ? 0 : nodes;
}

MemoryBlocks AllocateMemory(const Machine& machine, const MemoryDemand& demand, Mask affinity,
                            bool preferred, const ReusableMemory& reusable, Pool& pool) {
  MemoryBlocks blocks;
  const Mask nodes = ChooseMemoryNodes(machine, demand, affinity, preferred, reusable, pool);
  if (nodes == 0) return blocks;
  for (const auto& [type, bytes] : demand) {
    blocks.push_back({type, nodes, bytes});
    Charge(nodes, type, std::max<std::int64_t>(bytes - reusable.Of(nodes, type), 0), pool);
  }
  return blocks;
}

}  // namespace scheduler::admission
