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
#include "podresources/assignments.h"

namespace podresources {

// The kubelet's own notes on disk. They keep entries of pods that are gone until its next admission
// (memory, devices) or for ten seconds (CPUs): what is free is computed in placement/, not here.

template <class T>
using ByPodAndContainer = std::map<std::string, std::map<std::string, T>>;  // UID, container name

// cpu_manager_state. Kubelets up to 1.17 wrote entries by container id: such an id stands where the
// UID is, and the container's name is "".
struct CpuManagerState {
  std::string policy;                               // "static", "none"
  base::CpuSet default_cpus;                        // the shared pool
  ByPodAndContainer<base::CpuSet> entries;          // exclusive CPUs; container "": see below
  std::map<std::string, base::CpuSet> pod_entries;  // pod-level (kubelet 1.37), by UID
  bool operator==(const CpuManagerState&) const = default;
};

// memory_manager_state
struct MemoryTable {
  std::int64_t total = 0;  // bytes, all of them
  std::int64_t system_reserved = 0;
  std::int64_t allocatable = 0;
  std::int64_t reserved = 0;  // held by containers
  std::int64_t free = 0;
  bool operator==(const MemoryTable&) const = default;
};
struct MemoryNode {
  int assignments = 0;                        // numberOfAssignments
  std::map<std::string, MemoryTable> memory;  // by type
  base::NumaMask group;                       // cells
  bool operator==(const MemoryNode&) const = default;
};
struct MemoryManagerState {
  std::string policy;                                           // "Static", "None"
  std::map<int, MemoryNode> nodes;                              // by NUMA node id
  ByPodAndContainer<std::vector<MemoryBlock>> entries;          // each sorted
  std::map<std::string, std::vector<MemoryBlock>> pod_entries;  // pod-level (1.37), by UID; sorted
  bool operator==(const MemoryManagerState&) const = default;
};

// device-plugins/kubelet_internal_checkpoint: read for what finished init containers still hold.
struct DeviceCheckpoint {
  ByPodAndContainer<std::vector<Device>> entries;              // each sorted
  std::map<std::string, std::vector<std::string>> registered;  // healthy ids by resource, sorted
  bool operator==(const DeviceCheckpoint&) const = default;
};

// One folder of /var/log/pods: joins podresources' names to the state files' UIDs.
struct PodLogFolder {
  std::string namespace_name;
  std::string name;
  std::string uid;  // static pods: the kubelet's, 32 hex digits
  auto operator<=>(const PodLogFolder&) const = default;
};

struct KubeletState {
  std::optional<CpuManagerState> cpu;  // nullopt: no file, or not readable (diagnostics)
  std::optional<MemoryManagerState> memory;
  std::optional<DeviceCheckpoint> devices;
  std::optional<std::vector<PodLogFolder>> pod_logs;  // sorted; nullopt: the folder is not readable
  std::string fingerprint;  // changes with any of the files: inode, size, time; for read-call-read
  base::Diagnostics diagnostics;
  bool operator==(const KubeletState&) const = default;
};

// `root_dir` is the kubelet's (/var/lib/kubelet), `pod_logs_dir` usually /var/log/pods. Missing
// files are absent values with a diagnostic; a damaged file is absent too, and says what is wrong
// with it.
KubeletState ReadKubeletState(const base::FileTree& root, const std::string& root_dir,
                              const std::string& pod_logs_dir);

// The fingerprint alone: what ReadKubeletState would return with it has not changed as long as it
// is the same.
std::string FingerprintKubeletState(const base::FileTree& root, const std::string& root_dir,
                                    const std::string& pod_logs_dir);

// Whether the file is half of a change. The kubelet writes it at each step of a change and waits
// for the disk each time; between two steps the file stands still and does not add up. A running
// kubelet has files that do: it does not start with others (validateState of both policies).
// CPUs leave the pool before somebody has them, and the entry of a dead container goes before its
// CPUs are back in the pool: then some of `allocatable` are nowhere.
//
// Memory is reserved before it is somebody's, the entry of a dead container goes before what it had
// is free, and that of a pod comes before it is reserved and goes after it is free: then what is
// reserved is not what the entries have.
bool IsHalfOfAChange(const CpuManagerState& state, const base::CpuSet& allocatable);
bool IsHalfOfAChange(const MemoryManagerState& state);

// The parsers, pure. InvalidArgument says what is wrong and where.
absl::StatusOr<CpuManagerState> ParseCpuManagerState(const std::string& json);
absl::StatusOr<MemoryManagerState> ParseMemoryManagerState(const std::string& json);
absl::StatusOr<DeviceCheckpoint> ParseDeviceCheckpoint(const std::string& json);

}  // namespace podresources
