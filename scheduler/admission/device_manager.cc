#include "scheduler/admission/device_manager.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <utility>

#include "scheduler/admission/mask_search.h"
#include "scheduler/admission/release.h"

namespace scheduler::admission {
namespace {

// All ways to take `need` of these devices, those that name the same NUMA nodes being alike: for
// each number of each kind one set, of the first of them. The plugin's order comes first.
class Ways {
 public:
  Ways(const DeviceResource& resource, const Bits& from, std::int64_t need) {
    int length = static_cast<int>(resource.devices.size());
    Bits in_order(length);
    std::int64_t missing = need;
    from.ForEach([&](int device) {
      if (missing-- > 0) in_order.Set(device);
      const Mask nodes = resource.devices[At(device)].nodes;
      const bool placed = !resource.without_topology.Test(device);
      const auto alike = std::ranges::find_if(
          kinds_, [&](const Kind& kind) { return kind.nodes == nodes && kind.placed == placed; });
      if (alike != kinds_.end()) {
        alike->devices.push_back(device);
      } else {
        kinds_.push_back({nodes, placed, {device}});
      }
    });
    ways_.push_back(std::move(in_order));
    if (kinds_.size() > 1 && need < from.Count()) Add(0, need, Bits(length));
  }

  std::vector<Bits> Get() && { return std::move(ways_); }

 private:
  struct Kind {
    Mask nodes;
    bool placed;  // false: they name no NUMA node, not even one that the machine lacks
    std::vector<int> devices;
  };
  static constexpr std::size_t kMostWays = 1000;

  // Takes 0, 1, 2, … of this kind and goes on with the next.
  void Add(std::size_t kind, std::int64_t need, Bits taken) {
    if (ways_.size() >= kMostWays || need > LeftFrom(kind)) return;
    if (need == 0) {
      if (taken != ways_.front()) ways_.push_back(std::move(taken));
      return;
    }
    Add(kind + 1, need, taken);
    for (const int device : kinds_[kind].devices) {
      if (need-- == 0) return;
      taken.Set(device);
      Add(kind + 1, need, taken);
    }
  }
  std::int64_t LeftFrom(std::size_t kind) const {
    std::size_t left = 0;
    for (; kind < kinds_.size(); ++kind) left += kinds_[kind].devices.size();
    return static_cast<std::int64_t>(left);
  }

  std::vector<Kind> kinds_;
  std::vector<Bits> ways_;
};

// Takes devices until nothing is needed or none is left.
void Take(const DeviceResource& resource, const Bits& from, Choices* choices, std::int64_t& need,
          Bits& taken) {
  if (need <= 0) return;
  const Bits left = from - taken;
  if (choices != nullptr) {
    std::vector<Bits> ways = Ways(resource, left, need).Get();
    const Bits& way = ways[choices->Pick(ways.size())];
    need -= way.Count();
    taken |= way;
    return;
  }
  left.ForEach([&](int device) {
    if (need <= 0) return;
    taken.Set(device);
    --need;
  });
}

// The devices that name a node of the mask.
Bits OnNodes(const DeviceResource& resource, Mask mask) {
  Bits on(static_cast<int>(resource.devices.size()));
  for (Mask rest = mask; rest != 0; rest &= rest - 1) {
    on |= resource.on_node[At(std::countr_zero(rest))];
  }
  return on;
}

}  // namespace

DeviceHints::DeviceHints(const Machine& machine, const DeviceResource& resource,
                         const Bits& available, const Bits& reusable, std::int64_t need)
    : resource_(resource),
      nodes_(DeviceHintsUseOnlyHostNodes(machine.settings.minor_version) ? resource.nodes
                                                                         : machine.all_nodes),
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
    const auto accept = [this](Mask mask) { return OnNodes(resource_, mask).Count() >= need_; };
    if (LowestMask(nodes_, 0, size, {}, accept) != 0) return size;
  }
  return all;
}

bool DeviceHints::Feasible(Mask mask) const {
  if (!resource_.one_node_each) {
    const Bits on = OnNodes(resource_, mask);
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

std::size_t Choices::Pick(std::size_t ways) {
  if (at_ == made_.size()) made_.push_back({0, ways});
  return made_[at_++].way;
}

bool Choices::Next() {
  at_ = 0;
  while (!made_.empty()) {
    if (++made_.back().way < made_.back().ways) return true;
    made_.pop_back();
  }
  return false;
}

DeviceGrant AllocateDevices(const Machine& machine, int resource, std::int64_t need, Mask affinity,
                            const Bits& reusable, Pool& pool, Choices* choices) {
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
  Take(facts, reusable, choices, need, grant.devices);
  if (need > 0) {
    const Bits available = devices.healthy - devices.allocated;
    const Bits aligned = facts.aligned && affinity != 0
                             ? OnNodes(facts, affinity) & available
                             : Bits(static_cast<int>(facts.devices.size()));
    const bool enough_aligned = need < aligned.Count();
    Take(facts, aligned, choices, need, grant.devices);
    grant.ambiguous =
        grant.ambiguous || enough_aligned || (need > 0 && need < (available - aligned).Count());
    Take(facts, available, choices, need, grant.devices);
  }
  devices.allocated |= grant.devices;
  return grant;
}

}  // namespace scheduler::admission
