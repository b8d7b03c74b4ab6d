#include "hwinfo/hwloc_view.h"

#include <fmt/format.h>
#include <hwloc.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <limits>
#include <memory>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "base/status_macros.h"
#include "hwinfo/hwloc_guard.h"

#if HWLOC_API_VERSION >= 0x00030000
#error \
    "hwloc 3 renames HWLOC_HIDE_ERRORS and changes the types of OS devices: adapt this file first"
#endif

namespace hwinfo {
namespace {

using base::CpuSet;
using base::NumaMask;

constexpr std::int64_t kMaxXmlBytes = std::int64_t{64} << 20;

struct Destroy {
  void operator()(hwloc_topology_t topology) const { hwloc_topology_destroy(topology); }
};
using Handle = std::unique_ptr<hwloc_topology, Destroy>;

template <class Set>
Set ToSet(hwloc_const_bitmap_t bitmap) {
  Set set;
  if (bitmap == nullptr || hwloc_bitmap_weight(bitmap) < 0) return set;  // infinite says nothing
  for (int id = hwloc_bitmap_first(bitmap); id >= 0; id = hwloc_bitmap_next(bitmap, id)) {
    if (!set.Insert(id)) break;
  }
  return set;
}

// -1 for HWLOC_UNKNOWN_INDEX and for what no kernel means as an id.
int ToId(unsigned os_index) {
  return os_index <= static_cast<unsigned>(std::numeric_limits<int>::max())
             ? static_cast<int>(os_index)
             : -1;
}

// hwloc takes these from the environment only.
void Configure(const std::string& root) {
  // The linux component finds all we use; the others bind to CPUs, or wait for X servers.
  setenv("HWLOC_COMPONENTS", "linux,stop", 1);
  setenv("HWLOC_HIDE_ERRORS", "2", 1);
  // hwloc before 2.11 leaves out the NUMA nodes that are the memory of NVIDIA GPUs.
  setenv("HWLOC_KEEP_NVIDIA_GPU_NUMA_NODES", "1", 1);
  if (root.empty() || root == "/") {
    unsetenv("HWLOC_FSROOT");
  } else {
    setenv("HWLOC_FSROOT", root.c_str(), 1);
  }
}

absl::StatusOr<Handle> Create() {
  hwloc_topology_t raw = nullptr;
  if (hwloc_topology_init(&raw) != 0) {
    return absl::ResourceExhaustedError("hwloc cannot create a topology");
  }
  Handle topology(raw);
  // INCLUDE_DISALLOWED: without it we would see our own cgroup's CPUs and nodes only.
  hwloc_topology_set_flags(raw, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED);
  hwloc_topology_set_io_types_filter(raw, HWLOC_TYPE_FILTER_KEEP_IMPORTANT);
  return topology;
}

// One CPU with its place, from its PU object upwards.
Cpu ToCpu(hwloc_topology_t topology, hwloc_obj_t pu) {
  Cpu cpu;
  cpu.id = ToId(pu->os_index);
  const auto above = [&](hwloc_obj_type_t type) {
    return hwloc_get_ancestor_obj_by_type(topology, type, pu);
  };
  if (const hwloc_obj_t package = above(HWLOC_OBJ_PACKAGE)) cpu.socket = ToId(package->os_index);
  if (const hwloc_obj_t core = above(HWLOC_OBJ_CORE)) {
    cpu.core = ToId(core->os_index);
    cpu.siblings = ToSet<CpuSet>(core->cpuset);
  }
  cpu.siblings.Insert(cpu.id);
  if (const hwloc_obj_t l3 = above(HWLOC_OBJ_L3CACHE)) {
    cpu.l3 = hwloc_bitmap_first(l3->cpuset);
  }
  return cpu;
}

// Ranks of core kinds by CPU; empty if all are alike, or hwloc cannot rank them.
std::map<int, int> KindsByCpu(hwloc_topology_t topology) {
  std::map<int, int> kinds;
  const int count = hwloc_cpukinds_get_nr(topology, 0);
  if (count < 2) return kinds;
  const std::unique_ptr<hwloc_bitmap_s, void (*)(hwloc_bitmap_t)> cpus(hwloc_bitmap_alloc(),
                                                                       hwloc_bitmap_free);
  for (unsigned i = 0; i < static_cast<unsigned>(count); ++i) {
    int rank = -1;
    if (hwloc_cpukinds_get_info(topology, i, cpus.get(), &rank, nullptr, nullptr, 0) != 0 ||
        rank < 0) {
      return {};
    }
    for (const int cpu : ToSet<CpuSet>(cpus.get())) kinds[cpu] = rank;
  }
  return kinds;
}

void ReadCpus(hwloc_topology_t topology, HwlocView& view) {
  const std::map<int, int> kinds = KindsByCpu(topology);
  for (hwloc_obj_t pu = nullptr;
       (pu = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_PU, pu)) != nullptr;) {
    Cpu cpu = ToCpu(topology, pu);
    if (!view.online.Insert(cpu.id)) continue;
    if (const auto kind = kinds.find(cpu.id); kind != kinds.end()) cpu.kind = kind->second;
    view.cpus.push_back(std::move(cpu));
  }
  std::ranges::sort(view.cpus, {}, &Cpu::id);
  view.complete = ToSet<CpuSet>(hwloc_topology_get_complete_cpuset(topology));
}

NumaNode ToNode(hwloc_obj_t object) {
  NumaNode node;
  node.id = ToId(object->os_index);
  node.nearest_cpus = ToSet<CpuSet>(object->cpuset);
  const auto& memory = object->attr->numanode;
  node.memory_bytes = static_cast<std::int64_t>(
      std::min<hwloc_uint64_t>(memory.local_memory, std::numeric_limits<std::int64_t>::max()));
  // The smallest page is the usual one. How many are free hwloc does not say.
  for (unsigned i = 1; i < memory.page_types_len; ++i) {
    node.huge_pages.push_back({.page_bytes = static_cast<std::int64_t>(memory.page_types[i].size),
                               .total = static_cast<std::int64_t>(memory.page_types[i].count),
                               .free = -1});
  }
  // Newer versions say DRAM where older ones say nothing.
  if (object->subtype != nullptr && std::strcmp(object->subtype, "DRAM") != 0) {
    node.memory_type = object->subtype;
  }
  if (const char* address = hwloc_obj_get_info_by_name(object, "PCIBusID")) {
    node.gpu = ParsePciAddress(address);
  }
  return node;
}

void ReadNodes(hwloc_topology_t topology, HwlocView& view) {
  for (hwloc_obj_t object = nullptr;
       (object = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_NUMANODE, object)) != nullptr;) {
    NumaNode node = ToNode(object);
    if (!NumaMask::Fits(node.id)) continue;
    view.complete_cpus[node.id] = ToSet<CpuSet>(object->complete_cpuset);
    view.nodes.push_back(std::move(node));
  }
  std::ranges::sort(view.nodes, {}, &NumaNode::id);
}

