#include "scheduler/admission/pod_level.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "scheduler/admission/cpu_take.h"
#include "scheduler/admission/wants.h"

namespace scheduler::admission {
namespace {

MemoryBlocks NonEmpty(const MemoryBlocks& blocks) {
  MemoryBlocks kept;
  for (const MemoryBlock& block : blocks) {
    if (block.bytes > 0) kept.push_back(block);
  }
  return kept;
}

// Takes a container's part out of what is left, for good unless the container gives it back.
MemoryBlocks TakePart(const MemoryDemand& demand, bool for_good, MemoryBlocks& left) {
  MemoryBlocks part;
  for (const auto& [type, bytes] : demand) {
    if (bytes > 0) part.push_back({type, left.front().nodes, bytes});
    if (!for_good) continue;
    for (MemoryBlock& block : left) {
      if (block.type == type) block.bytes -= std::min(block.bytes, bytes);
    }
  }
  return part;
}

}  // namespace

std::optional<std::vector<Bits>> SplitCpus(const Machine& machine, const Request& request,
                                           const Bits& whole, int affinity_nodes) {
  std::vector<Bits> parts(request.containers.size(), Bits(machine.cpu.cpu_slots));
  if (whole.None()) return parts;
  Bits left = whole;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const ContainerDemand& container = request.containers[i];
    const std::int64_t need = container.demand.cpus;
    if (need == 0) {
      if (container.reuses()) parts[i] = left;
      continue;
    }
    if (need > left.Count()) return std::nullopt;
    TakenCpus taken = TakeCpus(machine, left, static_cast<int>(need), affinity_nodes);
    if (taken.outcome != TakenCpus::Outcome::kTaken) return std::nullopt;
    parts[i] = std::move(taken.cpus);
    if (!container.reuses()) left -= parts[i];
  }
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const ContainerDemand& container = request.containers[i];
    if (container.demand.cpus == 0 && !container.reuses()) parts[i] = left;
  }
  return parts;
}

std::vector<MemoryBlocks> SplitMemory(const Machine& machine, const Request& request,
                                      const MemoryBlocks& whole) {
  std::vector<MemoryBlocks> parts(request.containers.size());
  if (whole.empty()) return parts;
  MemoryBlocks left = whole;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const ContainerDemand& container = request.containers[i];
    if (!container.demand.memory.empty()) {
      const Wants wants(machine, container.demand, true);
      parts[i] = TakePart(wants.memory, !container.reuses(), left);
    } else if (container.reuses()) {
      parts[i] = NonEmpty(left);
    }
  }
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const ContainerDemand& container = request.containers[i];
    if (container.demand.memory.empty() && !container.reuses()) parts[i] = NonEmpty(left);
  }
  return parts;
}

}  // namespace scheduler::admission
