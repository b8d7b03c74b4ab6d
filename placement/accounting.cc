#include "placement/accounting.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/quantity.h"
#include "placement/amounts.h"
#include "placement/kubelet_facts.h"

namespace placement {
namespace {

using podresources::MemoryBlock;
using podresources::MemoryManagerState;

std::optional<base::CpuSet> AllocatableCpus(const Facts& facts, const KubeletFacts& kubelet,
                                            bool& estimated, base::Diagnostics& diagnostics) {
  if (facts.assignments->allocatable) return facts.assignments->allocatable->cpus;
  estimated = true;
  std::optional<base::CpuSet> reserved = kubelet.reserved_cpus;
  if (!reserved && facts.config.reserved_cpu_milli.value) {
    reserved = EstimateReservedCpus(facts.topology, *facts.config.reserved_cpu_milli.value);
  }
  if (!reserved) {
    diagnostics.push_back({.code = "AllocatableCpusUnknown",
                           .subject = "",
                           .message = "The kubelet does not say which CPUs it can hand out, and "
                                      "how many it reserves is not known either."});
    return std::nullopt;
  }
  return facts.topology.OnlineCpus() - *reserved;
}

base::CpuSet ListedCpus(const podresources::Assignments& assignments) {
  base::CpuSet listed;
  for (const podresources::Pod& pod : assignments.pods) {
    listed |= pod.cpus;
    for (const podresources::Container& container : pod.containers) listed |= container.cpus;
  }
  return listed;
}

// The CPUs that a cpu_manager_state shows, by what becomes of them.
struct StateCpus {
  base::CpuSet held;  // by active pods
  base::CpuSet pool;  // the shared pool, and what is left over from dead pods
};

StateCpus SplitState(const podresources::CpuManagerState& state,
                     const std::set<std::string>& active) {
  StateCpus split{.held = {}, .pool = state.default_cpus};
  for (const auto& [uid, containers] : state.entries) {
    for (const auto& [name, cpus] : containers) {
      (active.contains(uid) ? split.held : split.pool) |= cpus;
    }
  }
  // A pod-level entry has all CPUs of its pod; its containers' entries are parts of it.
  for (const auto& [uid, cpus] : state.pod_entries) {
    (active.contains(uid) ? split.held : split.pool) |= cpus;
  }
  return split;
}

void ExplainHiddenCpus(const base::CpuSet& hidden, base::Diagnostics& diagnostics) {
  if (hidden.empty()) return;
  diagnostics.push_back(
      {.code = "CpusHeldButNotListed",
       .subject = "",
       .message = fmt::format("{} CPUs ({}) are held but not listed: by an init container that "
                              "has finished, or by a sidecar that this kubelet does not list.",
                              hidden.size(), hidden.ToString())});
}

void ExplainLostCpus(const Facts& facts, const KubeletFacts& kubelet, const StateCpus& split,
                     const CpuAccount& account, base::Diagnostics& diagnostics) {
  base::CpuSet candidates = facts.topology.OnlineCpus();
  if (kubelet.reserved_cpus) {
    candidates -= *kubelet.reserved_cpus;
  } else if (account.allocatable) {
    candidates &= *account.allocatable;
  }
  const base::CpuSet lost = candidates - split.pool - split.held;
  if (lost.empty()) return;
  diagnostics.push_back({.code = "CpusUnusable",
                         .subject = "",
                         .message = fmt::format(
                             "{} CPUs ({}) are in neither the kubelet's shared pool nor any "
                             "container's set: they came online after the kubelet wrote its state, "
                             "or it was stopped half-way. It cannot hand them out.",
                             lost.size(), lost.ToString())});
}

void ExplainOldState(const base::CpuSet& given_since, base::Diagnostics& diagnostics) {
  if (given_since.empty()) return;
  diagnostics.push_back(
      {.code = "StateFilesOld",
       .subject = "",
       .message = fmt::format("{} CPUs ({}) are listed as held, and in cpu_manager_state they are "
                              "shared or a dead pod's: the kubelet could not write its state "
                              "since, as on a disk that is full or read-only. What is free of "
                              "memory is as of then.",
                              given_since.size(), given_since.ToString())});
}

}  // namespace

CpuAccount AccountCpus(const Facts& facts, const KubeletFacts& kubelet,
                       const std::set<std::string>& active, base::Diagnostics& diagnostics) {
  CpuAccount account;
  if (!facts.assignments.ok() || !HasStaticCpus(kubelet)) return account;
  account.allocatable = AllocatableCpus(facts, kubelet, account.estimated, diagnostics);
  const base::CpuSet listed = ListedCpus(*facts.assignments);
  if (!facts.state.cpu) {
    diagnostics.push_back({.code = "HiddenCpusUnknown",
                           .subject = "",
                           .message = "Without cpu_manager_state, CPUs that finished init "
                                      "containers still hold are not known and shown as free."});
    if (account.allocatable) {
      account.free = (*account.allocatable & facts.topology.OnlineCpus()) - listed;
    }
    return account;
  }
  const StateCpus split = SplitState(*facts.state.cpu, active);
  if (facts.settled) ExplainOldState(listed & split.pool, diagnostics);
  ExplainHiddenCpus(split.held - listed, diagnostics);
  ExplainLostCpus(facts, kubelet, split, account, diagnostics);
  if (account.allocatable) {
    account.free =
        (split.pool & *account.allocatable & facts.topology.OnlineCpus()) - split.held - listed;
  }
  return account;
}

namespace {

// One block's way back to its NUMA nodes.
void Release(const MemoryBlock& block, std::map<int, podresources::MemoryNode>& nodes) {
  std::int64_t left = std::max<std::int64_t>(0, block.bytes);
  for (const int id : block.numa_nodes) {
    const auto node = nodes.find(id);
    if (node == nodes.end()) continue;
    if (--node->second.assignments <= 0) {
      node->second.assignments = 0;
      node->second.group = {id};
    }
    const auto table = node->second.memory.find(block.type);
    if (table == node->second.memory.end()) continue;
    const std::int64_t released = std::min(left, std::max<std::int64_t>(0, table->second.reserved));
    table->second.reserved -= released;
    table->second.free = SaturatingAdd(table->second.free, released);
    left -= released;
  }
}

void Release(const std::vector<MemoryBlock>& blocks,
             std::map<int, podresources::MemoryNode>& nodes) {
  for (const MemoryBlock& block : blocks) Release(block, nodes);
}

}  // namespace

MemoryManagerState ReleaseInactive(MemoryManagerState state, const std::set<std::string>& active) {
  for (auto entry = state.entries.begin(); entry != state.entries.end();) {
    if (active.contains(entry->first)) {
      ++entry;
      continue;
    }
    // The blocks of containers are parts of their pod's, where it has any, and were never counted.
    if (!state.pod_entries.contains(entry->first)) {
      for (const auto& [name, blocks] : entry->second) Release(blocks, state.nodes);
    }
    entry = state.entries.erase(entry);
  }
  for (auto pod = state.pod_entries.begin(); pod != state.pod_entries.end();) {
    if (active.contains(pod->first)) {
      ++pod;
      continue;
    }
    Release(pod->second, state.nodes);
    pod = state.pod_entries.erase(pod);
  }
  return state;
}

namespace {

constexpr const char* kMemory = "memory";

// What is installed, as the kernel says. Memory that is set aside as huge pages cannot be had as
// "memory", which only `allocatable` shows.
MemoryAccount::Node InstalledMemory(const hwinfo::NumaNode& node, const KubeletFacts& kubelet) {
  MemoryAccount::Node account;
  for (const hwinfo::HugePages& pages : node.huge_pages) {
    const std::string type = base::HugePagesResource(pages.page_bytes);
    const std::int64_t bytes = BytesOf(pages);
    account.types[type] = {.type = type, .capacity = bytes, .allocatable = bytes, .free = {}};
  }
  if (const std::int64_t bytes = node.memory_bytes.value_or(0); bytes > 0) {
    account.types[kMemory] = {
        .type = kMemory, .capacity = bytes, .allocatable = BytesOutsideHugePages(node), .free = {}};
  }
  for (const KubeletFacts::ReservedMemory& reserved : kubelet.reserved_memory) {
    const auto memory = account.types.find(reserved.type);
    if (reserved.numa_node != node.id || memory == account.types.end()) continue;
    memory->second.system_reserved = reserved.bytes;
    memory->second.allocatable =
        std::max<std::int64_t>(0, memory->second.allocatable - reserved.bytes);
  }
  return account;
}

void TakeFromState(const MemoryManagerState& state, MemoryAccount& account) {
  for (const auto& [id, from] : state.nodes) {
    const auto node = account.nodes.find(id);
    if (node == account.nodes.end()) continue;
    node->second.group = from.group.empty() ? base::NumaMask{id} : from.group;
    node->second.assignments = from.assignments;
    for (const auto& [type, table] : from.memory) {
      node->second.types[type] = {.type = type,
                                  .capacity = table.total,
                                  .system_reserved = table.system_reserved,
                                  .allocatable = table.allocatable,
                                  .free = std::clamp<std::int64_t>(
                                      table.free, 0, std::max<std::int64_t>(0, table.allocatable))};
    }
  }
}

// Without a state file: what the kubelet says it could hand out, all of it still free.
void TakeAllocatable(const podresources::Assignments& assignments, MemoryAccount& account) {
  for (auto& [id, node] : account.nodes) {
    node.group = base::NumaMask{id};
    node.assignments = 0;
  }
  if (assignments.allocatable) {
    for (auto& [id, node] : account.nodes) {
      for (auto& [type, memory] : node.types) memory.allocatable = 0;
    }
    for (const MemoryBlock& block : assignments.allocatable->memory) {
      const auto node = account.nodes.find(block.numa_nodes.First());
      if (node == account.nodes.end()) continue;
      NodeMemory& memory = node->second.types[block.type];
      memory.type = block.type;
      memory.allocatable =
          SaturatingAdd(memory.allocatable, std::max<std::int64_t>(0, block.bytes));
      memory.capacity = std::max(memory.capacity, memory.allocatable);
    }
  }
  for (auto& [id, node] : account.nodes) {
    for (auto& [type, memory] : node.types) memory.free = memory.allocatable;
  }
}

void Subtract(const MemoryBlock& block, MemoryAccount& account) {
  std::int64_t left = std::max<std::int64_t>(0, block.bytes);
  for (const int id : block.numa_nodes) {
    const auto node = account.nodes.find(id);
    if (node == account.nodes.end()) continue;
    node->second.assignments = node->second.assignments.value_or(0) + 1;
    node->second.group = node->second.group.value_or(base::NumaMask{id}) | block.numa_nodes;
    const auto memory = node->second.types.find(block.type);
    if (memory == node->second.types.end()) continue;
    const std::int64_t taken = std::min(left, memory->second.free.value_or(0));
    memory->second.free = memory->second.free.value_or(0) - taken;
    left -= taken;
  }
}

void TakeFromList(const podresources::Assignments& assignments, MemoryAccount& account) {
  TakeAllocatable(assignments, account);
  std::vector<MemoryBlock> wide;
  const auto take = [&](const std::vector<MemoryBlock>& blocks) {
    for (const MemoryBlock& block : blocks) {
      if (block.numa_nodes.size() > 1) {
        wide.push_back(block);
      } else {
        Subtract(block, account);  // exact, so these come first
      }
    }
  };
  for (const podresources::Pod& pod : assignments.pods) {
    take(pod.memory);
    if (!pod.memory.empty()) continue;  // the containers' blocks are parts of these
    for (const podresources::Container& container : pod.containers) take(container.memory);
  }
  std::ranges::sort(wide);
  for (const MemoryBlock& block : wide) Subtract(block, account);
}

}  // namespace

MemoryAccount AccountMemory(const Facts& facts, const KubeletFacts& kubelet,
                            const std::set<std::string>& active, base::Diagnostics& diagnostics) {
  MemoryAccount account;
  for (const hwinfo::NumaNode& node : facts.topology.numa_nodes) {
    account.nodes[node.id] = InstalledMemory(node, kubelet);
  }
  if (!facts.assignments.ok() || !HasStaticMemory(kubelet)) return account;
  if (facts.state.memory) {
    TakeFromState(ReleaseInactive(*facts.state.memory, active), account);
    return account;
  }
  diagnostics.push_back(
      {.code = "HiddenMemoryUnknown",
       .subject = "",
       .message =
           "Without memory_manager_state, memory that init containers hold is not known, and "
           "blocks on several NUMA nodes are taken to fill them in ascending order."});
  TakeFromList(*facts.assignments, account);
  return account;
}

}  // namespace placement