// The SLIT: latencies between NUMA nodes as the operating system gave them.
void ReadDistances(hwloc_topology_t topology, HwlocView& view) {
  std::array<hwloc_distances_s*, 8> found = {};
  unsigned count = found.size();
  const unsigned long kind = HWLOC_DISTANCES_KIND_FROM_OS | HWLOC_DISTANCES_KIND_MEANS_LATENCY;
  if (hwloc_distances_get_by_type(topology, HWLOC_OBJ_NUMANODE, &count, found.data(), kind, 0) !=
      0) {
    return;
  }
  std::map<int, NumaNode*> nodes;
  for (NumaNode& node : view.nodes) nodes[node.id] = &node;
  for (unsigned i = 0; i < std::min<unsigned>(count, found.size()); ++i) {
    hwloc_distances_s* matrix = found[i];
    for (unsigned from = 0; i == 0 && from < matrix->nbobjs; ++from) {
      const auto node = nodes.find(ToId(matrix->objs[from]->os_index));
      if (node == nodes.end()) continue;
      for (unsigned to = 0; to < matrix->nbobjs; ++to) {
        const hwloc_uint64_t value = matrix->values[from * matrix->nbobjs + to];
        if (value > static_cast<hwloc_uint64_t>(std::numeric_limits<int>::max())) continue;
        node->second->distances[ToId(matrix->objs[to]->os_index)] = static_cast<int>(value);
      }
    }
    hwloc_distances_release(topology, matrix);
  }
}

PciAddress ToAddress(const hwloc_obj_attr_u::hwloc_pcidev_attr_s& pci) {
  return {.domain = pci.domain, .bus = pci.bus, .device = pci.dev, .function = pci.func};
}

