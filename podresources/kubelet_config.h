#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/cpu_set.h"
#include "base/diagnostic.h"
#include "base/file_tree.h"

namespace podresources {

struct KubeletState;  // kubelet_state.h

// Where a value of the kubelet's configuration was found.
enum class ConfigSource {
  kUnknown,      // nowhere: the value is not known, and no default is invented for it
  kDefault,      // the kubelet's own default: its configuration was read whole and does not set it
  kFile,         // the configuration file or its drop-in directory
  kCommandLine,  // a flag, which overrides the file
  kState,        // cpu_manager_state, memory_manager_state
  kConfigz,      // the running kubelet's own word
  kNode,         // the Node object, which the kubelet writes
};

template <class T>
struct Sourced {
  std::optional<T> value;
  ConfigSource source = ConfigSource::kUnknown;
  std::string where;  // file or flag, for people
  bool operator==(const Sourced&) const = default;
};

using Options = std::map<std::string, std::string>;

struct ReservedMemory {
  int numa_node = -1;
  std::string type;  // "memory", "hugepages-1Gi"
  std::int64_t bytes = 0;
  auto operator<=>(const ReservedMemory&) const = default;
};

// The part of the kubelet's configuration that decides placement, each value with its source.
struct KubeletConfig {
  std::string root_dir = "/var/lib/kubelet";   // --root-dir
  std::string pod_logs_dir = "/var/log/pods";  // podLogsDir
  std::optional<int> pid;                      // of the running kubelet
  std::optional<base::Time> started_at;
  std::optional<std::int64_t> start_ticks;  // kubelet_process.h
  Sourced<std::string> version;             // "v1.37.2"
  Sourced<std::string> topology_policy;     // none | best-effort | restricted | single-numa-node
  Sourced<std::string> topology_scope;      // container | pod
  Sourced<Options> topology_options;
  Sourced<std::string> cpu_policy;  // none | static
  Sourced<Options> cpu_options;
  Sourced<base::CpuSet> reserved_cpus;       // reservedSystemCPUs; not empty: overrides the next
  Sourced<std::int64_t> reserved_cpu_milli;  // kubeReserved + systemReserved
  Sourced<std::string> memory_policy;        // None | Static
  Sourced<std::vector<ReservedMemory>> reserved_memory;  // sorted
  Sourced<std::int64_t> reserved_memory_bytes;  // kubeReserved + systemReserved + evictionHard
  Sourced<Options> feature_gates;               // as configured, "true" or "false"
  // Files and folders that were looked for, also those that are not there: where a change shows.
  std::vector<std::string> looked_at;  // sorted, each once
  base::Diagnostics diagnostics;
  bool operator==(const KubeletConfig&) const = default;
};

struct KubeletConfigOptions {
  std::optional<std::string> config_file =
      {};                                   // in `root`; nullopt: what the running kubelet names
  std::optional<std::string> configz = {};  // what the running kubelet answers at /configz
};

// Reads what the running kubelet was started with (proc/<pid>/cmdline), its configuration file and
// drop-in directory; or, where it is given, takes the kubelet's own word instead of these three,
// which is whole and of this run, whatever the files say by now. Nothing found is not an error:
// every value stays unknown, and a diagnostic says where was looked. Errors only for a file that
// was asked for and cannot be read or understood.
absl::StatusOr<KubeletConfig> ReadKubeletConfig(const base::FileTree& root,
                                                const KubeletConfigOptions& options);

// What a kubelet with this configuration refuses, each with the value to use instead. Pure.
// `numa_nodes`: how many the machine has, 0 if not known.
base::Diagnostics CheckKubeletConfig(const KubeletConfig& config, const KubeletState& state,
                                     int numa_nodes);

}  // namespace podresources
