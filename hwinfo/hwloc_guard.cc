#include "hwinfo/hwloc_guard.h"

#include <fmt/format.h>
#include <fts.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <memory>

#include "base/file_tree.h"
#include "base/status_macros.h"

namespace hwinfo {
namespace {

// The largest recorded machine that we know of has 60,000 files.
constexpr int kMaxFiles = 2'000'000;

bool IsKernels(const std::string& path) {
  struct statfs status = {};
  return statfs(path.c_str(), &status) == 0 &&
         (status.f_type == SYSFS_MAGIC || status.f_type == PROC_SUPER_MAGIC);
}

absl::Status CheckEntry(const FTSENT& entry) {
  struct stat status = *entry.fts_statp;
  if (entry.fts_info == FTS_SL && stat(entry.fts_path, &status) != 0) return absl::OkStatus();
  if (S_ISDIR(status.st_mode)) return absl::OkStatus();
  if (!S_ISREG(status.st_mode)) {
    return absl::InvalidArgumentError(
        fmt::format("{} is no regular file; such a tree cannot be shown to hwloc", entry.fts_path));
  }
  if (status.st_size > base::FileTree::kMaxFileBytes) {
    return absl::ResourceExhaustedError(fmt::format(
        "{} has {} bytes; such a tree cannot be shown to hwloc", entry.fts_path, status.st_size));
  }
  return absl::OkStatus();
}

absl::Status CheckBelow(const std::string& folder) {
  std::string start = folder;
  std::array<char*, 2> paths = {start.data(), nullptr};
  const std::unique_ptr<FTS, int (*)(FTS*)> walk(
      fts_open(paths.data(), FTS_PHYSICAL | FTS_NOCHDIR, nullptr), fts_close);
  if (walk == nullptr) return absl::OkStatus();
  for (int files = 0; const FTSENT* entry = fts_read(walk.get()); ++files) {
    if (files > kMaxFiles) {
      return absl::ResourceExhaustedError(
          fmt::format("{} has more than {} files", folder, kMaxFiles));
    }
    const int kind = entry->fts_info;
    if (kind != FTS_F && kind != FTS_SL && kind != FTS_DEFAULT) continue;
    RETURN_IF_ERROR(CheckEntry(*entry));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckTreeForHwloc(const std::string& root) {
  if (IsKernels(root + "/sys")) return absl::OkStatus();
  for (const char* folder : {"sys", "proc", "run/udev/data", "var/run/hwloc"}) {
    const std::string path = root + "/" + folder;
    if (!IsKernels(path)) RETURN_IF_ERROR(CheckBelow(path));
  }
  return absl::OkStatus();
}

}  // namespace hwinfo
