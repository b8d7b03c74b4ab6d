#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/cpu_set.h"
#include "base/diagnostic.h"
#include "base/file_tree.h"

namespace hwinfo {

// What the kernel enforces for one container: its cgroup's effective cpuset and where its memory
// is.
struct ContainerCgroup {
  std::string path;                            // below the cgroup mount
  std::string pod_uid;                         // from the pod's folder, '_' turned back into '-'
  std::string container_id;                    // 64 hex digits, without the runtime's prefix
  std::optional<base::CpuSet> cpus;            // effective; nullopt if no ancestor says
  std::optional<base::NumaMask> memory_nodes;  // effective; nullopt if no ancestor says
  std::map<int, std::int64_t> resident_bytes;  // by NUMA node; absent nodes hold nothing
  bool resident_known = false;                 // false: no memory.numa_stat
  bool operator==(const ContainerCgroup&) const = default;
};

struct Enforced {
  std::vector<ContainerCgroup> containers;  // sorted by pod uid, then container id
  base::Diagnostics diagnostics;
  bool operator==(const Enforced&) const = default;
};

// Walks sys/fs/cgroup (v1 or v2, either driver, any cgroup root) for the containers of pods.
// NotFound if there is no cgroup tree; a tree without kubepods is an empty answer.
absl::StatusOr<Enforced> ReadEnforced(const base::FileTree& root);

}  // namespace hwinfo
