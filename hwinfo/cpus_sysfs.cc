#include "hwinfo/cpus_sysfs.h"

#include <fmt/format.h>

#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "base/status_macros.h"
#include "hwinfo/sysfs_values.h"

namespace hwinfo {
namespace {

using base::CpuSet;

constexpr char kFolder[] = "sys/devices/system/cpu";

std::string CpuFolder(int cpu) { return fmt::format("{}/cpu{}", kFolder, cpu); }

absl::StatusOr<CpuSet> ListCpuFolders(const base::FileTree& root) {
  ASSIGN_OR_RETURN(const std::vector<std::string> names, root.List(kFolder));
  CpuSet cpus;
  for (const std::string& name : names) {
    if (const std::optional<int> cpu = NumberAfter("cpu", name)) cpus.Insert(*cpu);
  }
  return cpus;
}

// For kernels (and recordings) without an "online" file: an offline CPU has no topology.
CpuSet OnlineByFolders(const base::FileTree& root, const CpuSet& folders) {
  CpuSet with_topology;
  CpuSet not_switched_off;
  for (const int cpu : folders) {
    if (root.Exists(CpuFolder(cpu) + "/topology")) with_topology.Insert(cpu);
    const absl::StatusOr<std::int64_t> online = ReadInteger(root, CpuFolder(cpu) + "/online");
    if (!online.ok() || *online != 0) not_switched_off.Insert(cpu);
  }
  return with_topology.empty() ? not_switched_off : with_topology & not_switched_off;
}

CpuSet ReadOnline(const base::FileTree& root, const CpuSet& folders,
                  base::Diagnostics& diagnostics) {
  const std::string path = std::string(kFolder) + "/online";
  absl::StatusOr<CpuSet> online = ReadCpuList(root, path);
  if (online.ok() && online->empty()) {
    online = absl::InvalidArgumentError(root.Describe(path) + " names no CPU");
  }
  if (online.ok()) return *std::move(online);
  if (!absl::IsNotFound(online.status())) NoteUnreadable(path, online.status(), diagnostics);
  return OnlineByFolders(root, folders);
}

// A set that may be absent: isolated, present.
std::optional<CpuSet> ReadOptional(const base::FileTree& root, const std::string& name,
                                   base::Diagnostics& diagnostics) {
  const std::string path = std::string(kFolder) + "/" + name;
  absl::StatusOr<CpuSet> cpus = ReadCpuList(root, path);
  if (cpus.ok()) return *std::move(cpus);
  if (!absl::IsNotFound(cpus.status())) NoteUnreadable(path, cpus.status(), diagnostics);
  return std::nullopt;
}

// Reads what is in a CPU's own folder. Sets that several CPUs share are read once and given to all
// of them: a machine has thousands of CPUs, and every file costs.
class CpuReader {
 public:
  CpuReader(const base::FileTree& root, const CpuSet& online) : root_(root), online_(online) {
    for (const int id : online) {
      if (static_cast<std::size_t>(id) >= place_.size()) {
        place_.resize(static_cast<std::size_t>(id) + 1, -1);
      }
      place_[static_cast<std::size_t>(id)] = static_cast<int>(cpus_.size());
      cpus_.push_back({.id = id, .siblings = {}});
    }
  }

  std::vector<Cpu> Read(const CpuSet& folders, base::Diagnostics& diagnostics) {
    for (Cpu& cpu : cpus_) {
      if (!folders.Contains(cpu.id)) {
        Miss(cpu.id, absl::NotFoundError(root_.Describe(CpuFolder(cpu.id)) + " does not exist"));
        continue;
      }
      cpu.socket = ReadId(cpu.id, "physical_package_id");
      cpu.core = ReadId(cpu.id, "core_id");
      if (cpu.siblings.empty()) ReadSiblings(cpu.id);
      if (cpu.l3 < 0) ReadL3(cpu.id);
    }
    NameL3ById();
    for (Cpu& cpu : cpus_) cpu.siblings.Insert(cpu.id);
    if (!incomplete_.empty()) {
      diagnostics.push_back(
          {.code = "CpuTopologyUnknown",
           .subject = "",
           .message = fmt::format("the kernel does not say the socket, core or "
                                  "siblings of CPUs {}: {}",
                                  incomplete_.ToString(), std::string(first_cause_.message()))});
    }
    return std::move(cpus_);
  }

 private:
  void Miss(int cpu, const absl::Status& cause) {
    if (incomplete_.empty()) first_cause_ = cause;
    incomplete_.Insert(cpu);
  }