HwlocView::Pci ToPci(hwloc_topology_t topology, hwloc_obj_t object) {
  HwlocView::Pci pci;
  const hwloc_obj_attr_u::hwloc_pcidev_attr_s& attributes = object->attr->pcidev;
  pci.device.address = ToAddress(attributes);
  pci.device.vendor = attributes.vendor_id;
  pci.device.device = attributes.device_id;
  pci.device.device_class = std::uint32_t{attributes.class_id} << 8;  // no interface byte in hwloc
  for (hwloc_obj_t above = object->parent; above != nullptr; above = above->parent) {
    if (above->type == HWLOC_OBJ_BRIDGE &&
        above->attr->bridge.upstream_type == HWLOC_OBJ_BRIDGE_PCI) {
      pci.device.bridges.push_back(ToAddress(above->attr->bridge.upstream.pci));
    }
  }
  std::ranges::reverse(pci.device.bridges);
  for (hwloc_obj_t child = object->io_first_child; child != nullptr; child = child->next_sibling) {
    if (child->type == HWLOC_OBJ_OS_DEVICE && child->name != nullptr) {
      pci.device.names.push_back(child->name);
    }
  }
  std::ranges::sort(pci.device.names);
  // Never the memory children of an ancestor: a GPU may hang off a cache below its NUMA node.
  if (const hwloc_obj_t anchor = hwloc_get_non_io_ancestor_obj(topology, object)) {
    pci.numa_nodes = ToSet<NumaMask>(anchor->nodeset);
    pci.device.local_cpus = ToSet<CpuSet>(anchor->cpuset);
  }
  return pci;
}

HwlocView View(hwloc_topology_t topology) {
  HwlocView view;
  ReadCpus(topology, view);
  ReadNodes(topology, view);
  ReadDistances(topology, view);
  for (hwloc_obj_t object = nullptr;
       (object = hwloc_get_next_pcidev(topology, object)) != nullptr;) {
    HwlocView::Pci pci = ToPci(topology, object);
    view.pci[pci.device.address] = std::move(pci);
  }
  if (const char* architecture =
          hwloc_obj_get_info_by_name(hwloc_get_root_obj(topology), "Architecture")) {
    view.architecture = architecture;
  }
  return view;
}

absl::Status LoadFailed(const std::string& what, int error) {
  // hwloc leaves errno as it happens to be.
  return absl::InvalidArgumentError(
      fmt::format("hwloc cannot load {}{}", what,
                  error == 0 ? std::string() : fmt::format(": {}", std::strerror(error))));
}

absl::StatusOr<HwlocView> LoadXml(const std::string& path, const std::string& xml) {
  ASSIGN_OR_RETURN(const Handle topology, Create());
  errno = 0;
  if (hwloc_topology_set_xmlbuffer(topology.get(), xml.c_str(), static_cast<int>(xml.size()) + 1) !=
          0 ||
      hwloc_topology_load(topology.get()) != 0) {
    return LoadFailed(path + ", which should be XML of hwloc 1 or 2", errno);
  }
  return View(topology.get());
}

absl::StatusOr<HwlocView> LoadRoot(const std::string& root) {
  ASSIGN_OR_RETURN(const Handle topology, Create());
  errno = 0;
  if (hwloc_topology_load(topology.get()) != 0) return LoadFailed(root, errno);
  return View(topology.get());
}

}  // namespace

absl::StatusOr<HwlocView> ViewRoot(const base::FileTree& root) {
  RETURN_IF_ERROR(CheckTreeForHwloc(root.root()));
  std::error_code ignored;
  const std::filesystem::path real = std::filesystem::canonical(root.root(), ignored);
  Configure(real.empty() ? root.root() : real.string());
  // Links to folders are beyond the check, and hwloc may trip over what it lets through.
  if (!IsKernels(root.root() + "/sys")) {
    RETURN_IF_ERROR(TryInChild(root.root(), [&root] { static_cast<void>(LoadRoot(root.root())); }));
  }
  return LoadRoot(root.root());
}

absl::StatusOr<HwlocView> ViewXml(const std::string& path) {
  // Resolved first: FileTree would resolve an absolute link inside the folder.
  std::error_code absent;
  const std::filesystem::path real = std::filesystem::canonical(path, absent);
  const std::filesystem::path file = absent ? std::filesystem::path(path) : real;
  const std::string folder = file.has_parent_path() ? file.parent_path().string() : ".";
  ASSIGN_OR_RETURN(const base::FileTree tree, base::FileTree::Open(folder));
  ASSIGN_OR_RETURN(const std::string xml, tree.Read(file.filename().string(), kMaxXmlBytes));
  Configure("");
  RETURN_IF_ERROR(TryInChild(path, [&] { static_cast<void>(LoadXml(path, xml)); }));
  return LoadXml(path, xml);
}

}  // namespace hwinfo
