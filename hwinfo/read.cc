#include "hwinfo/read.h"

#include <fmt/format.h>
#include <sys/utsname.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <utility>

#include "absl/status/status.h"
#include "base/file_tree.h"
#include "base/status_macros.h"
#include "hwinfo/cpus_sysfs.h"
#include "hwinfo/derived.h"
#include "hwinfo/hwloc_merge.h"
#include "hwinfo/hwloc_view.h"
#include "hwinfo/libnuma_check.h"
#include "hwinfo/numa_sysfs.h"
#include "hwinfo/nvidia_procfs.h"
#include "hwinfo/pci_devices.h"
#include "hwinfo/sysfs_values.h"

namespace hwinfo {
namespace {

using base::FileTree;

constexpr char kBootId[] = "proc/sys/kernel/random/boot_id";

std::string ReadBootId(const FileTree& root) { return root.ReadTrimmed(kBootId).value_or(""); }

bool IsLive(const std::string& root) {
  std::error_code error;
  return std::filesystem::equivalent(root, "/", error);
}

// The host under another path ("/host" in a container) has our boot id.
bool IsThisMachine(const FileTree& root, const std::string& boot_id) {
  if (IsLive(root.root())) return true;
  const absl::StatusOr<FileTree> live = FileTree::Open("/");
  return live.ok() && !boot_id.empty() && ReadBootId(*live) == boot_id;
}

std::string OwnArchitecture() {
  utsname names = {};
  return uname(&names) == 0 ? names.machine : "";
}

void Note(std::string code, std::string message, Topology& topology) {
  topology.diagnostics.push_back({std::move(code), "", std::move(message)});
}

// NUMA nodes by sysfs; by hwloc where sysfs has them but cannot be read; node 0 where there are
// none.
void ReadNodes(const FileTree& root, const base::CpuSet& online,
               const absl::StatusOr<HwlocView>& hwloc, Topology& topology) {
  absl::StatusOr<std::vector<NumaNode>> nodes = ReadNumaNodes(root, online, topology.diagnostics);
  if (nodes.ok()) {
    topology.numa_nodes = *std::move(nodes);
    return;
  }
  if (!absl::IsNotFound(nodes.status())) {
    NoteUnreadable("sys/devices/system/node", nodes.status(), topology.diagnostics);
    if (hwloc.ok() && !hwloc->nodes.empty()) {
      topology.numa_nodes = NodesFromHwloc(*hwloc);
      return;
    }
  }
  topology.numa_visible = false;
  topology.numa_nodes = {ReadHostAsOneNode(root, online, topology.diagnostics)};
  Note("NumaNodesInvisible", "the kernel shows no NUMA nodes: node 0 stands for the whole host",
       topology);
}

absl::StatusOr<Topology> ReadCpusAndNodes(const FileTree& root,
                                          const absl::StatusOr<HwlocView>& hwloc) {
  Topology topology;
  absl::StatusOr<SysfsCpus> cpus = ReadCpus(root, topology.diagnostics);
  if (cpus.ok()) {
    topology.cpus = std::move(cpus->cpus);
    topology.offline_cpus = std::move(cpus->offline);
    topology.isolated_cpus = std::move(cpus->isolated);
    ReadNodes(root, cpus->online, hwloc, topology);
    if (hwloc.ok()) AddHwloc(*hwloc, topology);
  } else if (hwloc.ok()) {
    topology = FromHwloc(*hwloc);
    topology.devices.clear();  // those have a reader of their own
    Note("HwlocOnly",
         fmt::format("CPUs and NUMA nodes are by hwloc's word alone: {}",
                     std::string(cpus.status().message())),
         topology);
  } else {
    return absl::NotFoundError(fmt::format("{} shows no machine: {}; {}", root.root(),
                                           std::string(cpus.status().message()),
                                           std::string(hwloc.status().message())));
  }
  if (!hwloc.ok()) {
    Note("HwlocFailed",
         fmt::format("core kinds, memory types and the places of devices that sysfs does not place "
                     "are unknown: {}",
                     std::string(hwloc.status().message())),
         topology);
  }
  return topology;
}

// Where NVIDIA's driver says that a node is a GPU's memory, on coherent platforms.
void AddGpuMemory(const std::map<int, PciAddress>& gpus, Topology& topology) {
  for (NumaNode& node : topology.numa_nodes) {
    const auto gpu = gpus.find(node.id);
    if (gpu == gpus.end()) continue;
    node.gpu = gpu->second;
    node.memory_type = "GPUMemory";  // as hwloc calls it where it knows
  }
}

void ReadDevices(const FileTree& root, const absl::StatusOr<HwlocView>& hwloc, Topology& topology) {
  topology.devices = ReadPciDevices(root, topology.NumaNodeIds(), topology.diagnostics);
  if (hwloc.ok()) AddAnchors(*hwloc, topology);
}

void Finish(Topology& topology) {
  base::Diagnostics& diagnostics = topology.diagnostics;
  std::ranges::sort(diagnostics);
  diagnostics.erase(std::unique(diagnostics.begin(), diagnostics.end()), diagnostics.end());
}

absl::StatusOr<Topology> ReadRoot(const std::string& path) {
  ASSIGN_OR_RETURN(const FileTree root, FileTree::Open(path));
  const absl::StatusOr<HwlocView> hwloc = ViewRoot(root);
  ASSIGN_OR_RETURN(Topology topology, ReadCpusAndNodes(root, hwloc));
  topology.source = IsLive(path) ? "live" : "root " + path;
  topology.boot_id = ReadBootId(root);
  if (IsThisMachine(root, topology.boot_id)) topology.architecture = OwnArchitecture();
  AddGpuMemory(ReadNvidiaMemoryNodes(root), topology);
  SettleOverlaps(root, topology);
  Derive(topology);
  ReadDevices(root, hwloc, topology);
  if (IsLive(path)) CheckAgainstLibnuma(topology);
  Finish(topology);
  return topology;
}

absl::StatusOr<Topology> ReadXml(const std::string& path) {
  ASSIGN_OR_RETURN(const HwlocView hwloc, ViewXml(path));
  Topology topology = FromHwloc(hwloc);
  if (topology.cpus.empty() || topology.numa_nodes.empty()) {
    return absl::InvalidArgumentError(path + " shows no CPU, or no NUMA node");
  }
  topology.source = "xml " + path;
  Note("HwlocOnly", "the file holds hwloc's word alone: which NUMA nodes have CPUs is inferred",
       topology);
  Derive(topology);
  Finish(topology);
  return topology;
}

}  // namespace

absl::StatusOr<Topology> Read(const Source& source) {
  return source.xml ? ReadXml(*source.xml) : ReadRoot(source.root);
}

std::string FingerprintHardware(const FileTree& root) {
  std::string fingerprint;
  for (const char* const file :
       {"sys/devices/system/cpu/online", "sys/devices/system/node/online"}) {
    fingerprint += root.ReadTrimmed(file).value_or("") + ";";
  }
  for (const char* const folder : {"sys/bus/pci/devices", "proc/driver/nvidia/gpus"}) {
    const auto names = root.List(folder).value_or(std::vector<std::string>());
    fingerprint += fmt::format("{};", fmt::join(names, ","));
  }
  return fingerprint;
}

}  // namespace hwinfo
