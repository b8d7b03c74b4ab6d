#include "hwinfo/enforced.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <deque>
#include <string_view>
#include <tuple>
#include <utility>

#include "absl/status/status.h"
#include "base/status_macros.h"
#include "hwinfo/cgroup_names.h"
#include "hwinfo/numa_stat.h"

namespace hwinfo {
namespace {

constexpr char kTop[] = "sys/fs/cgroup";
// Bounds of the walk, far above any node's (a few thousand cgroups, nine levels).
constexpr int kMaxDepth = 24;
constexpr int kMaxFolders = 50'000;

// Where a controller's tree is mounted.
struct Mount {
  std::string path;
  bool v2 = false;
};
struct Mounts {
  std::optional<Mount> cpuset;
  std::optional<Mount> memory;
};

bool HasWord(std::string_view text, std::string_view word, std::string_view separators) {
  while (!text.empty()) {
    const std::string_view part = text.substr(0, text.find_first_of(separators));
    if (part == word) return true;
    text.remove_prefix(std::min(text.size(), part.size() + 1));
  }
  return false;
}

// v1 has a folder for each controller or group of them ("cpu,cpuacct"); in the hybrid layout those
// that v1 does not use are in the folder "unified".
absl::StatusOr<Mounts> FindMounts(const base::FileTree& root) {
  const Mount whole = {.path = kTop, .v2 = true};
  if (root.Exists(fmt::format("{}/cgroup.controllers", kTop))) {
    return Mounts{.cpuset = whole, .memory = whole};
  }
  ASSIGN_OR_RETURN(const std::vector<std::string> names, root.List(kTop));
  const Mount unified = {.path = fmt::format("{}/unified", kTop), .v2 = true};
  const std::string in_unified =
      root.ReadTrimmed(unified.path + "/cgroup.controllers").value_or("");
  const auto find = [&](std::string_view controller) -> std::optional<Mount> {
    for (const std::string& name : names) {
      if (!HasWord(name, controller, ",")) continue;
      return Mount{.path = fmt::format("{}/{}", kTop, name), .v2 = false};
    }
    if (HasWord(in_unified, controller, " \n")) return unified;
    return std::nullopt;
  };
  Mounts mounts = {.cpuset = find("cpuset"), .memory = find("memory")};
  if (mounts.cpuset || mounts.memory) return mounts;
  return absl::NotFoundError(
      fmt::format("{} has no cgroups with cpuset or memory", root.Describe(kTop)));
}

// One walk over the cgroups of a machine.
class Walk {
 public:
  Walk(const base::FileTree& root, Mounts mounts) : root_(root), mounts_(std::move(mounts)) {}
  Enforced Run();

 private:
  struct Folder {
    std::string path;  // below the mount; "" is the mount itself
    int depth = 0;
    bool of_pods = false;
  };

  const Mount& Tree() const { return mounts_.cpuset ? *mounts_.cpuset : *mounts_.memory; }
  void Visit(const Folder& folder);
  void ReadPod(const std::string& path, const std::string& uid);
  // Nothing if the container went away while it was read.
  std::optional<ContainerCgroup> ReadContainer(const std::string& path, const std::string& uid,
                                               const std::string& id);
  template <class Set>
  std::optional<Set> ReadEffective(const std::string& path, std::string_view kind);
  void ReadResident(const std::string& path, ContainerCgroup& container);
  void NoteFolder(const std::string& path) {
    found_.folders.push_back(path.empty() ? Tree().path : fmt::format("{}/{}", Tree().path, path));
  }
  void Report(const std::string& path, std::string message) {
    found_.diagnostics.push_back({"CgroupUnreadable", path, std::move(message)});
  }

