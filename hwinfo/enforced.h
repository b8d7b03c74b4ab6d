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
// is. A pod's sandbox ("pause") container looks like any other here; the kubelet's names for
// container ids tell it apart: it has none.
struct ContainerCgroup {
  std::string path;                            // below the cgroup mount
  std::string pod_uid;                         // from the pod's folder, '_' turned back into '-'
  std::string container_id;                    // 64 hex digits, without the runtime's prefix
  std::optional<base::CpuSet> cpus;            // effective; nullopt if no ancestor says
  std::optional<base::NumaMask> memory_nodes;  // effective; nullopt if no ancestor says
  // By NUMA node, from memory.numa_stat, so without huge pages; absent nodes hold nothing.
  std::map<int, std::int64_t> resident_bytes;
  bool resident_known = false;  // false: no memory.numa_stat, or a damaged one
  bool operator==(const ContainerCgroup&) const = default;
};

struct Enforced {
  std::vector<ContainerCgroup> containers;  // sorted by pod uid, then container id
  // The bound of all pods: the effective cpuset of the kubepods cgroup. It may be smaller than the
  // machine. nullopt: there is no such cgroup, or nobody says.
  std::optional<base::CpuSet> all_pods_cpus;
  std::optional<base::NumaMask> all_pods_memory_nodes;
  // Where pods and containers come and go: the top, the cgroup of all pods and what is between it
  // and the containers, these too. Paths in the root, sorted.
  std::vector<std::string> folders;
  base::Diagnostics diagnostics;
  bool operator==(const Enforced&) const = default;
};

// Walks sys/fs/cgroup (v1 or v2, either driver, any cgroup root) for the containers of pods. What
// counts is the effective cpuset: cpuset.cpus alone may be empty, or ask for more than there is.
// A cgroup without cpuset files has its nearest ancestor's. Containers that go away meanwhile are
// left out. Pages of v1 are taken to be of the size of the machine this runs on.
// NotFound if there is no cgroup tree; a tree without kubepods is an empty answer.
absl::StatusOr<Enforced> ReadEnforced(const base::FileTree& root);

}  // namespace hwinfo
