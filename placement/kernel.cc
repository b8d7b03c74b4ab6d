#include "placement/kernel.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

namespace placement {
namespace {

using hwinfo::ContainerCgroup;
using Cgroups = std::vector<const ContainerCgroup*>;

base::NumaMask BlockNodes(const PlacedContainer& container) {
  base::NumaMask nodes;
  for (const PlacedMemory& memory : container.memory) nodes |= memory.numa_nodes;
  return nodes;
}

void Take(Cgroups& from, Cgroups::iterator cgroup, PlacedContainer& container) {
  container.kernel = KernelFacts{.cpus = (*cgroup)->cpus,
                                 .memory_nodes = (*cgroup)->memory_nodes,
                                 .resident_bytes = (*cgroup)->resident_bytes};
  from.erase(cgroup);
}

// Of several cgroups with exactly the container's CPUs, the one that has its memory nodes, too.
void TakeByCpus(Cgroups& unnamed, PlacedContainer& container) {
  auto best = unnamed.end();
  for (auto cgroup = unnamed.begin(); cgroup != unnamed.end(); ++cgroup) {
    if ((*cgroup)->cpus != container.cpus) continue;
    if (best == unnamed.end() || (*cgroup)->memory_nodes == BlockNodes(container)) best = cgroup;
  }
  if (best != unnamed.end()) Take(unnamed, best, container);
}

void TakeByMemory(Cgroups& unnamed, PlacedContainer& container) {
  const base::NumaMask nodes = BlockNodes(container);
  const auto looks_like = [&](const ContainerCgroup* cgroup) {
    return cgroup->memory_nodes == nodes;
  };
  if (nodes.empty() || std::ranges::count_if(unnamed, looks_like) != 1) return;
  Take(unnamed, std::ranges::find_if(unnamed, looks_like), container);
}

}  // namespace

CgroupsByUid GroupByUid(const hwinfo::Enforced& enforced) {
  CgroupsByUid by_uid;
  for (const ContainerCgroup& cgroup : enforced.containers) {
    by_uid[cgroup.pod_uid].push_back(&cgroup);
  }
  return by_uid;
}

void AttachKernelFacts(const Cgroups& cgroups, const std::map<std::string, std::string>& names,
                       PlacedPod& pod, base::Diagnostics& diagnostics) {
  std::map<std::string, Cgroups> named;
  Cgroups unnamed;
  for (const ContainerCgroup* cgroup : cgroups) {
    const auto name = names.find(cgroup->container_id);
    (name == names.end() ? unnamed : named[name->second]).push_back(cgroup);
  }
  std::ranges::sort(unnamed, {}, [](const ContainerCgroup* cgroup) {
    return std::tie(cgroup->container_id, cgroup->path);
  });
  for (PlacedContainer& container : pod.containers) {
    Cgroups& of_it = named[container.name];
    if (of_it.size() == 1) {
      Take(of_it, of_it.begin(), container);
    } else if (!container.cpus.empty()) {
      TakeByCpus(of_it.empty() ? unnamed : of_it, container);  // two: one is about to be replaced
    }
  }
  for (PlacedContainer& container : pod.containers) {
    if (container.cpus.empty() && !container.kernel) TakeByMemory(unnamed, container);
    if (container.cpus.empty() || container.kernel) continue;
    diagnostics.push_back(
        {.code = "KernelFactsMissing",
         .subject = fmt::format("pod {}/{}", pod.namespace_name, pod.name),
         .message = fmt::format("No cgroup of the pod is known to be container {}: it may not be "
                                "running.",
                                container.name)});
  }
}

}  // namespace placement
