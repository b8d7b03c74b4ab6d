#include "hwinfo/hwloc_guard.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fts.h>
#include <linux/magic.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <memory>

#include "base/file_tree.h"
#include "base/status_macros.h"
#include "hwinfo/sysfs_values.h"

namespace hwinfo {
namespace {

// The largest recorded machine that we know of has 60,000 files.
constexpr int kMaxFiles = 2'000'000;

constexpr rlim_t kChildSeconds = 3;  // of CPU time
constexpr unsigned kPatienceSeconds = 8;
constexpr rlim_t kChildBytes = rlim_t{256} << 20;  // beyond what the process has mapped

void Limit(__rlimit_resource resource, rlim_t value) {
  const rlimit limit = {.rlim_cur = value, .rlim_max = value};
  setrlimit(resource, &limit);
}

// Bounds the child, and keeps it silent whatever becomes of it.
void PrepareChild(rlim_t mapped_bytes) {
  Limit(RLIMIT_CORE, 0);
  Limit(RLIMIT_CPU, kChildSeconds);
  // CPU time does not pass while it waits for a FIFO's writer.
  signal(SIGALRM, SIG_DFL);
  alarm(kPatienceSeconds);
  if (mapped_bytes > 0) Limit(RLIMIT_AS, mapped_bytes + kChildBytes);
  for (const int crash : {SIGSEGV, SIGBUS, SIGFPE, SIGABRT}) signal(crash, SIG_DFL);
  const int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
  if (null < 0) return;
  dup2(null, STDOUT_FILENO);
  dup2(null, STDERR_FILENO);
}

// 0 if the kernel does not say.
rlim_t MappedBytes() {
  const absl::StatusOr<base::FileTree> root = base::FileTree::Open("/");
  const absl::StatusOr<std::string> statm =
      root.ok() ? root->Read("proc/self/statm") : root.status();
  if (!statm.ok()) return 0;
  const auto pages = ParseInteger(std::string_view(*statm).substr(0, statm->find(' ')));
  return pages ? static_cast<rlim_t>(*pages) * static_cast<rlim_t>(sysconf(_SC_PAGESIZE)) : 0;
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

bool IsKernels(const std::string& path) {
  struct statfs status = {};
  return statfs(path.c_str(), &status) == 0 &&
         (status.f_type == SYSFS_MAGIC || status.f_type == PROC_SUPER_MAGIC);
}

absl::Status CheckTreeForHwloc(const std::string& root) {
  for (const char* folder : {"sys", "proc", "run/udev/data", "var/run/hwloc"}) {
    const std::string path = root + "/" + folder;
    if (!IsKernels(path)) RETURN_IF_ERROR(CheckBelow(path));
  }
  return absl::OkStatus();
}

absl::Status TryInChild(const std::string& what, const std::function<void()>& attempt) {
  const rlim_t mapped_bytes = MappedBytes();
  const pid_t child = fork();
  if (child < 0) {
    return absl::UnavailableError(
        fmt::format("cannot try {} in a child process: {}", what, std::strerror(errno)));
  }
  if (child == 0) {
    PrepareChild(mapped_bytes);
    attempt();
    _exit(0);
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) {
      return absl::UnavailableError(
          fmt::format("cannot wait for the trial of {}: {}", what, std::strerror(errno)));
    }
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("{} makes hwloc crash, run for {} s, wait for {} s or use {} bytes of memory: "
                  "it is damaged",
                  what, kChildSeconds, kPatienceSeconds, kChildBytes));
}

}  // namespace hwinfo
