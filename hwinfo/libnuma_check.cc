#include "hwinfo/libnuma_check.h"

#include <fmt/format.h>
#include <numa.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <utility>

namespace hwinfo {
namespace {

void Differ(const std::string& subject, std::string message, Topology& topology) {
  topology.diagnostics.push_back({"LibnumaDiffers", subject, std::move(message)});
}

// libnuma up to 2.0.18 takes a get_mempolicy that is not permitted for a working one.
bool IsUsable() {
  return syscall(SYS_get_mempolicy, nullptr, nullptr, 0, nullptr, 0) == 0 && numa_available() >= 0;
}

base::CpuSet CpusOf(int node) {
  const std::unique_ptr<bitmask, void (*)(bitmask*)> mask(numa_allocate_cpumask(),
                                                          numa_free_cpumask);
  base::CpuSet cpus;
  if (mask == nullptr || numa_node_to_cpus(node, mask.get()) != 0) return cpus;
  for (unsigned cpu = 0; cpu < mask->size; ++cpu) {
    if (numa_bitmask_isbitset(mask.get(), cpu) != 0) cpus.Insert(cpu);
  }
  return cpus;
}

void CheckNode(const NumaNode& node, const base::CpuSet& online, Topology& topology) {
  const std::string subject = fmt::format("node {}", node.id);
  const base::CpuSet cpus = CpusOf(node.id) & online;
  if (cpus != node.cpus) {
    Differ(subject,
           fmt::format("libnuma gives the node the CPUs {}, sysfs {}", cpus.ToString(),
                       node.cpus.ToString()),
           topology);
  }
  const long long bytes = numa_node_size64(node.id, nullptr);
  if (node.memory_bytes && bytes >= 0 && bytes != *node.memory_bytes) {
    Differ(subject,
           fmt::format("libnuma gives the node {} bytes of memory, sysfs {}", bytes,
                       *node.memory_bytes),
           topology);
  }
  for (const auto& [other, distance] : node.distances) {
    const int seen = numa_distance(node.id, other);
    if (seen == distance || seen == 0) continue;  // 0: libnuma does not know one of the nodes
    Differ(subject,
           fmt::format("libnuma gives the distance {} to node {}, sysfs {}", seen, other, distance),
           topology);
  }
}

}  // namespace

void CheckAgainstLibnuma(Topology& topology) {
  if (!topology.numa_visible || !IsUsable()) return;
  const int highest = topology.numa_nodes.back().id;
  if (numa_max_node() != highest) {
    Differ("",
           fmt::format("libnuma's highest NUMA node is {}, that of sysfs {}", numa_max_node(),
                       highest),
           topology);
    return;
  }
  const base::CpuSet online = topology.OnlineCpus();
  for (std::size_t i = 0; i < topology.numa_nodes.size(); ++i) {
    CheckNode(topology.numa_nodes[i], online, topology);
  }
}

}  // namespace hwinfo