  // A socket or core id; -1 if the machine does not say, as kernels themselves write it.
  int ReadId(int cpu, const char* name) {
    const absl::StatusOr<std::int64_t> id =
        ReadInteger(root_, fmt::format("{}/topology/{}", CpuFolder(cpu), name));
    if (!id.ok()) Miss(cpu, id.status());
    if (!id.ok() || *id < 0 || *id > std::numeric_limits<int>::max()) return -1;
    return static_cast<int>(*id);
  }

  void ReadSiblings(int cpu) {
    const std::string folder = CpuFolder(cpu) + "/topology/";
    absl::StatusOr<CpuSet> siblings =
        ReadCpuListOrMask(root_, folder + "thread_siblings_list", folder + "thread_siblings");
    if (!siblings.ok()) {
      absl::StatusOr<CpuSet> core =
          ReadCpuListOrMask(root_, folder + "core_cpus_list", folder + "core_cpus");
      if (!core.ok()) return Miss(cpu, siblings.status());
      siblings = std::move(core);
    }
    CpuSet shown = *siblings & online_;
    shown.Insert(cpu);
    for (const int id : shown) {
      Cpu& sibling = At(id);
      if (sibling.siblings.empty()) sibling.siblings = shown;
    }
  }

  void ReadL3(int cpu) {
    const std::optional<int> index = FindL3(cpu);
    if (!index) return;
    const std::string folder = fmt::format("{}/cache/index{}/", CpuFolder(cpu), *index);
    const absl::StatusOr<CpuSet> shared =
        ReadCpuListOrMask(root_, folder + "shared_cpu_list", folder + "shared_cpu_map");
    CpuSet shown = shared.ok() ? *shared & online_ : CpuSet{};
    shown.Insert(cpu);
    for (const int id : shown) {
      Cpu& sharer = At(id);
      if (sharer.l3 < 0) sharer.l3 = shown.First();
    }
    const absl::StatusOr<std::int64_t> id = ReadInteger(root_, folder + "id");
    const bool usable = id.ok() && *id >= 0 && *id <= std::numeric_limits<int>::max();
    l3_ids_[At(cpu).l3] = usable ? static_cast<int>(*id) : -1;
  }

  // By the kernel's ids if all caches have one, as on x86 since Linux 4.11: mixed with ids of CPUs,
  // two caches could get the same name.
  void NameL3ById() {
    for (const auto& [first, id] : l3_ids_) {
      if (id < 0) return;
    }
    for (Cpu& cpu : cpus_) {
      if (cpu.l3 >= 0) cpu.l3 = l3_ids_[cpu.l3];
    }
  }

  // The index of a CPU's L3, tried first where the CPU before had it.
  std::optional<int> FindL3(int cpu) {
    const std::string folder = CpuFolder(cpu) + "/cache";
    const auto is_l3 = [&](int index) {
      const auto level = ReadInteger(root_, fmt::format("{}/index{}/level", folder, index));
      return level.ok() && *level == 3;
    };
    if (is_l3(usual_l3_index_)) return usual_l3_index_;
    const absl::StatusOr<std::vector<std::string>> names = root_.List(folder);
    if (!names.ok()) return std::nullopt;
    for (const std::string& name : *names) {
      const std::optional<int> index = NumberAfter("index", name);
      if (!index || *index == usual_l3_index_ || !is_l3(*index)) continue;
      usual_l3_index_ = *index;
      return index;
    }
    return std::nullopt;
  }

  Cpu& At(int id) { return cpus_[static_cast<std::size_t>(place_[static_cast<std::size_t>(id)])]; }

  const base::FileTree& root_;
  const CpuSet& online_;
  std::vector<Cpu> cpus_;
  std::vector<int> place_;     // by CPU id: its position in cpus_
  std::map<int, int> l3_ids_;  // by the lowest CPU of an L3: the kernel's id of it; -1 none
  int usual_l3_index_ = 3;
  CpuSet incomplete_;
  absl::Status first_cause_;
};

}  // namespace

absl::StatusOr<SysfsCpus> ReadCpus(const base::FileTree& root, base::Diagnostics& diagnostics) {
  ASSIGN_OR_RETURN(const CpuSet folders, ListCpuFolders(root));
  SysfsCpus result;
  result.online = ReadOnline(root, folders, diagnostics);
  if (result.online.empty()) {
    return absl::NotFoundError(fmt::format("{} shows no online CPU", root.Describe(kFolder)));
  }
  result.offline = ReadOptional(root, "present", diagnostics).value_or(folders) - result.online;
  result.isolated = ReadOptional(root, "isolated", diagnostics).value_or(CpuSet{});
  result.cpus = CpuReader(root, result.online).Read(folders, diagnostics);
  return result;
}

}  // namespace hwinfo
