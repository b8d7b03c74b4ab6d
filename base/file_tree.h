#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"

namespace base {

// What a name in the tree is, links followed.
struct FileInfo {
  enum class Type { kRegular, kDirectory, kSocket, kOther };
  Type type = Type::kOther;
  std::uint64_t inode = 0;
  std::int64_t bytes = 0;
  Time modified;
  bool operator==(const FileInfo&) const = default;
};

// A directory we read facts from: "/" in production, a recorded machine in tests. Read-only.
// Paths are relative to it, with or without a leading "/". Links, absolute ones too, are resolved
// inside the tree (openat2 with RESOLVE_IN_ROOT; on kernels before 5.6 absolute links lead out).
// Copies share the open root. Safe for concurrent use.
//
// Errors of all calls: NotFound (no such name), PermissionDenied, InvalidArgument (a link loop, or
// a name that is not what was asked for: a FIFO or device where a file is meant), ResourceExhausted
// (larger than allowed), Unavailable (the kernel could not read it, as sysfs says for parts that
// are offline). Each message has the whole path and the cause.
class FileTree {
 public:
  static constexpr std::int64_t kMaxFileBytes = std::int64_t{8} << 20;

  static absl::StatusOr<FileTree> Open(const std::string& root);

  absl::StatusOr<std::string> Read(const std::string& path,
                                   std::int64_t max_bytes = kMaxFileBytes) const;
  // Read without trailing white space and NULs: for the one-line files of sysfs.
  absl::StatusOr<std::string> ReadTrimmed(const std::string& path) const;
  // Names in a directory, sorted, without "." and "..".
  absl::StatusOr<std::vector<std::string>> List(const std::string& path) const;
  // The text of a link.
  absl::StatusOr<std::string> ReadLink(const std::string& path) const;
  // Where a name really is, as a path in the tree without a leading "/":
  // "sys/devices/pci0000:17/…".
  absl::StatusOr<std::string> RealPath(const std::string& path) const;
  absl::StatusOr<FileInfo> Stat(const std::string& path) const;
  bool Exists(const std::string& path) const { return Stat(path).ok(); }

  const std::string& root() const { return root_; }
  // The path as a person would write it: root and path joined.
  std::string Describe(const std::string& path) const;

 private:
  class Descriptor;
  FileTree(std::string root, std::shared_ptr<const Descriptor> directory);
  absl::StatusOr<Descriptor> OpenAt(const std::string& path, int flags) const;

  std::string root_;
  std::shared_ptr<const Descriptor> directory_;
};

}  // namespace base
