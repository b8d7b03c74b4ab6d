#include "kube/exec_plugin.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <map>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "base/status_macros.h"
#include "kube/base64.h"
#include "kube/json.h"

extern char** environ;  // NOLINT(readability-redundant-declaration)

namespace kube {
namespace {

using Steady = std::chrono::steady_clock;

constexpr std::chrono::minutes kPatience{5};  // somebody may have to log in in a browser
constexpr std::size_t kMaxOutput = std::size_t{1} << 20;

absl::Status Failed(const ExecPlugin& plugin, std::string_view why) {
  return absl::UnauthenticatedError(fmt::format("credential plugin {}: {}{}{}", plugin.command, why,
                                                plugin.install_hint.empty() ? "" : "\n",
                                                plugin.install_hint));
}

absl::StatusOr<std::string> ClusterInfo(const Config& config) {
  ASSIGN_OR_RETURN(const std::string authority, ReadPem(config.certificate_authority));
  return fmt::format(
      R"(,"cluster":{{"server":{},"tls-server-name":{},"insecure-skip-tls-verify":{},)"
      R"("certificate-authority-data":{},"proxy-url":{}}})",
      JsonQuote(config.server), JsonQuote(config.tls_server_name), config.insecure_skip_tls_verify,
      JsonQuote(EncodeBase64(authority)), JsonQuote(config.proxy_url));
}

// What the plugin is told, in KUBERNETES_EXEC_INFO.
absl::StatusOr<std::string> ExecInfo(const Config& config) {
  std::string cluster;
  if (config.exec->provide_cluster_info) {
    ASSIGN_OR_RETURN(cluster, ClusterInfo(config));
  }
  return fmt::format(R"({{"kind":"ExecCredential","apiVersion":{},"spec":{{"interactive":{}{}}}}})",
                     JsonQuote(config.exec->api_version), isatty(STDIN_FILENO) == 1, cluster);
}

absl::StatusOr<std::vector<std::string>> EnvironmentOf(const Config& config) {
  std::map<std::string, std::string> variables;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const std::size_t equals = text.find('=');
    if (equals != std::string::npos) variables[text.substr(0, equals)] = text.substr(equals + 1);
  }
  for (const auto& [name, value] : config.exec->environment) variables[name] = value;
  ASSIGN_OR_RETURN(variables["KUBERNETES_EXEC_INFO"], ExecInfo(config));
  std::vector<std::string> list;
  list.reserve(variables.size());
  for (const auto& [name, value] : variables) list.push_back(fmt::format("{}={}", name, value));
  return list;
}

std::vector<char*> Pointers(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  pointers.reserve(texts.size() + 1);
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

// A child and the end of the pipe that its standard output comes out of.
struct Child {
  pid_t pid = -1;
  int output = -1;
};

absl::StatusOr<Child> Spawn(const Config& config) {
  const ExecPlugin& plugin = *config.exec;
  ASSIGN_OR_RETURN(std::vector<std::string> variables, EnvironmentOf(config));
  std::vector<std::string> arguments = {plugin.command};
  arguments.insert(arguments.end(), plugin.arguments.begin(), plugin.arguments.end());
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return Failed(plugin, std::strerror(errno));
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  Child child{.output = ends[0]};
  const int error = posix_spawnp(&child.pid, plugin.command.c_str(), &actions, nullptr,
                                 Pointers(arguments).data(), Pointers(variables).data());
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  if (error == 0) return child;
  close(ends[0]);
  return Failed(plugin, fmt::format("cannot be run: {}", std::strerror(error)));
}

// Until the child closes its output; nothing if that took too long or was too much.
std::optional<std::string> ReadAll(int output) {
  const Steady::time_point until = Steady::now() + kPatience;
  std::string text;
  std::array<char, 4096> buffer{};
  while (text.size() <= kMaxOutput) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Steady::now()).count();
    pollfd wait{.fd = output, .events = POLLIN, .revents = 0};
    if (left <= 0 || poll(&wait, 1, static_cast<int>(left)) == 0) return std::nullopt;
    const ssize_t count = read(output, buffer.data(), buffer.size());
    if (count == 0) return text;
    if (count < 0 && errno != EINTR) return std::nullopt;
    if (count > 0) text.append(buffer.data(), static_cast<std::size_t>(count));
  }
  return std::nullopt;
}

// What it printed, once it has ended well.
absl::StatusOr<std::string> OutputOf(const ExecPlugin& plugin, const Child& child) {
  std::optional<std::string> output = ReadAll(child.output);
  close(child.output);
  if (!output) kill(child.pid, SIGKILL);
  int status = 0;
  while (waitpid(child.pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (!output) {
    return Failed(plugin, fmt::format("printed over {} MiB or was not done after {} minutes",
                                      kMaxOutput >> 20, kPatience.count()));
  }
  if (WIFSIGNALED(status))
    return Failed(plugin, fmt::format("died of signal {}", WTERMSIG(status)));
  if (WEXITSTATUS(status) != 0) {
    return Failed(plugin, fmt::format("failed with exit status {}", WEXITSTATUS(status)));
  }
  return *std::move(output);
}

}  // namespace

absl::StatusOr<PluginAnswer> RunPlugin(const Config& config) {
  const ExecPlugin& plugin = *config.exec;
  if (plugin.always_interactive && isatty(STDIN_FILENO) != 1) {
    return Failed(plugin, "it needs a terminal (interactiveMode Always), and there is none");
  }
  ASSIGN_OR_RETURN(const Child child, Spawn(config));
  ASSIGN_OR_RETURN(const std::string output, OutputOf(plugin, child));
  absl::StatusOr<PluginAnswer> answer = ParsePluginAnswer(output, plugin.api_version);
  if (!answer.ok()) return Failed(plugin, std::string(answer.status().message()));
  return answer;
}

absl::StatusOr<PluginAnswer> ParsePluginAnswer(std::string_view json, const std::string& version) {
  PluginAnswer answer;
  ASSIGN_OR_RETURN(const JsonObject root, JsonObject::Parse(json));
  ASSIGN_OR_RETURN(const std::string kind, root.Text("kind"));
  ASSIGN_OR_RETURN(const std::string own, root.Text("apiVersion"));
  if (kind != "ExecCredential" || own != version) {
    return absl::InvalidArgumentError(
        fmt::format("printed {:.80} {:.80} instead of {} ExecCredential", own, kind, version));
  }
  ASSIGN_OR_RETURN(const JsonObject status, root.Object("status"));
  ASSIGN_OR_RETURN(answer.token, status.Text("token"));
  ASSIGN_OR_RETURN(answer.certificate_pem, status.Text("clientCertificateData"));
  ASSIGN_OR_RETURN(answer.key_pem, status.Text("clientKeyData"));
  ASSIGN_OR_RETURN(const std::string expires, status.Text("expirationTimestamp"));
  if (!expires.empty()) {
    ASSIGN_OR_RETURN(answer.expires, base::ParseTime(expires));
  }
  if (answer.certificate_pem.empty() != answer.key_pem.empty()) {
    return absl::InvalidArgumentError("printed a certificate without its key, or a key alone");
  }
  if (answer.token.empty() && answer.certificate_pem.empty()) {
    return absl::InvalidArgumentError("printed neither a token nor a certificate");
  }
  return answer;
}

}  // namespace kube
