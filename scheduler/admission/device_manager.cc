#include "scheduler/admission/device_manager.h"

#include <algorithm>
#include <bit>
#include <functional>

#include "scheduler/admission/mask_search.h"

namespace scheduler::admission {
namespace {

// Moves devices, in the plugin's order, until nothing is needed.
void TakeInOrder(const Bits& from, std::int64_t& need, Bits& taken) {
  from.ForEach([&](int device) {
    if (need <= 0 || taken.Test(device)) return;
    taken.Set(device);
    --need;
  });
}

Bits OnNodes(const DeviceResource& resource, const Bits& devices, Mask mask) {
  Bits on(static_cast<int>(resource.devices.size()));
  devices.ForEach([&](int device) {
    if ((resource.devices[At(device)].nodes & mask) != 0) on.Set(device);
  });
  return on;
}

}  // namespace

DeviceHints::DeviceHints(const Machine& machine, const DeviceResource& resource,
                         const Bits& available, const Bits& reusable, std::int64_t need)
    : resource_(resource),
      nodes_(machine.settings.minor_version >= 36 ? resource.nodes : machine.all_nodes),
      available_(available),
      reusable_(reusable - resource.without_topology),
      all_(static_cast<int>(resource.devices.size())),
      supply_(At(machine.numa_count()), 0),
      capacity_(At(machine.numa_count()), 0),
      need_(need) {
  for (std::size_t device = 0; device < resource.devices.size(); ++device) {
    const int at = static_cast<int>(device);
    const Mask nodes = resource.devices[device].nodes;
    all_.Set(at);
    on_one_node_ = on_one_node_ && std::popcount(nodes) <= 1;
    // A reusable device counts as such and, as it is allocated, never as available too.
    const int free = (available_.Test(at) ? 1 : 0) + (reusable_.Test(at) ? 1 : 0);
    for (Mask rest = nodes; rest != 0; rest &= rest - 1) {
      supply_[At(std::countr_zero(rest))] += free;
      ++capacity_[At(std::countr_zero(rest))];
    }
  }
  width_ = FindWidth();
}

std::int64_t DeviceHints::Count(const Bits& devices, Mask mask) const {
  std::int64_t count = 0;
  devices.ForEach(
      [&](int device) { count += (resource_.devices[At(device)].nodes & mask) != 0 ? 1 : 0; });
  return count;
}

int DeviceHints::FindWidth() const {
  const int least = NarrowestWidth(nodes_, need_, [&](int node) { return capacity_[At(node)]; });
  if (on_one_node_) return least;
  const int all = std::popcount(nodes_);
  for (int size = least; size < all; ++size) {
    const auto accept = [this](Mask mask) { return Count(all_, mask) >= need_; };
    if (LowestMask(nodes_, 0, size, {}, accept) != 0) return size;
  }
  return all;
}

bool DeviceHints::Feasible(Mask mask) const {
  bool holds_reusable = true;
  reusable_.ForEach([&](int device) {
    holds_reusable = holds_reusable && (resource_.devices[At(device)].nodes & mask) != 0;
  });
  if (!holds_reusable) return false;
  if (on_one_node_) {
    std::int64_t supply = 0;
    for (Mask rest = mask; rest != 0; rest &= rest - 1)
      supply += supply_[At(std::countr_zero(rest))];
    return supply >= need_;
  }
  return Count(available_, mask) + Count(reusable_, mask) >= need_;
}

DeviceGrant AllocateDevices(const Machine& machine, int resource, std::int64_t need, Mask affinity,
                            const Bits& reusable, Pool& pool) {
  const DeviceResource& facts = machine.devices[At(resource)];
  Pool::Devices& devices = pool.devices[At(resource)];
  DeviceGrant grant{.admitted = false,
                    .ambiguous = false,
                    .devices = Bits(static_cast<int>(facts.devices.size()))};
  if (devices.healthy.None()) return grant;  // said even to a request of 0
  grant.admitted = true;
  if (need <= 0) return grant;
  const int reused = reusable.Count();
  grant.ambiguous = reused > need;
  TakeInOrder(reusable, need, grant.devices);
  if (need > 0) {
    const Bits available = devices.healthy - devices.allocated;
    if (available.Count() < need) return {};
    const Bits aligned = facts.aligned && affinity != 0
                             ? OnNodes(facts, available, affinity)
                             : Bits(static_cast<int>(facts.devices.size()));
    const bool enough_aligned = need < aligned.Count();
    TakeInOrder(aligned, need, grant.devices);
    grant.ambiguous =
        grant.ambiguous || enough_aligned || (need > 0 && need < (available - aligned).Count());
    TakeInOrder(available, need, grant.devices);
  }
  devices.allocated |= grant.devices;
  return grant;
}

}  // namespace scheduler::admission
