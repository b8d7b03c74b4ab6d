#include "placement/kernel.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

namespace placement {
namespace {

using hwinfo::ContainerCgroup;
using Cgroups = std::vector<const ContainerCgroup*>;

// A pause process has well below 1 MiB resident; its cgroup may hold some page cache.
constexpr std::int64_t kMoreThanASandbox = std::int64_t{8} << 20;

std::int64_t Resident(const ContainerCgroup& cgroup) {
  std::int64_t bytes = 0;
  for (const auto& [node, here] : cgroup.resident_bytes) bytes += std::min(here, INT64_MAX - bytes);
  return bytes;
}

base::NumaMask BlockNodes(const PlacedContainer& container) {
  base::NumaMask nodes;
  for (const PlacedMemory& memory : container.memory) nodes |= memory.numa_nodes;
  return nodes;
}

void Take(Cgroups& free, Cgroups::iterator cgroup, PlacedContainer& container) {
  container.kernel = KernelFacts{.cpus = (*cgroup)->cpus,
                                 .memory_nodes = (*cgroup)->memory_nodes,
                                 .resident_bytes = (*cgroup)->resident_bytes};
  free.erase(cgroup);
}

// True if a cgroup has exactly the container's CPUs; of several, the one with its memory nodes.
bool TakeByCpus(Cgroups& free, PlacedContainer& container) {
  auto best = free.end();
  for (auto cgroup = free.begin(); cgroup != free.end(); ++cgroup) {
    if ((*cgroup)->cpus != container.cpus) continue;
    if (best == free.end() || (*cgroup)->memory_nodes == BlockNodes(container)) best = cgroup;
  }
  if (best == free.end()) return false;
  Take(free, best, container);
  return true;
}

void TakeByMemory(Cgroups& free, PlacedContainer& container) {
  const base::NumaMask nodes = BlockNodes(container);
  const auto looks_like = [&](const ContainerCgroup* cgroup) {
    return cgroup->memory_nodes == nodes;
  };
  if (nodes.empty() || std::ranges::count_if(free, looks_like) != 1) return;
  Take(free, std::ranges::find_if(free, looks_like), container);
}

// The cgroups that may be a container which runs on other CPUs than it should, likeliest first.
Cgroups Suspects(const Cgroups& free, bool all_run) {
  Cgroups suspects;
  for (const ContainerCgroup* cgroup : free) {
    const bool more_than_sandbox = cgroup->resident_known && Resident(*cgroup) >= kMoreThanASandbox;
    if (cgroup->cpus && (all_run || more_than_sandbox)) suspects.push_back(cgroup);
  }
  std::ranges::sort(suspects, [](const ContainerCgroup* a, const ContainerCgroup* b) {
    return std::tuple(-Resident(*a), a->container_id) < std::tuple(-Resident(*b), b->container_id);
  });
  return suspects;
}

}  // namespace

CgroupsByUid GroupByUid(const hwinfo::Enforced& enforced) {
  CgroupsByUid by_uid;
  for (const ContainerCgroup& cgroup : enforced.containers) {
    by_uid[cgroup.pod_uid].push_back(&cgroup);
  }
  return by_uid;
}

void AttachKernelFacts(const Cgroups& cgroups, PlacedPod& pod, base::Diagnostics& diagnostics) {
  Cgroups free = cgroups;
  std::ranges::sort(free, {}, [](const ContainerCgroup* cgroup) {
    return std::tie(cgroup->container_id, cgroup->path);
  });
  std::vector<PlacedContainer*> missing;
  for (PlacedContainer& container : pod.containers) {
    if (!container.cpus.empty() && !TakeByCpus(free, container)) missing.push_back(&container);
  }
  for (PlacedContainer& container : pod.containers) {
    if (container.cpus.empty()) TakeByMemory(free, container);
  }
  if (missing.empty()) return;
  const Cgroups suspects = Suspects(free, cgroups.size() > pod.containers.size());
  const bool alike = std::ranges::all_of(suspects, [&](const ContainerCgroup* cgroup) {
    return cgroup->cpus == suspects.front()->cpus &&
           cgroup->memory_nodes == suspects.front()->memory_nodes;
  });
  if (suspects.size() >= missing.size() && (missing.size() == 1 || alike)) {
    for (std::size_t i = 0; i < missing.size(); ++i) {
      Take(free, std::ranges::find(free, suspects[i]), *missing[i]);
    }
    return;
  }
  for (const PlacedContainer* container : missing) {
    diagnostics.push_back(
        {.code = "KernelFactsMissing",
         .subject = fmt::format("pod {}/{}", pod.namespace_name, pod.name),
         .message = fmt::format("No cgroup of the pod has the CPUs {} of container {}: it may not "
                                "be running.",
                                container->cpus.ToString(), container->name)});
  }
}

}  // namespace placement
