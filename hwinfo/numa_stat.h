#pragma once

#include <cstdint>
#include <map>
#include <string_view>

#include "absl/status/statusor.h"

namespace hwinfo {

// Resident bytes by NUMA node, from a cgroup's memory.numa_stat; nodes that hold nothing are left
// out. Lines of other kinds are skipped (kernels add them, and the counters of reclaim and
// migration are events, not bytes). InvalidArgument if the lines that count are absent or damaged.
// Huge pages are in neither file.

// cgroup v2, bytes, the cgroups below included: anon + file (shmem is part of it) + kernel_stack +
// pagetables + sec_pagetables + slab.
absl::StatusOr<std::map<int, std::int64_t>> ParseNumaStat(std::string_view text);

// cgroup v1, pages: hierarchical_total, which includes the cgroups below, else total.
absl::StatusOr<std::map<int, std::int64_t>> ParseNumaStatV1(std::string_view text,
                                                            std::int64_t page_bytes);

}  // namespace hwinfo
