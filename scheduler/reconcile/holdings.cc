#include "scheduler/reconcile/holdings.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "scheduler/admission/admit.h"
#include "scheduler/admission/wants.h"

namespace scheduler::reconcile {
namespace {

using admission::At;
using admission::Bits;
using admission::Holding;
using admission::Machine;
using admission::Mask;
using admission::MemoryBlock;
using admission::NodeState;
using admission::Pool;

// Takes memory off the block's nodes, ascending, as far as there is some; the block shrinks to
// that.
void TakeBlock(MemoryBlock& block, Pool& pool) {
  std::int64_t rest = block.bytes;
  for (Mask nodes = block.nodes; nodes != 0; nodes &= nodes - 1) {
    Pool::NodeMemory& memory = pool.memory[At(std::countr_zero(nodes))];
    std::int64_t& free = memory.free[At(block.type)];
    const std::int64_t taken = std::clamp<std::int64_t>(free, 0, rest);
    free -= taken;
    rest -= taken;
    memory.group = block.nodes;
    ++memory.assignments;
  }
  block.bytes -= rest;
}

void TakeHolding(Holding& holding, Pool& pool) {
  holding.cpus &= pool.cpus;
  pool.cpus -= holding.cpus;
  for (auto& [resource, bits] : holding.devices) {
    bits -= pool.devices[At(resource)].allocated;
    pool.devices[At(resource)].allocated |= bits;
  }
  for (MemoryBlock& block : holding.memory) TakeBlock(block, pool);
}

Bits Lowest(const Bits& from, std::int64_t count, int length) {
  Bits taken(length);
  from.ForEach([&](int position) {
    if (count-- > 0) taken.Set(position);
  });
  return taken;
}

// One block on each NUMA node that gives some.
void AddBlocks(int type, std::int64_t bytes, const Pool& pool, Holding& holding) {
  for (std::size_t numa = 0; numa < pool.memory.size() && bytes > 0; ++numa) {
    const std::int64_t taken = std::min(bytes, pool.memory[numa].free[At(type)]);
    if (taken <= 0) continue;
    holding.memory.push_back({type, Mask{1} << numa, taken});
    bytes -= taken;
  }
}

}  // namespace

Mask NodesOf(const Machine& machine, const std::vector<Holding>& holdings) {
  Mask nodes = 0;
  for (const Holding& holding : holdings) {
    holding.cpus.ForEach([&](int cpu) {
      if (machine.cpu.place[At(cpu)].numa >= 0) nodes |= Mask{1} << machine.cpu.place[At(cpu)].numa;
    });
    for (const MemoryBlock& block : holding.memory) {
      if (block.bytes > 0) nodes |= block.nodes;
    }
    for (const auto& held : holding.devices) {
      held.second.ForEach(
          [&](int device) { nodes |= machine.devices[At(held.first)].devices[At(device)].nodes; });
    }
  }
  return nodes;
}

void HoldAgain(const std::string& uid, std::vector<Holding> holdings, NodeState& state) {
  const auto own = std::ranges::find(holdings, "", &Holding::container);
  if (own != holdings.end()) {  // a pod with resources of its own: the others have parts of them
    std::iter_swap(holdings.begin(), own);
    holdings.erase(holdings.begin() + 1, holdings.end());
  }
  for (Holding& holding : holdings) TakeHolding(holding, state.pool);
  state.pods[uid] = std::move(holdings);
}

bool HoldAsPredicted(const std::string& uid, const ledger::Shape& shape, bool started,
                     NodeState& state) {
  admission::Verdict verdict = Admit(state, shape.request);
  if (!verdict.admitted()) return false;
  Commit(uid, std::move(verdict), state);
  if (started && !shape.pod.init_containers.empty()) {
    kube::Pod pod = shape.pod;
    pod.uid = uid;
    Started(state, pod);
  }
  return true;
}

void HoldAnywhere(const std::string& uid, const ledger::Shape& shape, NodeState& state) {
  const Machine& machine = *state.machine;
  const admission::Wants wants(machine, shape.request.pod,
                               admission::ManagesPod(machine.settings, shape.request));
  Holding holding;
  holding.container = shape.request.containers.empty() ? "" : shape.request.containers.back().name;
  holding.cpus = Lowest(state.pool.cpus, wants.cpus, machine.cpu.cpu_slots);
  for (const auto& [type, bytes] : wants.memory) AddBlocks(type, bytes, state.pool, holding);
  for (const auto& [resource, count] : wants.devices) {
    const Pool::Devices& devices = state.pool.devices[At(resource)];
    const int length = static_cast<int>(machine.devices[At(resource)].devices.size());
    holding.devices.push_back(
        {resource, Lowest(devices.healthy - devices.allocated, count, length)});
  }
  HoldAgain(uid, {std::move(holding)}, state);
}

std::vector<std::int64_t> Sums(const Pool& pool) {
  std::vector<std::int64_t> sums = {pool.cpus.Count()};
  for (const Pool::Devices& devices : pool.devices) {
    sums.push_back((devices.healthy - devices.allocated).Count());
  }
  const std::size_t types = pool.memory.empty() ? 0 : pool.memory.front().free.size();
  for (std::size_t type = 0; type < types; ++type) {
    std::int64_t free = 0;
    for (const Pool::NodeMemory& numa : pool.memory) free += numa.free[type];
    sums.push_back(free);
  }
  return sums;
}

}  // namespace scheduler::reconcile
