#include "hwinfo/derived.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace hwinfo {
namespace {

using base::CpuSet;

// The kubelet's Topology Manager refuses to start with more, unless max-allowable-numa-nodes
// (Kubernetes 1.31) says otherwise.
constexpr std::size_t kKubeletMaxNumaNodes = 8;

void Note(std::string code, std::string message, Topology& topology) {
  topology.diagnostics.push_back({std::move(code), "", std::move(message)});
}

// A CPU that several nodes claim keeps the node it has, if it has one, else the lowest.
void AssignNodesToCpus(Topology& topology) {
  std::map<int, Cpu*> by_id;
  for (Cpu& cpu : topology.cpus) by_id[cpu.id] = &cpu;
  CpuSet seen;
  CpuSet twice;
  for (const NumaNode& node : topology.numa_nodes) {
    twice |= node.cpus & seen;
    seen |= node.cpus;
    for (const int id : node.cpus) {
      const auto cpu = by_id.find(id);
      if (cpu != by_id.end() && cpu->second->numa_node < 0) cpu->second->numa_node = node.id;
    }
  }
  if (!twice.empty()) {
    Note("NumaCpusOverlap", fmt::format("several NUMA nodes claim the CPUs {}", twice.ToString()),
         topology);
  }
  const CpuSet nowhere = topology.OnlineCpus() - seen;
  if (!nowhere.empty()) {
    Note("CpusOnNoNumaNode", fmt::format("no NUMA node claims the CPUs {}", nowhere.ToString()),
         topology);
  }
}

void DeriveSockets(Topology& topology) {
  std::map<int, Socket> sockets;
  for (const Cpu& cpu : topology.cpus) {
    if (cpu.socket >= 0) sockets[cpu.socket].cpus.Insert(cpu.id);
  }
  topology.sockets.clear();
  for (auto& [id, socket] : sockets) {
    socket.id = id;
    socket.numa_nodes = topology.NumaNodesOf(socket.cpus);
    topology.sockets.push_back(std::move(socket));
  }
}

NumaNodeKind KindOf(const NumaNode& node) {
  const bool has_memory = !node.memory_bytes || *node.memory_bytes > 0;
  if (!node.cpus.empty()) return has_memory ? NumaNodeKind::kDram : NumaNodeKind::kCpuOnly;
  if (!has_memory) return NumaNodeKind::kEmpty;
  if (node.gpu || node.memory_type == "GPUMemory") return NumaNodeKind::kGpuMemory;
  return NumaNodeKind::kMemoryOnly;
}

int SocketOf(const CpuSet& cpus, const std::vector<Socket>& sockets) {
  for (const Socket& socket : sockets) {
    if (!cpus.empty() && cpus.IsSubsetOf(socket.cpus)) return socket.id;
  }
  return -1;
}

}  // namespace

void Derive(Topology& topology) {
  AssignNodesToCpus(topology);
  DeriveSockets(topology);
  for (NumaNode& node : topology.numa_nodes) {
    if (!node.cpus.empty()) node.nearest_cpus = node.cpus;
    node.socket = SocketOf(node.nearest_cpus, topology.sockets);
    node.kind = KindOf(node);
  }
  if (topology.numa_nodes.size() > kKubeletMaxNumaNodes) {
    Note("ManyNumaNodes",
         fmt::format("with {} NUMA nodes the kubelet's Topology Manager starts only if its option "
                     "max-allowable-numa-nodes allows as many",
                     topology.numa_nodes.size()),
         topology);
  }
}

}  // namespace hwinfo
