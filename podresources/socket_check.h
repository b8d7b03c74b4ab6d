#pragma once

#include <sys/types.h>
#include <time.h>

#include <chrono>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

// A unix socket looked at before gRPC does, because gRPC calls all of it "failed to connect".
namespace podresources {

// Which socket file it is. The time belongs to it: file systems give a freed inode number away
// again at once, often to the very next socket.
struct SocketIdentity {
  dev_t device = 0;
  ino_t inode = 0;
  time_t changed_seconds = 0;
  long changed_nanoseconds = 0;
  bool operator==(const SocketIdentity&) const = default;
};

// Errors: NotFound (nothing there), PermissionDenied (a folder on the way), InvalidArgument (no
// socket, or a path that cannot be one's). Each names the path and what may be wrong.
absl::StatusOr<SocketIdentity> IdentifySocket(const std::string& path);

// OK if something accepts connections. The errors of IdentifySocket, and Unavailable (nobody
// listens: the file is left over; or too busy), PermissionDenied (file mode, or SELinux, if the
// file `selinux_enforce` says that it is enforcing).
absl::Status TryConnect(const std::string& path,
                        const std::string& selinux_enforce = "/sys/fs/selinux/enforce");

// OK if the listener speaks HTTP/2 or says nothing before the time is over; InvalidArgument, with
// the first of its bytes, if it says something else.
absl::Status CheckSpeaksHttp2(const std::string& path, std::chrono::milliseconds patience);

}  // namespace podresources
