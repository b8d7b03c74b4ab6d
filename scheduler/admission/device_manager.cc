#include "scheduler/admission/device_manager.h"

#include <bit>
#include <limits>
#include <utility>

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
  for (Mask rest = mask; rest != 0; rest &= rest - 1) {
    on |= resource.on_node[At(std::countr_zero(rest))];
  }
  return on & devices;
}

}  // namespace

DeviceHints::DeviceHints(const Machine& machine, const DeviceResource& resource,
                         const Bits& available, const Bits& reusable, std::int64_t need)
    : resource_(resource),
      nodes_(machine.settings.minor_version >= 36 ? resource.nodes : machine.all_nodes),
      available_(available),
      reusable_(reusable - resource.without_topology),
      supply_(At(machine.numa_count()), 0),
      need_(need) {
  int placed = 0;
  for (Mask rest = nodes_; rest != 0; rest &= rest - 1) {
    const std::size_t node = At(std::countr_zero(rest));
    const Bits& own = resource.on_node[node];
    // A reusable device counts as such and, as it is allocated, never as available too.
    supply_[node] = own.CountCommon(available_);
    const int reused = own.CountCommon(reusable_);
    supply_[node] += reused;
    if (reused > 0 && resource.one_node_each) required_ |= Mask{1} << node;
    placed += reused;
  }
  width_ = FindWidth();
  // A reusable device on a node that the machine lacks is in no mask.
  if (placed < reusable_.Count()) need_ = std::numeric_limits<std::int64_t>::max();
}

int DeviceHints::FindWidth() const {
  const int all = std::popcount(nodes_);
  // With devices that name several nodes this is a lower bound: each is counted on every one.
  const int least = resource_.reach.Width(need_, all);
  if (resource_.one_node_each) return least;
  for (int size = least; size < all; ++size) {
    const auto accept = [this](Mask mask) { return On(mask).Count() >= need_; };
    if (LowestMask(nodes_, 0, size, {}, accept) != 0) return size;
  }
  return all;
}

// The devices that name a node of the mask.
Bits DeviceHints::On(Mask mask) const {
  Bits on(static_cast<int>(resource_.devices.size()));
  for (Mask rest = mask; rest != 0; rest &= rest - 1) {
    on |= resource_.on_node[At(std::countr_zero(rest))];
  }
  return on;
}

bool DeviceHints::Feasible(Mask mask) const {
  if (!resource_.one_node_each) {
    const Bits on = On(mask);
    const int reused = on.CountCommon(reusable_);
    return reused == reusable_.Count() && on.CountCommon(available_) + reused >= need_;
  }
  if ((required_ & ~mask) != 0) return false;
  std::int64_t supply = 0;
  for (Mask rest = mask; rest != 0; rest &= rest - 1) supply += supply_[At(std::countr_zero(rest))];
  return supply >= need_;
}

bool CanAllocateDevices(std::int64_t need, const Bits& reusable, const Pool::Devices& devices) {
  if (devices.healthy.None()) return false;  // said even to a request of 0
  const std::int64_t missing = need - reusable.Count();
  return missing <= 0 || (devices.healthy - devices.allocated).Count() >= missing;
}

DeviceGrant AllocateDevices(const Machine& machine, int resource, std::int64_t need, Mask affinity,
                            const Bits& reusable, Pool& pool) {
  const DeviceResource& facts = machine.devices[At(resource)];
  Pool::Devices& devices = pool.devices[At(resource)];
  DeviceGrant grant{.admitted = false,
                    .ambiguous = false,
                    .devices = Bits(static_cast<int>(facts.devices.size()))};
  if (!CanAllocateDevices(need, reusable, devices)) return grant;
  grant.admitted = true;
  if (need <= 0) return grant;
  const int reused = reusable.Count();
  grant.ambiguous = reused > need;
  TakeInOrder(reusable, need, grant.devices);
  if (need > 0) {
    const Bits available = devices.healthy - devices.allocated;
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
