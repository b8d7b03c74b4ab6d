#include "kube/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>

#include "absl/status/status.h"
#include "base/status_macros.h"
#include "base/text.h"

namespace kube {
namespace {

constexpr std::size_t kMaxBytes = std::size_t{1} << 20;

std::string ValueOf(const Environment& environment, const std::string& name) {
  const auto found = environment.find(name);
  return found == environment.end() ? "" : found->second;
}

}  // namespace

absl::StatusOr<std::string> ReadSmallFile(const std::string& path) {
  std::error_code error;
  const auto type = std::filesystem::status(path, error).type();
  if (type == std::filesystem::file_type::not_found) {
    return absl::NotFoundError(fmt::format("{}: no such file", path));
  }
  // A FIFO or a device would hold us up.
  if (!error && type != std::filesystem::file_type::regular) {
    return absl::InvalidArgumentError(fmt::format("{} is no file", path));
  }
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    return absl::PermissionDeniedError(
        fmt::format("{} cannot be opened: {}", path, std::strerror(errno)));
  }
  std::string content;
  std::array<char, 4096> piece{};  // more than most of them have
  while (file && content.size() <= kMaxBytes) {
    file.read(piece.data(), piece.size());
    content.append(piece.data(), static_cast<std::size_t>(file.gcount()));
  }
  if (file.bad()) return absl::UnavailableError(fmt::format("{} cannot be read", path));
  if (content.size() > kMaxBytes) {
    return absl::ResourceExhaustedError(fmt::format("{} is larger than 1 MiB", path));
  }
  return content;
}

absl::StatusOr<std::string> ReadPem(const Pem& pem) {
  if (!pem.text.empty() || pem.file.empty()) return pem.text;
  ASSIGN_OR_RETURN(std::string content, ReadSmallFile(pem.file));
  if (base::Trim(content).empty()) return absl::InvalidArgumentError(pem.file + " is empty");
  return content;
}

absl::StatusOr<Config> InClusterConfig(const Environment& environment, const std::string& folder) {
  const std::string host = ValueOf(environment, "KUBERNETES_SERVICE_HOST");
  const std::string port = ValueOf(environment, "KUBERNETES_SERVICE_PORT");
  if (host.empty() || port.empty()) {
    return absl::NotFoundError(
        "KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set: this is no pod");
  }
  Config config;
  config.server = "https://" + ToString(HostPort{.host = host, .port = port});
  ASSIGN_OR_RETURN(const Url url, ParseUrl(config.server));
  config.proxy_url = ProxyFor(url, environment);
  config.token_file = folder + "/token";
  config.certificate_authority.file = folder + "/ca.crt";
  for (const std::string& file : {config.token_file, config.certificate_authority.file}) {
    if (const absl::Status read = ReadSmallFile(file).status(); !read.ok()) {
      return absl::FailedPreconditionError(
          fmt::format("the pod's service account: {}", std::string(read.message())));
    }
  }
  // Absent where the token is projected by hand.
  const absl::StatusOr<std::string> own_namespace = ReadSmallFile(folder + "/namespace");
  if (own_namespace.ok()) config.default_namespace = std::string(base::Trim(*own_namespace));
  return config;
}

std::vector<std::string> KubeconfigFiles(const Environment& environment) {
  const std::string list = ValueOf(environment, "KUBECONFIG");
  if (list.empty()) return {ValueOf(environment, "HOME") + "/.kube/config"};
  std::vector<std::string> files;
  std::size_t begin = 0;
  while (begin <= list.size()) {
    const std::size_t end = std::min(list.find(':', begin), list.size());
    if (end > begin) files.push_back(list.substr(begin, end - begin));
    begin = end + 1;
  }
  return files;
}

}  // namespace kube
