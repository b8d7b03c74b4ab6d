#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "base/status_macros.h"
#include "base/text.h"
#include "kube/base64.h"
#include "kube/config.h"
#include "kube/json.h"
#include "kube/yaml.h"

namespace kube {
namespace {

// One file: its text stays with what was read from it.
struct File {
  std::string folder;
  std::string json;
  JsonObject root;
};

// An entry of one of the three lists, and the folder that its relative paths start at.
struct Entry {
  JsonObject object;
  std::string folder;
};

absl::Status NotDone(const JsonObject& object, const std::string& field, std::string_view instead) {
  return absl::FailedPreconditionError(
      fmt::format("{} is not supported: {}", object.Path(field), instead));
}

absl::StatusOr<File> ParseFile(const std::string& text, std::string folder) {
  File file{.folder = std::move(folder), .json = {}, .root = {}};
  ASSIGN_OR_RETURN(std::vector<std::string> documents, YamlToJson(text));
  if (documents.size() > 1) return absl::InvalidArgumentError("holds more than one document");
  if (documents.empty()) return file;
  file.json = std::move(documents[0]);
  return file;
}

// Apart from ParseFile because a JsonObject looks into the text where it is then.
absl::Status ReadRoots(std::vector<File>& files) {
  for (File& file : files) {
    if (file.json.empty()) continue;
    ASSIGN_OR_RETURN(file.root, JsonObject::Parse(file.json));
  }
  return absl::OkStatus();
}

// The entry {name: NAME, KIND: …} of the first file that has one.
absl::StatusOr<Entry> Find(const std::vector<File>& files, const std::string& kind,
                           const std::string& name) {
  for (const File& file : files) {
    ASSIGN_OR_RETURN(const std::vector<JsonObject> entries, file.root.Objects(kind + "s"));
    for (const JsonObject& entry : entries) {
      ASSIGN_OR_RETURN(const std::string own, entry.Text("name"));
      if (own != name) continue;
      ASSIGN_OR_RETURN(JsonObject object, entry.Object(kind));
      return Entry{std::move(object), file.folder};
    }
  }
  return absl::InvalidArgumentError(fmt::format("there is no {} \"{}\"", kind, name));
}

absl::StatusOr<std::string> CurrentContext(const std::vector<File>& files) {
  for (const File& file : files) {
    ASSIGN_OR_RETURN(std::string name, file.root.Text("current-context"));
    if (!name.empty()) return name;
  }
  return absl::InvalidArgumentError("current-context is not set, and no context was named");
}

std::string InFolder(const std::string& folder, const std::string& path) {
  if (path.empty() || std::filesystem::path(path).is_absolute()) return path;
  return (std::filesystem::path(folder) / path).string();
}

// FIELD is a path, FIELD-data the content in base64, which wins.
absl::StatusOr<Pem> ReadPemField(const Entry& entry, const std::string& field) {
  Pem pem;
  ASSIGN_OR_RETURN(const std::string data, entry.object.Text(field + "-data"));
  ASSIGN_OR_RETURN(const std::string file, entry.object.Text(field));
  if (data.empty()) {
    pem.file = InFolder(entry.folder, file);
    return pem;
  }
  const std::optional<std::string> decoded = DecodeBase64(data);
  if (!decoded) {
    return absl::InvalidArgumentError(entry.object.Path(field + "-data") + ": is no base64");
  }
  pem.text = *decoded;
  return pem;
}

absl::StatusOr<std::string> ReadProxy(const JsonObject& cluster, const Url& server,
                                      const Environment& environment) {
  ASSIGN_OR_RETURN(std::string proxy, cluster.Text("proxy-url"));
  if (!proxy.empty()) return proxy;
  return ProxyFor(server, environment);
}

absl::Status ReadCluster(const Entry& entry, Caller caller, const Environment& environment,
                         Config& config) {
  const JsonObject& cluster = entry.object;
  ASSIGN_OR_RETURN(config.server, cluster.Text("server"));
  const absl::StatusOr<Url> url = ParseUrl(config.server);
  if (!url.ok()) {
    return absl::InvalidArgumentError(
        fmt::format("{}: {}", cluster.Path("server"), std::string(url.status().message())));
  }
  ASSIGN_OR_RETURN(config.tls_server_name, cluster.Text("tls-server-name"));
  ASSIGN_OR_RETURN(config.certificate_authority, ReadPemField(entry, "certificate-authority"));
  ASSIGN_OR_RETURN(config.insecure_skip_tls_verify, cluster.Flag("insecure-skip-tls-verify"));
  ASSIGN_OR_RETURN(config.proxy_url, ReadProxy(cluster, *url, environment));
  if (config.insecure_skip_tls_verify && caller == Caller::kDaemon) {
    return NotDone(cluster, "insecure-skip-tls-verify",
                   "a daemon sends its token only to a server whose certificate it can verify");
  }
  return absl::OkStatus();
}

absl::Status RefuseUnsupported(const JsonObject& user, Caller caller) {
  if (user.Has("auth-provider")) {
    return NotDone(user, "auth-provider", "Kubernetes removed it in 1.26; use exec or a token");
  }
  if (user.Has("username") || user.Has("password")) {
    return NotDone(user, "username", "API servers since 1.19 take no passwords");
  }
  for (const char* field : {"as", "as-uid", "as-groups", "as-user-extra"}) {
    if (user.Has(field)) return NotDone(user, field, "nobody is impersonated");
  }
  if (user.Has("exec") && caller == Caller::kDaemon) {
    return NotDone(user, "exec",
                   "a daemon runs no program to get a credential; give it a token file or a client "
                   "certificate");
  }
  return absl::OkStatus();
}

absl::StatusOr<std::map<std::string, std::string>> ReadVariables(const JsonObject& exec) {
  std::map<std::string, std::string> variables;
  ASSIGN_OR_RETURN(const std::vector<JsonObject> list, exec.Objects("env"));
  for (const JsonObject& variable : list) {
    ASSIGN_OR_RETURN(const std::string name, variable.Text("name"));
    ASSIGN_OR_RETURN(variables[name], variable.Text("value"));
  }
  return variables;
}

absl::StatusOr<ExecPlugin> ReadExec(const JsonObject& exec, const std::string& folder) {
  ExecPlugin plugin;
  ASSIGN_OR_RETURN(plugin.api_version, exec.Text("apiVersion"));
  static constexpr std::array<std::string_view, 2> kVersions = {
      "client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1"};
  if (std::ranges::find(kVersions, plugin.api_version) == kVersions.end()) {
    return absl::FailedPreconditionError(
        fmt::format("{}: \"{:.80}\" is neither client.authentication.k8s.io/v1 nor v1beta1",
                    exec.Path("apiVersion"), plugin.api_version));
  }
  ASSIGN_OR_RETURN(plugin.command, exec.Text("command"));
  if (plugin.command.empty()) {
    return absl::InvalidArgumentError(exec.Path("command") + ": is empty");
  }
  // A bare name is looked up in PATH.
  if (plugin.command.find('/') != std::string::npos) {
    plugin.command = InFolder(folder, plugin.command);
  }
  ASSIGN_OR_RETURN(plugin.arguments, exec.Texts("args"));
  ASSIGN_OR_RETURN(plugin.environment, ReadVariables(exec));
  ASSIGN_OR_RETURN(const std::string mode, exec.Text("interactiveMode"));
  plugin.always_interactive = mode == "Always";
  ASSIGN_OR_RETURN(plugin.provide_cluster_info, exec.Flag("provideClusterInfo"));
  ASSIGN_OR_RETURN(plugin.install_hint, exec.Text("installHint"));
  return plugin;
}

absl::Status ReadUser(const Entry& entry, Caller caller, Config& config) {
  const JsonObject& user = entry.object;
  RETURN_IF_ERROR(RefuseUnsupported(user, caller));
  ASSIGN_OR_RETURN(config.client_certificate, ReadPemField(entry, "client-certificate"));
  ASSIGN_OR_RETURN(config.client_key, ReadPemField(entry, "client-key"));
  if (config.client_certificate.empty() != config.client_key.empty()) {
    return absl::InvalidArgumentError(
        "users: client-certificate and client-key go together, and one is missing");
  }
  ASSIGN_OR_RETURN(config.token, user.Text("token"));
  ASSIGN_OR_RETURN(const std::string token_file, user.Text("tokenFile"));
  config.token_file = InFolder(entry.folder, token_file);
  if (!user.Has("exec")) return absl::OkStatus();
  ASSIGN_OR_RETURN(const JsonObject exec, user.Object("exec"));
  ASSIGN_OR_RETURN(config.exec, ReadExec(exec, entry.folder));
  return absl::OkStatus();
}

absl::StatusOr<Config> Resolve(std::vector<File> files, std::string name, Caller caller,
                               const Environment& environment) {
  RETURN_IF_ERROR(ReadRoots(files));
  if (name.empty()) {
    ASSIGN_OR_RETURN(name, CurrentContext(files));
  }
  ASSIGN_OR_RETURN(const Entry context, Find(files, "context", name));
  ASSIGN_OR_RETURN(const std::string cluster_name, context.object.Text("cluster"));
  ASSIGN_OR_RETURN(const std::string user_name, context.object.Text("user"));
  Config config;
  ASSIGN_OR_RETURN(config.default_namespace, context.object.Text("namespace"));
  ASSIGN_OR_RETURN(const Entry cluster, Find(files, "cluster", cluster_name));
  RETURN_IF_ERROR(ReadCluster(cluster, caller, environment, config));
  if (!user_name.empty()) {  // a server may let in everybody
    ASSIGN_OR_RETURN(const Entry user, Find(files, "user", user_name));
    RETURN_IF_ERROR(ReadUser(user, caller, config));
  }
  return config;
}

absl::Status Named(const absl::Status& status, const std::string& name) {
  return {status.code(), fmt::format("{}: {}", name, std::string(status.message()))};
}

}  // namespace

absl::StatusOr<Config> ParseKubeconfig(const std::string& text, const std::string& folder,
                                       const std::string& context, Caller caller,
                                       const Environment& environment) {
  std::vector<File> files;
  ASSIGN_OR_RETURN(File file, ParseFile(text, folder));
  files.push_back(std::move(file));
  return Resolve(std::move(files), context, caller, environment);
}

absl::StatusOr<Config> LoadKubeconfig(const std::vector<std::string>& files,
                                      const std::string& context, Caller caller,
                                      const Environment& environment) {
  std::vector<File> parsed;
  std::string names;
  for (const std::string& path : files) {
    const absl::StatusOr<std::string> text = ReadSmallFile(path);
    if (absl::IsNotFound(text.status()) && files.size() > 1) continue;  // as kubectl
    if (!text.ok()) return text.status();
    absl::StatusOr<File> file =
        ParseFile(*text, std::filesystem::absolute(path).parent_path().string());
    if (!file.ok()) return Named(file.status(), path);
    parsed.push_back(*std::move(file));
    names += names.empty() ? path : ", " + path;
  }
  absl::StatusOr<Config> config = Resolve(std::move(parsed), context, caller, environment);
  if (!config.ok()) return Named(config.status(), names);
  return config;
}

}  // namespace kube
