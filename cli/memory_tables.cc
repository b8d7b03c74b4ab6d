#include "cli/memory_tables.h"

#include <algorithm>

#include "kube/pod.h"

namespace cli {
namespace {

std::int64_t Less(std::int64_t amount, std::int64_t taken) {
  return std::max<std::int64_t>(0, amount - taken);  // both are at least 0
}

}  // namespace

std::vector<placement::NodeMemory> MemoryTables(
    int numa_node, std::int64_t memory, const std::map<std::string, std::int64_t>& huge_pages,
    const std::vector<placement::KubeletFacts::ReservedMemory>& reserved) {
  const auto table = [&](const std::string& type, std::int64_t capacity, std::int64_t taken) {
    std::int64_t kept = 0;
    for (const auto& entry : reserved) {
      if (entry.numa_node != numa_node || entry.type != type) continue;
      kept = kube::Sum(kept, entry.bytes);
    }
    const std::int64_t allocatable = Less(Less(capacity, taken), kept);
    return placement::NodeMemory{.type = type,
                                 .capacity = capacity,
                                 .system_reserved = kept,
                                 .allocatable = allocatable,
                                 .free = allocatable};
  };
  std::vector<placement::NodeMemory> tables;
  std::int64_t huge = 0;
  for (const auto& [type, bytes] : huge_pages) {
    tables.push_back(table(type, bytes, 0));
    huge = kube::Sum(huge, bytes);
  }
  tables.push_back(table("memory", memory, huge));
  return tables;
}

}  // namespace cli
