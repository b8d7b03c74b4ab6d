#include "podresources/settle.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>

namespace podresources {
namespace {

std::string NameOf(const Pod& pod) {
  return fmt::format("pod {}/{}", pod.namespace_name, pod.name);
}

// Sorted union of two sorted lists of which each has an element at most once.
template <class T>
void AddAll(std::vector<T>& to, const std::vector<T>& from) {
  std::vector<T> both;
  both.reserve(to.size() + from.size());
  std::ranges::set_union(to, from, std::back_inserter(both));
  to = std::move(both);
}

// By (resource, id); of one that both have, what each says of its locality.
void AddDevices(std::vector<Device>& to, const std::vector<Device>& from) {
  AddAll(to, from);
  std::size_t kept = 0;
  for (std::size_t i = 0; i < to.size(); ++i) {
    if (kept > 0 && to[kept - 1].resource == to[i].resource && to[kept - 1].id == to[i].id) {
      to[kept - 1].numa_nodes |= to[i].numa_nodes;
      to[kept - 1].unknown_node |= to[i].unknown_node;
    } else {
      if (kept != i) to[kept] = std::move(to[i]);
      ++kept;
    }
  }
  to.resize(kept);
}

void Add(Container& to, const Container& from) {
  to.cpus |= from.cpus;
  AddAll(to.memory, from.memory);
  AddDevices(to.devices, from.devices);
  AddAll(to.claims, from.claims);
}

auto Key(const Container& c) { return std::tie(c.name, c.cpus, c.memory, c.devices, c.claims); }

bool ContainerLess(const Container& a, const Container& b) { return Key(a) < Key(b); }

// A total order, so that pods of one name merge the same way whatever the kubelet's order.
bool PodLess(const Pod& a, const Pod& b) {
  const auto head = [](const Pod& p) {
    return std::tie(p.namespace_name, p.name, p.cpus, p.memory);
  };
  if (head(a) != head(b)) return head(a) < head(b);
  return std::ranges::lexicographical_compare(a.containers, b.containers, ContainerLess);
}

// Containers of the same name become one, at the place of the first. How many went.
std::size_t FoldContainers(std::vector<Container>& containers) {
  std::map<std::string, std::size_t> places;
  std::vector<Container> folded;
  for (Container& container : containers) {
    const auto [place, fresh] = places.try_emplace(container.name, folded.size());
    if (fresh) {
      folded.push_back(std::move(container));
    } else {
      Add(folded[place->second], container);
    }
  }
  const std::size_t gone = containers.size() - folded.size();
  containers = std::move(folded);
  return gone;
}

bool SamePod(const Pod& a, const Pod& b) {
  return a.namespace_name == b.namespace_name && a.name == b.name;
}

struct Listing {
  int containers = 0;
  std::set<std::size_t> pods;
};

std::map<base::CpuSet, Listing> ListingsOf(const std::vector<Pod>& pods) {
  std::map<base::CpuSet, Listing> listings;
  for (std::size_t i = 0; i < pods.size(); ++i) {
    for (const Container& container : pods[i].containers) {
      if (container.cpus.empty()) continue;
      Listing& listing = listings[container.cpus];
      ++listing.containers;
      listing.pods.insert(i);
    }
  }
  return listings;
}

bool IsSharedPool(const base::CpuSet& cpus, const Listing& listing,
                  const std::optional<Allocatable>& allocatable) {
  if (listing.pods.size() < 2) return false;
  if (allocatable) return !cpus.IsSubsetOf(allocatable->cpus);
  return listing.containers >= 3;
}

// What one pod shares with an earlier one.
struct Overlap {
  base::CpuSet cpus;
  std::vector<std::string> devices;
};

std::string Describe(const Overlap& overlap) {
  constexpr std::size_t kNamed = 3;
  std::vector<std::string> parts;
  if (!overlap.cpus.empty()) parts.push_back("CPUs " + overlap.cpus.ToString());
  for (std::size_t i = 0; i < overlap.devices.size() && i < kNamed; ++i) {
    parts.push_back(overlap.devices[i]);
  }
  if (overlap.devices.size() > kNamed) {
    parts.push_back(fmt::format("{} more devices", overlap.devices.size() - kNamed));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

// Who was first to list each CPU and device.
class Holders {
 public:
  // What `pod` shares with each earlier pod, by its index; then its own become held.
  std::map<std::size_t, Overlap> Take(const Pod& pod, std::size_t index) {
    std::map<std::size_t, Overlap> overlaps;
    base::CpuSet cpus = pod.cpus;
    for (const Container& container : pod.containers) cpus |= container.cpus;
    for (const int cpu : cpus) {
      const std::size_t holder = cpus_.try_emplace(cpu, index).first->second;
      if (holder != index) overlaps[holder].cpus.Insert(cpu);
    }
    for (const auto& [resource, id] : DevicesOf(pod)) {
      const std::size_t holder = devices_.try_emplace({resource, id}, index).first->second;
      if (holder != index) overlaps[holder].devices.push_back(fmt::format("{} {}", resource, id));
    }
    return overlaps;
  }

 private:
  using Name = std::pair<std::string, std::string>;
  static std::set<Name> DevicesOf(const Pod& pod) {
    std::set<Name> names;
    for (const Container& container : pod.containers) {
      for (const Device& device : container.devices) names.insert({device.resource, device.id});
    }
    return names;
  }

  std::map<int, std::size_t> cpus_;
  std::map<Name, std::size_t> devices_;
};

}  // namespace

void MergeContainers(Pod& pod, base::Diagnostics& diagnostics) {
  const std::size_t gone = FoldContainers(pod.containers);
  if (gone == 0) return;
  diagnostics.push_back({"ContainerListedTwice", NameOf(pod),
                         fmt::format("{} containers are listed again under a name that the pod has "
                                     "already; those of one name are taken as one",
                                     gone)});
}

void MergePods(std::vector<Pod>& pods, base::Diagnostics& diagnostics) {
  std::ranges::sort(pods, PodLess);
  std::vector<Pod> merged;
  for (auto first = pods.begin(); first != pods.end();) {
    const auto end =
        std::find_if(first, pods.end(), [&](const Pod& pod) { return !SamePod(pod, *first); });
    Pod whole = *first;
    for (auto other = first + 1; other != end; ++other) {
      whole.cpus |= other->cpus;
      AddAll(whole.memory, other->memory);
      whole.containers.insert(whole.containers.end(), other->containers.begin(),
                              other->containers.end());
    }
    if (end - first > 1) {
      FoldContainers(whole.containers);
      diagnostics.push_back(
          {"PodListedTwice", NameOf(whole),
           fmt::format("listed {} times; taken as one pod that holds all of it", end - first)});
    }
    merged.push_back(std::move(whole));
    first = end;
  }
  pods = std::move(merged);
}

void TakeOutSharedPool(Assignments& assignments) {
  std::map<base::CpuSet, Listing> listings = ListingsOf(assignments.pods);
  std::erase_if(listings, [&](const auto& entry) {
    return !IsSharedPool(entry.first, entry.second, assignments.allocatable);
  });
  if (listings.empty()) return;
  for (Pod& pod : assignments.pods) {
    for (Container& container : pod.containers) {
      if (listings.contains(container.cpus)) container.cpus = {};
    }
  }
  for (const auto& [cpus, listing] : listings) {
    assignments.diagnostics.push_back(
        {"SharedPoolListed", "",
         fmt::format(
             "CPUs {} are listed for {} containers in {} pods: the shared pool, as kubelets "
             "up to 1.20 list it; not taken as exclusive",
             cpus.ToString(), listing.containers, listing.pods.size())});
  }
}

void FindHeldTwice(Assignments& assignments) {
  Holders holders;
  for (std::size_t i = 0; i < assignments.pods.size(); ++i) {
    const Pod& pod = assignments.pods[i];
    for (const auto& [earlier, overlap] : holders.Take(pod, i)) {
      assignments.diagnostics.push_back(
          {"HeldTwice", NameOf(pod),
           fmt::format("{} are listed for {} as well; kubelets before 1.34 go on listing pods that "
                       "have ended; both are kept",
                       Describe(overlap), NameOf(assignments.pods[earlier]))});
    }
  }
}

}  // namespace podresources
