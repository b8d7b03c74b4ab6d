#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "base/file_tree.h"
#include "hwinfo/topology.h"

namespace hwinfo {

struct Source {
  std::string root = "/";          // sysfs and procfs are looked for below it
  std::optional<std::string> xml;  // an hwloc XML file (2.x) instead of a root
};

// Reads the machine: hwloc gives the structure, sysfs is the arbiter of ids, CPUs, memory,
// distances and locality, and where they disagree both values and a diagnostic are kept.
//
// A tree that is damaged in parts yields what can be read, with a diagnostic for each gap. NotFound
// or InvalidArgument where there is nothing to show: no root, no CPU, no such XML.
//
// hwloc is configured by process-wide environment variables: the first call sets them, so make it
// before other threads start. Reads of trees other than "/" must not run at the same time.
absl::StatusOr<Topology> Read(const Source& source);

// What Read would find has most likely not changed as long as this is the same: online CPUs and
// NUMA nodes, the PCI functions, and the GPUs that NVIDIA's driver knows. Four small reads; what it
// does not show (memory that is added, a driver that is bound) is for a slow timer.
std::string FingerprintHardware(const base::FileTree& root);

}  // namespace hwinfo