  const base::FileTree& root_;
  const Mounts mounts_;
  std::deque<Folder> queue_;
  int folders_ = 0;
  Enforced found_;
};

std::string Join(std::string_view folder, std::string_view name) {
  return folder.empty() ? std::string(name) : fmt::format("{}/{}", folder, name);
}

std::string_view ParentOf(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return path.substr(0, slash == std::string_view::npos ? 0 : slash);
}

// The set in force: the kernel's own answer; v1 kernels before 3.17 have the plain file alone. With
// no file at this level (the controller is not enabled here) the nearest ancestor's set holds.
template <class Set>
std::optional<Set> Walk::ReadEffective(const std::string& path, std::string_view kind) {
  if (!mounts_.cpuset) return std::nullopt;
  const std::vector<std::string> files =
      mounts_.cpuset->v2 ? std::vector<std::string>{fmt::format("cpuset.{}.effective", kind)}
                         : std::vector<std::string>{fmt::format("cpuset.effective_{}", kind),
                                                    fmt::format("cpuset.{}", kind)};
  for (std::string_view level = path;; level = ParentOf(level)) {
    for (const std::string& file : files) {
      const std::string name = fmt::format("{}/{}", mounts_.cpuset->path, Join(level, file));
      const absl::StatusOr<std::string> text = root_.ReadTrimmed(name);
      if (absl::IsNotFound(text.status())) continue;
      absl::StatusOr<Set> set = text.ok() ? Set::Parse(*text) : absl::StatusOr<Set>(text.status());
      if (set.ok()) return *std::move(set);
      Report(path, fmt::format("{}: {}", file, std::string(set.status().message())));
      return std::nullopt;
    }
    if (level.empty()) return std::nullopt;
  }
}

absl::StatusOr<std::map<int, std::int64_t>> ReadNumaStat(const base::FileTree& root,
                                                         const Mount& memory,
                                                         const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text,
                   root.Read(fmt::format("{}/{}/memory.numa_stat", memory.path, path)));
  return memory.v2 ? ParseNumaStat(text) : ParseNumaStatV1(text, sysconf(_SC_PAGESIZE));
}

void Walk::ReadResident(const std::string& path, ContainerCgroup& container) {
  if (!mounts_.memory) return;
  auto bytes = ReadNumaStat(root_, *mounts_.memory, path);
  container.resident_known = bytes.ok();
  if (bytes.ok()) {
    container.resident_bytes = *std::move(bytes);
  } else if (!absl::IsNotFound(bytes.status())) {
    Report(path, std::string(bytes.status().message()));
  }
}

std::optional<ContainerCgroup> Walk::ReadContainer(const std::string& path, const std::string& uid,
                                                   const std::string& id) {
  const std::size_t reports = found_.diagnostics.size();
  ContainerCgroup container;
  container.pod_uid = uid;
  container.container_id = id;
  // crun may keep the processes one level down, and set their limits there.
  const std::string inner = Join(path, "container");
  const bool nested = root_.Exists(fmt::format("{}/{}/cgroup.procs", Tree().path, inner));
  container.path = nested ? inner : path;
  container.cpus = ReadEffective<base::CpuSet>(container.path, "cpus");
  container.memory_nodes = ReadEffective<base::NumaMask>(container.path, "mems");
  ReadResident(path, container);
  // A container that ended meanwhile has no files any more, and its ancestors' sets are not its
  // own.
  const absl::StatusOr<base::FileInfo> still = root_.Stat(fmt::format("{}/{}", Tree().path, path));
  if (!absl::IsNotFound(still.status())) {
    NoteFolder(container.path);
    return container;
  }
  found_.diagnostics.resize(reports);
  return std::nullopt;
}

void Walk::ReadPod(const std::string& path, const std::string& uid) {
  const absl::StatusOr<std::vector<std::string>> names =
      root_.List(fmt::format("{}/{}", Tree().path, path));
  if (!names.ok()) {
    if (!absl::IsNotFound(names.status())) Report(path, std::string(names.status().message()));
    return;
  }
  NoteFolder(path);
  for (const std::string& name : *names) {
    const auto id = ContainerIdOf(name);
    if (!id) continue;
    if (auto container = ReadContainer(Join(path, name), uid, *id)) {
      found_.containers.push_back(*std::move(container));
    }
  }
}

void Walk::Visit(const Folder& folder) {
  const absl::StatusOr<std::vector<std::string>> names =
      root_.List(fmt::format("{}/{}", Tree().path, folder.path));
  if (!names.ok()) {
    // NotFound also stands for "this is a file" and for a cgroup that has just gone.
    if (!absl::IsNotFound(names.status())) {
      Report(folder.path, std::string(names.status().message()));
    }
    return;
  }
  if (folder.of_pods || folder.path.empty()) NoteFolder(folder.path);
  for (const std::string& name : *names) {
    if (IsControlFile(name)) continue;
    const std::string path = Join(folder.path, name);
    const auto uid = folder.of_pods ? PodUidOf(name) : std::nullopt;
    if (uid) {
      ReadPod(path, *uid);
      continue;
    }
    const bool top_of_pods = !folder.of_pods && IsAllPods(name);
    if (top_of_pods && !found_.all_pods_cpus) {
      found_.all_pods_cpus = ReadEffective<base::CpuSet>(path, "cpus");
      found_.all_pods_memory_nodes = ReadEffective<base::NumaMask>(path, "mems");
    }
    if (folder.depth < kMaxDepth) {
      queue_.push_back(
          {.path = path, .depth = folder.depth + 1, .of_pods = folder.of_pods || top_of_pods});
    }
  }
}

Enforced Walk::Run() {
  // Level by level, so that a deep tree beside the pods cannot use up the bound before them.
  queue_.push_back({});
  while (!queue_.empty()) {
    if (++folders_ > kMaxFolders) {
      found_.diagnostics.push_back(
          {"CgroupWalkCut", "",
           fmt::format("there are more than {} cgroups: containers may be missing", kMaxFolders)});
      break;
    }
    const Folder folder = std::move(queue_.front());
    queue_.pop_front();
    Visit(folder);
  }
  std::ranges::sort(found_.containers, [](const ContainerCgroup& a, const ContainerCgroup& b) {
    return std::tie(a.pod_uid, a.container_id, a.path) <
           std::tie(b.pod_uid, b.container_id, b.path);
  });
  std::ranges::sort(found_.folders);
  std::ranges::sort(found_.diagnostics);
  return std::move(found_);
}

}  // namespace

absl::StatusOr<Enforced> ReadEnforced(const base::FileTree& root) {
  ASSIGN_OR_RETURN(Mounts mounts, FindMounts(root));
  return Walk(root, std::move(mounts)).Run();
}

}  // namespace hwinfo
