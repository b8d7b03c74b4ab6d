#pragma once

#include <bit>
#include <cstddef>

#include "placement/alignment.h"

namespace reference {

// The definition, word for word: the size of the smallest of all sets that could hold the demand;
// -1 if none can.
inline int FewestNumaNodes(const placement::Demand& demand,
                           const std::vector<placement::Installed>& nodes) {
  int fewest = -1;
  for (unsigned set = 0; set < (1U << nodes.size()); ++set) {
    std::int64_t cpus = 0;
    std::map<std::string, std::int64_t> memory;
    std::map<std::string, std::int64_t> devices;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      if (((set >> i) & 1U) == 0) continue;
      cpus += nodes[i].cpus;
      for (const auto& [type, bytes] : nodes[i].memory) memory[type] += bytes;
      for (const auto& [resource, count] : nodes[i].devices) devices[resource] += count;
    }
    bool holds = cpus >= demand.cpus;
    for (const auto& [type, bytes] : demand.memory) holds = holds && memory[type] >= bytes;
    for (const auto& [resource, count] : demand.devices) {
      holds = holds && devices[resource] >= count;
    }
    const int width = std::popcount(set);
    if (holds && (fewest < 0 || width < fewest)) fewest = width;
  }
  return fewest;
}

}  // namespace reference
