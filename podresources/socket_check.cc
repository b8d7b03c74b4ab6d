#include "podresources/socket_check.h"

#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <fstream>
#include <string_view>

#include "base/status_macros.h"

namespace podresources {
namespace {

constexpr std::string_view kOtherRoots =
    "the kubelet's root directory may be another: /var/lib/k0s/kubelet (k0s), "
    "/var/snap/microk8s/common/var/lib/kubelet (microk8s), or what --root-dir says (k3s and RKE2 "
    "keep /var/lib/kubelet); its socket is pod-resources/kubelet.sock in it";

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  Descriptor(Descriptor&& other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

std::string Cause(int error) {
  std::array<char, 128> buffer{};
  return strerror_r(error, buffer.data(), buffer.size());
}

// What is missing: the socket alone, or the folder too.
absl::Status Missing(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash);
  struct stat info {};
  if (slash != 0 && stat(folder.c_str(), &info) != 0) {
    return absl::NotFoundError(fmt::format(
        "no socket {0}: there is no folder {1}. No kubelet runs here, the host's {1} is not "
        "mounted, or {2}",
        path, folder, kOtherRoots));
  }
  return absl::NotFoundError(
      fmt::format("no socket {}: its folder is there. The kubelet does not run, the folder is not "
                  "the host's, or {}",
                  path, kOtherRoots));
}

absl::Status Refused(const std::string& path, const std::string& operation, int error,
                     const std::string& selinux_enforce) {
  std::string enforcing;
  std::ifstream(selinux_enforce) >> enforcing;
  if (enforcing == "1") {
    return absl::PermissionDeniedError(fmt::format(
        "cannot {} {}: {}. SELinux is enforcing here: container_t may not use the kubelet's socket "
        "under older policies; run as spc_t or container_device_plugin_t, or update "
        "container-selinux",
        operation, path, Cause(error)));
  }
  return absl::PermissionDeniedError(fmt::format(
      "cannot {} {}: {}. The kubelet's socket is for root only", operation, path, Cause(error)));
}

absl::Status ConnectError(const std::string& path, int error, const std::string& selinux_enforce) {
  switch (error) {
    case EACCES:
    case EPERM:
      return Refused(path, "connect to", error, selinux_enforce);
    case ENOENT:
      return Missing(path);
    case ECONNREFUSED:
      return absl::UnavailableError(
          fmt::format("nobody listens on {}: the socket file is stale, the kubelet has stopped or "
                      "is starting",
                      path));
    case EPROTOTYPE:
      return absl::InvalidArgumentError(fmt::format("{} is not a stream socket", path));
    default:
      return absl::UnavailableError(fmt::format("cannot connect to {}: {}", path, Cause(error)));
  }
}

struct Connection {
  Descriptor descriptor;
  int error;  // errno of the first thing that failed; 0 if connected
};

Connection ConnectTo(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof(address.sun_path) - 1);
  Connection connection{Descriptor(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)),
                        0};
  const int fd = connection.descriptor.get();
  if (fd < 0 || connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    connection.error = errno;
  }
  return connection;
}

// Waits for up to 9 bytes, which is an HTTP/2 frame's head; what came before the end or the time.
std::string ReadHead(int fd, std::chrono::milliseconds patience) {
  constexpr std::size_t kFrameHead = 9;
  const auto until = std::chrono::steady_clock::now() + patience;
  std::string head;
  while (head.size() < kFrameHead) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
    pollfd ready{.fd = fd, .events = POLLIN, .revents = 0};
    if (left.count() <= 0 || poll(&ready, 1, static_cast<int>(left.count())) <= 0) break;
    std::array<char, kFrameHead> buffer{};
    const ssize_t count = read(fd, buffer.data(), kFrameHead - head.size());
    if (count <= 0) break;
    head.append(buffer.data(), static_cast<std::size_t>(count));
  }
  return head;
}

// The first frame of an HTTP/2 server is SETTINGS (type 4) on stream 0.
bool IsSettingsFrame(std::string_view head) {
  return head.size() == 9 && head[3] == 4 && head.substr(5) == std::string_view("\0\0\0\0", 4);
}

std::string Printable(std::string_view bytes) {
  std::string text;
  for (const char c : bytes) text += c >= ' ' && c <= '~' ? c : '.';
  return text;
}

}  // namespace

absl::StatusOr<SocketIdentity> IdentifySocket(const std::string& path) {
  if (path.empty() || path.size() >= sizeof(sockaddr_un::sun_path)) {
    return absl::InvalidArgumentError(
        fmt::format("\"{}\" cannot be a socket's path: it has {} bytes, allowed are 1 to {}", path,
                    path.size(), sizeof(sockaddr_un::sun_path) - 1));
  }
  struct stat info {};
  if (stat(path.c_str(), &info) != 0) {
    if (errno == ENOENT || errno == ENOTDIR) return Missing(path);
    if (errno == EACCES) return Refused(path, "look at", errno, "/sys/fs/selinux/enforce");
    return absl::InvalidArgumentError(fmt::format("cannot look at {}: {}", path, Cause(errno)));
  }
  if (S_ISDIR(info.st_mode)) {
    return absl::InvalidArgumentError(
        fmt::format("{} is a folder, not a socket. Is it the socket's folder, or did a container "
                    "runtime make it because the socket was missing at mount time?",
                    path));
  }
  if (!S_ISSOCK(info.st_mode)) {
    return absl::InvalidArgumentError(fmt::format("{} is a file, not a socket", path));
  }
  return SocketIdentity{info.st_dev, info.st_ino, info.st_ctim.tv_sec, info.st_ctim.tv_nsec};
}

absl::Status TryConnect(const std::string& path, const std::string& selinux_enforce) {
  RETURN_IF_ERROR(IdentifySocket(path).status());
  const int error = ConnectTo(path).error;
  return error == 0 ? absl::OkStatus() : ConnectError(path, error, selinux_enforce);
}

absl::Status CheckSpeaksHttp2(const std::string& path, std::chrono::milliseconds patience) {
  const Connection connection = ConnectTo(path);
  if (connection.error != 0) return absl::OkStatus();
  const int fd = connection.descriptor.get();
  // The client's preface and an empty SETTINGS frame.
  constexpr std::string_view kHello("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0", 33);
  if (send(fd, kHello.data(), kHello.size(), MSG_NOSIGNAL) < 0) return absl::OkStatus();
  const std::string head = ReadHead(fd, patience);
  if (head.empty() || IsSettingsFrame(head)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("what answers on {} is no kubelet: it does not speak gRPC, its reply begins "
                  "\"{}\"",
                  path, Printable(head)));
}

}  // namespace podresources
