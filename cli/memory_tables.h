#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "placement/node_placement.h"

namespace cli {

// The tables of an empty NUMA node as the kubelet's static memory manager fills them: huge pages by
// size, then "memory", which is what remains of all the node's bytes. Nothing is below 0.
std::vector<placement::NodeMemory> MemoryTables(
    int numa_node, std::int64_t memory, const std::map<std::string, std::int64_t>& huge_pages,
    const std::vector<placement::KubeletFacts::ReservedMemory>& reserved);

}  // namespace cli
