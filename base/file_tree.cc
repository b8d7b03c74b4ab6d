#include "base/file_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstring>
#include <utility>

#include "absl/status/status.h"
#include "base/status_macros.h"
#include "base/text.h"

namespace base {

// Owns one file descriptor.
class FileTree::Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  Descriptor& operator=(Descriptor&&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  int get() const { return fd_; }
  int Release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

namespace {

absl::Status FromErrno(int error, const std::string& action, const std::string& path) {
  const std::string message = fmt::format("cannot {} {}: {}", action, path, std::strerror(error));
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      return absl::NotFoundError(message);
    case EACCES:
    case EPERM:
      return absl::PermissionDeniedError(message);
    case ELOOP:
    case ENAMETOOLONG:
      return absl::InvalidArgumentError(message);
    case EMFILE:
    case ENFILE:
    case ENOMEM:
      return absl::ResourceExhaustedError(message);
    default:
      return absl::UnavailableError(message);
  }
}

std::string Relative(const std::string& path) {
  const std::size_t start = path.find_first_not_of('/');
  return start == std::string::npos ? "." : path.substr(start);
}

// openat2, or openat where the kernel or a seccomp filter has none.
int OpenBelow(int root, const std::string& path, int flags) {
  open_how how = {};
  how.flags = static_cast<__u64>(flags | O_CLOEXEC);
  how.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS;
  // EAGAIN: something anywhere on the machine was renamed or mounted while the kernel followed a
  // "..", which links of sysfs are full of. It cannot know then that the path stayed inside, and
  // leaves it to us to ask again.
  constexpr int kAttempts = 1000;
  long fd = -1;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    fd = syscall(SYS_openat2, root, path.c_str(), &how, sizeof how);
    if (fd >= 0 || errno != EAGAIN) break;
  }
  if (fd >= 0 || (errno != ENOSYS && errno != EPERM)) return static_cast<int>(fd);
  return openat(root, path.c_str(), flags | O_CLOEXEC);
}

FileInfo::Type TypeOf(mode_t mode) {
  if (S_ISREG(mode)) return FileInfo::Type::kRegular;
  if (S_ISDIR(mode)) return FileInfo::Type::kDirectory;
  if (S_ISSOCK(mode)) return FileInfo::Type::kSocket;
  return FileInfo::Type::kOther;
}

}  // namespace

FileTree::FileTree(std::string root, std::shared_ptr<const Descriptor> directory)
    : root_(std::move(root)), directory_(std::move(directory)) {}

absl::StatusOr<FileTree> FileTree::Open(const std::string& root) {
  const int fd = open(root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return FromErrno(errno, "open the directory", root);
  return FileTree(root, std::make_shared<const Descriptor>(fd));
}

std::string FileTree::Describe(const std::string& path) const {
  return root_ + (root_.ends_with('/') ? "" : "/") + Relative(path);
}

absl::StatusOr<FileTree::Descriptor> FileTree::OpenAt(const std::string& path, int flags) const {
  const int fd = OpenBelow(directory_->get(), Relative(path), flags);
  if (fd < 0) return FromErrno(errno, "open", Describe(path));
  return Descriptor(fd);
}

absl::StatusOr<std::string> FileTree::Read(const std::string& path, std::int64_t max_bytes) const {
  // O_NONBLOCK: a FIFO in a damaged tree must not stop us.
  ASSIGN_OR_RETURN(const Descriptor file, OpenAt(path, O_RDONLY | O_NONBLOCK | O_NOCTTY));
  struct stat status = {};
  if (fstat(file.get(), &status) != 0) return FromErrno(errno, "stat", Describe(path));
  if (!S_ISREG(status.st_mode)) {
    return absl::InvalidArgumentError(
        fmt::format("cannot read {}: it is no regular file", Describe(path)));
  }
  std::string content;
  std::array<char, 4096> buffer;
  while (true) {
    const ssize_t got = read(file.get(), buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return FromErrno(errno, "read", Describe(path));
    if (got == 0) return content;
    content.append(buffer.data(), static_cast<std::size_t>(got));
    if (static_cast<std::int64_t>(content.size()) > max_bytes) {
      return absl::ResourceExhaustedError(
          fmt::format("cannot read {}: it is larger than {} bytes", Describe(path), max_bytes));
    }
  }
}

absl::StatusOr<std::string> FileTree::ReadTrimmed(const std::string& path) const {
  ASSIGN_OR_RETURN(std::string content, Read(path));
  const std::size_t last = content.find_last_not_of(kBlank);
  content.resize(last == std::string::npos ? 0 : last + 1);
  return content;
}

absl::StatusOr<std::vector<std::string>> FileTree::List(const std::string& path) const {
  ASSIGN_OR_RETURN(Descriptor directory, OpenAt(path, O_RDONLY | O_DIRECTORY));
  DIR* stream = fdopendir(directory.get());
  if (stream == nullptr) return FromErrno(errno, "list", Describe(path));
  directory.Release();  // closedir closes it
  const std::unique_ptr<DIR, int (*)(DIR*)> closer(stream, closedir);
  std::vector<std::string> names;
  errno = 0;
  while (const dirent* entry = readdir(stream)) {
    const std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(name);
    errno = 0;
  }
  if (errno != 0) return FromErrno(errno, "list", Describe(path));
  std::ranges::sort(names);
  return names;
}

absl::StatusOr<std::string> FileTree::ReadLink(const std::string& path) const {
  ASSIGN_OR_RETURN(const Descriptor link, OpenAt(path, O_PATH | O_NOFOLLOW));
  std::string target(PATH_MAX, '\0');
  const ssize_t length = readlinkat(link.get(), "", target.data(), target.size());
  if (length < 0) return FromErrno(errno, "read the link", Describe(path));
  target.resize(static_cast<std::size_t>(length));
  return target;
}

absl::StatusOr<std::string> FileTree::RealPath(const std::string& path) const {
  const auto where = [](int fd) -> std::string {
    std::string target(PATH_MAX, '\0');
    const std::string self = fmt::format("/proc/self/fd/{}", fd);
    const ssize_t length = readlink(self.c_str(), target.data(), target.size());
    target.resize(length < 0 ? 0 : static_cast<std::size_t>(length));
    return target;
  };
  ASSIGN_OR_RETURN(const Descriptor file, OpenAt(path, O_PATH));
  const std::string top = where(directory_->get());
  const std::string real = where(file.get());
  if (top.empty() || real.empty()) {
    return absl::UnavailableError(
        fmt::format("cannot resolve {}: /proc/self/fd is not readable", Describe(path)));
  }
  const std::string prefix = top.ends_with('/') ? top : top + "/";
  if (real == top) return std::string();
  if (!real.starts_with(prefix)) {
    return absl::InvalidArgumentError(fmt::format("{} leads out of {}", Describe(path), root_));
  }
  return real.substr(prefix.size());
}

absl::StatusOr<FileInfo> FileTree::Stat(const std::string& path) const {
  ASSIGN_OR_RETURN(const Descriptor file, OpenAt(path, O_PATH));
  struct stat status = {};
  if (fstat(file.get(), &status) != 0) return FromErrno(errno, "stat", Describe(path));
  const auto since_epoch = std::chrono::seconds(status.st_mtim.tv_sec) +
                           std::chrono::nanoseconds(status.st_mtim.tv_nsec);
  return FileInfo{.type = TypeOf(status.st_mode),
                  .inode = status.st_ino,
                  .bytes = status.st_size,
                  .modified = Time(std::chrono::floor<std::chrono::milliseconds>(since_epoch))};
}

}  // namespace base
