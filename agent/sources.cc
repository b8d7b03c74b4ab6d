#include "agent/sources.h"

#include <fmt/format.h>

#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/status_macros.h"

namespace agent {
namespace {

std::string Join(const std::string& root, std::string_view path) {
  while (path.starts_with('/')) path.remove_prefix(1);
  return fmt::format("{}{}{}", root, root.ends_with('/') ? "" : "/", path);
}

// Anything that is there and is no socket is taken for recorded replies; what is not there is left
// to the client, which says so.
bool IsRecording(const std::string& path) {
  std::error_code ignored;
  const std::filesystem::file_status status = std::filesystem::status(path, ignored);
  return std::filesystem::exists(status) && !std::filesystem::is_socket(status);
}

// Stands for a kubelet whose socket cannot be found in its tree.
class Unreachable : public podresources::Client {
 public:
  explicit Unreachable(absl::Status why) : why_(std::move(why)) {}
  absl::StatusOr<podresources::Assignments> Read() override { return why_; }
  absl::StatusOr<podresources::Pod> Get(const std::string& /*namespace_name*/,
                                        const std::string& /*name*/) override {
    return why_;
  }

 private:
  const absl::Status why_;
};

// The socket's path, of which neither links nor ".." lead out of the tree: outside is another
// machine's kubelet, this host's.
absl::StatusOr<std::string> SocketInTree(const base::FileTree& files, const std::string& root_dir) {
  ASSIGN_OR_RETURN(const std::string real,
                   files.RealPath(Join(root_dir, "pod-resources/kubelet.sock")));
  return Join(files.root(), real);
}

bool IsHalfOfAChange(const Answer& answer) {
  const podresources::KubeletState& state = answer.state;
  if (state.memory && podresources::IsHalfOfAChange(*state.memory)) return true;
  if (!state.cpu || !answer.assignments.ok() || !answer.assignments->allocatable) return false;
  return podresources::IsHalfOfAChange(*state.cpu, answer.assignments->allocatable->cpus);
}

}  // namespace

Answer AskKubelet(podresources::Client& client,
                  const std::function<podresources::KubeletState()>& read_state, int readings,
                  base::Clock& clock) {
  Answer answer;
  for (int reading = 1;; ++reading) {
    const std::string before = read_state().fingerprint;
    answer.assignments = client.Read();
    answer.state = read_state();
    answer.settled = answer.state.fingerprint == before && !IsHalfOfAChange(answer);
    if (answer.settled || !answer.assignments.ok() || reading == readings) return answer;
    clock.Sleep(kReadingPause);
  }
}

absl::StatusOr<Sources> OpenSources(const Options& options) {
  Sources sources;
  sources.hardware = {.root = options.root, .xml = options.topology_xml};
  sources.podresources = options.podresources;
  sources.kubelet_config = options.kubelet_config;
  sources.node_name = options.node_name;
  sources.excluded_resources = {options.excluded_resources.begin(),
                                options.excluded_resources.end()};
  if (options.topology_xml && !options.root_given) {
    if (!options.kubelet_config) return sources;
    return absl::InvalidArgumentError("--kubelet-config is read below --root: give --root as well");
  }
  ASSIGN_OR_RETURN(sources.files, base::FileTree::Open(options.root));
  return sources;
}

std::string AskedPath(const Sources& sources, const podresources::KubeletConfig& config) {
  if (sources.podresources) return *sources.podresources;
  if (!sources.files) return "";
  return Join(Join(sources.files->root(), config.root_dir), "pod-resources/kubelet.sock");
}

std::unique_ptr<podresources::Client> OpenClient(const Sources& sources,
                                                 const podresources::KubeletConfig& config,
                                                 podresources::ConnectOptions options,
                                                 base::Clock& clock) {
  std::string path = AskedPath(sources, config);
  if (path.empty()) return nullptr;
  if (!sources.podresources && sources.files->root() != "/") {
    absl::StatusOr<std::string> inside = SocketInTree(*sources.files, config.root_dir);
    if (!inside.ok()) return std::make_unique<Unreachable>(inside.status());
    path = *std::move(inside);
  }
  if (IsRecording(path)) return podresources::Replay(path);
  options.socket = path;
  return podresources::Connect(std::move(options), clock);
}

}  // namespace agent
