#include "hwinfo/numa_sysfs.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "base/status_macros.h"
#include "base/text.h"
#include "hwinfo/sysfs_values.h"

namespace hwinfo {
namespace {

using base::CpuSet;
using base::Diagnostics;
using base::FileTree;
using base::NumaMask;

constexpr char kFolder[] = "sys/devices/system/node";
constexpr std::int64_t kMaxKibibytes = std::numeric_limits<std::int64_t>::max() / 1024;

std::string NodeFolder(int node) { return fmt::format("{}/node{}", kFolder, node); }

absl::StatusOr<NumaMask> ListNodeFolders(const FileTree& root) {
  ASSIGN_OR_RETURN(const std::vector<std::string> names, root.List(kFolder));
  NumaMask nodes;
  for (const std::string& name : names) {
    if (const std::optional<int> node = NumberAfter("node", name)) nodes.Insert(*node);
  }
  if (!nodes.empty()) return nodes;
  return absl::NotFoundError(fmt::format("{} shows no NUMA node", root.Describe(kFolder)));
}

// The kernel's list of online nodes: its order is that of the distance rows. "possible" says
// nothing about what there is. Where the list is missing or unusable: every folder.
NumaMask ReadOnlineNodes(const FileTree& root, const NumaMask& folders, Diagnostics& diagnostics) {
  const std::string path = std::string(kFolder) + "/online";
  const absl::StatusOr<NumaMask> online = ReadNumaList(root, path);
  if (!online.ok()) {
    if (!absl::IsNotFound(online.status())) NoteUnreadable(path, online.status(), diagnostics);
    return folders;
  }
  const NumaMask absent = *online - folders;
  if (!absent.empty() || online->empty()) {
    diagnostics.push_back({.code = "NumaNodesAbsent",
                           .subject = "",
                           .message = fmt::format("the kernel lists the NUMA nodes \"{}\" as "
                                                  "online, but shows {}",
                                                  online->ToString(), folders.ToString())});
  }
  return online->Intersects(folders) ? *online : folders;
}

// The CPUs that have a link in the node's folder, for nodes without a list and a mask.
CpuSet CpusByLinks(const FileTree& root, int node) {
  CpuSet cpus;
  const absl::StatusOr<std::vector<std::string>> names = root.List(NodeFolder(node));
  if (!names.ok()) return cpus;
  for (const std::string& name : *names) {
    if (const std::optional<int> cpu = NumberAfter("cpu", name)) cpus.Insert(*cpu);
  }
  return cpus;
}

CpuSet ReadNodeCpus(const FileTree& root, int node, const CpuSet& online_cpus,
                    Diagnostics& diagnostics) {
  const std::string list = NodeFolder(node) + "/cpulist";
  const absl::StatusOr<CpuSet> read = ReadCpuListOrMask(root, list, NodeFolder(node) + "/cpumap");
  if (!read.ok()) NoteUnreadable(list, read.status(), diagnostics);
  const CpuSet cpus = read.ok() ? *read : CpusByLinks(root, node);
  const CpuSet not_online = cpus - online_cpus;
  if (!not_online.empty()) {
    diagnostics.push_back(
        {.code = "NumaCpusNotOnline",
         .subject = fmt::format("node {}", node),
         .message = fmt::format("the node lists the CPUs {}, of which {} are not online",
                                cpus.ToString(), not_online.ToString())});
  }
  return cpus & online_cpus;
}

// "Node 0 MemTotal:  8064400 kB" or "MemTotal: 8064400 kB", in bytes.
std::optional<std::int64_t> FindBytes(std::string_view meminfo, std::string_view key) {
  const std::size_t at = meminfo.find(key);
  if (at == std::string_view::npos) return std::nullopt;
  std::string_view line = meminfo.substr(at + key.size());
  line = line.substr(0, line.find('\n'));
  const std::size_t unit = line.find("kB");
  if (unit == std::string_view::npos) return std::nullopt;
  const std::optional<std::int64_t> kibibytes = ParseInteger(line.substr(0, unit));
  if (!kibibytes || *kibibytes < 0 || *kibibytes > kMaxKibibytes) return std::nullopt;
  return *kibibytes * 1024;
}

void ReadMemory(const FileTree& root, const std::string& path, NumaNode& node,
                Diagnostics& diagnostics) {
  const absl::StatusOr<std::string> meminfo = root.Read(path);
  if (!meminfo.ok()) return NoteUnreadable(path, meminfo.status(), diagnostics);
  node.memory_bytes = FindBytes(*meminfo, "MemTotal:");
  node.free_bytes = FindBytes(*meminfo, "MemFree:");
  if (node.memory_bytes) return;
  NoteUnreadable(path,
                 absl::InvalidArgumentError(
                     fmt::format("cannot understand {}: it has no MemTotal", root.Describe(path))),
                 diagnostics);
}

// "hugepages-2048kB" in bytes.
std::optional<std::int64_t> PageBytes(std::string_view name) {
  constexpr std::string_view kPrefix = "hugepages-";
  if (!name.starts_with(kPrefix) || !name.ends_with("kB")) return std::nullopt;
  name.remove_prefix(kPrefix.size());
  name.remove_suffix(2);
  const std::optional<std::int64_t> kibibytes = ParseInteger(name);
  if (!kibibytes || *kibibytes <= 0 || *kibibytes > kMaxKibibytes) return std::nullopt;
  return *kibibytes * 1024;
}

// A node need not have the folder, nor every size in it: nodes without memory, sizes reserved on
// other nodes only. That is no fault.
void ReadHugePages(const FileTree& root, const std::string& folder, NumaNode& node,
                   Diagnostics& diagnostics) {
  const absl::StatusOr<std::vector<std::string>> names = root.List(folder);
  if (!names.ok()) {
    if (!absl::IsNotFound(names.status())) NoteUnreadable(folder, names.status(), diagnostics);
    return;
  }
  std::map<std::int64_t, HugePages> by_size;
  for (const std::string& name : *names) {
    const std::optional<std::int64_t> bytes = PageBytes(name);
    if (!bytes) continue;
    const std::string size_folder = folder + "/" + name;
    const auto total = ReadInteger(root, size_folder + "/nr_hugepages");
    const auto free = ReadInteger(root, size_folder + "/free_hugepages");
    if (!total.ok() || !free.ok() || *total < 0 || *free < 0) {
      const absl::Status cause =
          !total.ok()  ? total.status()
          : !free.ok() ? free.status()
                       : absl::InvalidArgumentError(root.Describe(size_folder) +
                                                    " has a negative number of pages");
      NoteUnreadable(size_folder, cause, diagnostics);
      continue;
    }
    by_size[*bytes] = {.page_bytes = *bytes, .total = *total, .free = *free};
  }
  for (const auto& [bytes, pages] : by_size) node.huge_pages.push_back(pages);
}

// The numbers of a distance row; nothing if one of them is none.
std::optional<std::vector<int>> ParseRow(std::string_view text) {
  using base::kBlank;
  std::vector<int> row;
  for (std::size_t at = text.find_first_not_of(kBlank); at != std::string_view::npos;
       at = text.find_first_not_of(kBlank, at)) {
    const std::size_t end = std::min(text.find_first_of(kBlank, at), text.size());
    const std::optional<std::int64_t> value = ParseInteger(text.substr(at, end - at));
    if (!value || *value < 0 || *value > std::numeric_limits<int>::max()) return std::nullopt;
    row.push_back(static_cast<int>(*value));
    at = end;
  }
  return row;
}

// Value k of a row is the distance to the k-th online node, which need not be node k.
void ReadDistances(const FileTree& root, const NumaMask& online, const NumaMask& shown,
                   NumaNode& node, Diagnostics& diagnostics) {
  const std::string path = NodeFolder(node.id) + "/distance";
  const absl::StatusOr<std::string> text = root.Read(path);
  if (!text.ok()) {
    if (shown.size() > 1) NoteUnreadable(path, text.status(), diagnostics);
    return;
  }
  const std::optional<std::vector<int>> row = ParseRow(*text);
  if (!row || row->size() != static_cast<std::size_t>(online.size())) {
    diagnostics.push_back(
        {.code = "DistancesMalformed",
         .subject = fmt::format("node {}", node.id),
         .message = fmt::format("\"{:.80}\" is no row of distances to the {} "
                                "online NUMA nodes",
                                text->substr(0, text->find('\n')), online.size())});
    return;
  }
  auto value = row->begin();
  for (const int other : online) {
    if (shown.Contains(other)) node.distances[other] = *value;
    ++value;
  }
}

}  // namespace

absl::StatusOr<std::vector<NumaNode>> ReadNumaNodes(const FileTree& root, const CpuSet& online_cpus,
                                                    Diagnostics& diagnostics) {
  ASSIGN_OR_RETURN(const NumaMask folders, ListNodeFolders(root));
  const NumaMask online = ReadOnlineNodes(root, folders, diagnostics);
  const NumaMask shown = online & folders;
  std::vector<NumaNode> nodes;
  for (const int id : shown) {
    NumaNode node;
    node.id = id;
    node.cpus = ReadNodeCpus(root, id, online_cpus, diagnostics);
    ReadMemory(root, NodeFolder(id) + "/meminfo", node, diagnostics);
    ReadHugePages(root, NodeFolder(id) + "/hugepages", node, diagnostics);
    ReadDistances(root, online, shown, node, diagnostics);
    nodes.push_back(std::move(node));
  }
  return nodes;
}

NumaNode ReadHostAsOneNode(const FileTree& root, const CpuSet& online_cpus,
                           Diagnostics& diagnostics) {
  NumaNode node;
  node.id = 0;
  node.cpus = online_cpus;
  node.distances = {{0, 10}};  // what the kernel itself calls local
  ReadMemory(root, "proc/meminfo", node, diagnostics);
  ReadHugePages(root, "sys/kernel/mm/hugepages", node, diagnostics);
  return node;
}

void SettleOverlaps(const FileTree& root, Topology& topology) {
  CpuSet seen;
  CpuSet twice;
  for (const NumaNode& node : topology.numa_nodes) {
    twice |= node.cpus & seen;
    seen |= node.cpus;
  }
  if (twice.empty()) return;
  std::map<int, NumaMask> linked;
  for (const NumaNode& node : topology.numa_nodes) {
    for (const int cpu : CpusByLinks(root, node.id) & node.cpus) linked[cpu].Insert(node.id);
  }
  for (Cpu& cpu : topology.cpus) {
    if (!twice.Contains(cpu.id)) continue;
    const auto nodes = linked.find(cpu.id);
    if (nodes != linked.end() && nodes->second.size() == 1) cpu.numa_node = nodes->second.First();
  }
}

}  // namespace hwinfo
