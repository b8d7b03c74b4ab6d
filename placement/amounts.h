#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "hwinfo/topology.h"

// Sums of what others report: they stop at the largest number, whatever a damaged file says.
namespace placement {

inline std::int64_t SaturatingAdd(std::int64_t a, std::int64_t b) {
  std::int64_t sum = 0;
  if (!__builtin_add_overflow(a, b, &sum)) return sum;
  return b > 0 ? std::numeric_limits<std::int64_t>::max()
               : std::numeric_limits<std::int64_t>::min();
}

inline std::int64_t BytesOf(const hwinfo::HugePages& pages) {
  std::int64_t bytes = 0;
  if (__builtin_mul_overflow(pages.page_bytes, pages.total, &bytes)) {
    return std::numeric_limits<std::int64_t>::max();
  }
  return std::max<std::int64_t>(0, bytes);
}

// A NUMA node's memory that can be had as "memory": what is not set aside as huge pages.
inline std::int64_t BytesOutsideHugePages(const hwinfo::NumaNode& node) {
  std::int64_t bytes = node.memory_bytes.value_or(0);
  for (const hwinfo::HugePages& pages : node.huge_pages) {
    bytes = std::max<std::int64_t>(0, bytes - BytesOf(pages));
  }
  return std::max<std::int64_t>(0, bytes);
}

}  // namespace placement
