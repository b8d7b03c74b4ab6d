#include "agent/observe.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "agent/version.h"
#include "base/status_macros.h"
#include "hwinfo/device_id.h"
#include "hwinfo/enforced.h"
#include "podresources/container_names.h"

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

// Every device id of the kubelet once: what it hands out, and what is held of what it no longer
// lists. Devices of DRA drivers are "pool/device" of their driver.
class DeviceJoin {
 public:
  DeviceJoin(const hwinfo::Topology& topology, const base::FileTree* root)
      : topology_(topology), root_(root) {}

  void Add(const std::vector<podresources::Device>& devices) {
    for (const podresources::Device& device : devices) {
      const Key key = {device.resource, device.id};
      if (found_.contains(key)) continue;
      found_[key] = hwinfo::ResolveDeviceId(topology_, root_, device.resource, device.id);
    }
  }
  void Add(const std::vector<podresources::ClaimDevice>& devices) {
    for (const podresources::ClaimDevice& device : devices) {
      const Key key = {device.driver, fmt::format("{}/{}", device.pool, device.device)};
      if (found_.contains(key)) continue;
      found_[key] = hwinfo::ResolveDraDevice(topology_, root_, device.driver, device.device);
    }
  }
  std::vector<placement::DeviceHardware> Take() && {
    std::vector<placement::DeviceHardware> joined;
    joined.reserve(found_.size());
    for (auto& [key, resolved] : found_) {
      joined.push_back({.resource = key.first, .id = key.second, .resolved = std::move(resolved)});
    }
    return joined;
  }

 private:
  using Key = std::pair<std::string, std::string>;
  const hwinfo::Topology& topology_;
  const base::FileTree* root_;
  std::map<Key, hwinfo::ResolvedDevice> found_;
};

std::vector<placement::DeviceHardware> ResolveDevices(const podresources::Assignments& assignments,
                                                      const podresources::KubeletState& state,
                                                      const hwinfo::Topology& topology,
                                                      const base::FileTree* root) {
  DeviceJoin join(topology, root);
  if (assignments.allocatable) join.Add(assignments.allocatable->devices);
  for (const podresources::Pod& pod : assignments.pods) {
    for (const podresources::Container& container : pod.containers) {
      join.Add(container.devices);
      join.Add(container.claims);
    }
  }
  if (state.devices) {  // what finished init containers still hold
    for (const auto& [uid, containers] : state.devices->entries) {
      for (const auto& [name, devices] : containers) join.Add(devices);
    }
  }
  return std::move(join).Take();
}

// Where the names cannot be read, cgroups stay without them, and a diagnostic says so. A host that
// has no such folder runs no kubelet.
void AttachContainerNames(const base::FileTree& files, placement::Facts& facts) {
  auto names = podresources::ReadContainerNames(files);
  if (names.ok()) {
    facts.container_names = *std::move(names);
  } else if (facts.enforced.ok() && !absl::IsNotFound(names.status())) {
    facts.enforced->diagnostics.push_back(
        {"ContainerNamesUnreadable", "", std::string(names.status().message())});
  }
}

}  // namespace

Answer AskKubelet(podresources::Client& client,
                  const std::function<podresources::KubeletState()>& read_state) {
  Answer answer;
  podresources::KubeletState before = read_state();
  for (int reading = 0; reading < kReadings; ++reading) {
    answer.assignments = client.Read();
    answer.state = read_state();
    answer.settled = answer.state.fingerprint == before.fingerprint;
    if (answer.settled || !answer.assignments.ok()) break;
    before = answer.state;
  }
  return answer;
}

absl::StatusOr<Sources> OpenSources(const Options& options) {
  Sources sources;
  sources.hardware = {.root = options.root, .xml = options.topology_xml};
  sources.podresources = options.podresources;
  sources.kubelet_config = options.kubelet_config;
  sources.node_name = options.node_name;
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
                                                 base::Clock& clock) {
  std::string path = AskedPath(sources, config);
  if (path.empty()) return nullptr;
  if (!sources.podresources && sources.files->root() != "/") {
    absl::StatusOr<std::string> inside = SocketInTree(*sources.files, config.root_dir);
    if (!inside.ok()) return std::make_unique<Unreachable>(inside.status());
    path = *std::move(inside);
  }
  if (IsRecording(path)) return podresources::Replay(path);
  podresources::ConnectOptions options;
  options.socket = path;
  return podresources::Connect(std::move(options), clock);
}

absl::StatusOr<placement::Facts> Gather(const Sources& sources, base::Clock& clock) {
  placement::Facts facts;
  facts.node_name = sources.node_name;
  facts.agent_version = kVersion;
  ASSIGN_OR_RETURN(facts.topology, hwinfo::Read(sources.hardware));
  if (sources.files) {
    const podresources::KubeletConfigOptions options = {.config_file = sources.kubelet_config};
    ASSIGN_OR_RETURN(facts.config, podresources::ReadKubeletConfig(*sources.files, options));
    facts.enforced = hwinfo::ReadEnforced(*sources.files);
    AttachContainerNames(*sources.files, facts);
  }
  const std::unique_ptr<podresources::Client> client = OpenClient(sources, facts.config, clock);
  if (client != nullptr) {
    Answer answer = AskKubelet(*client, [&sources, &facts] {
      if (!sources.files) return podresources::KubeletState{};
      return podresources::ReadKubeletState(*sources.files, facts.config.root_dir,
                                            facts.config.pod_logs_dir);
    });
    facts.assignments = std::move(answer.assignments);
    facts.state = std::move(answer.state);
    facts.settled = answer.settled;
  }
  facts.observed_at = clock.Now();
  if (facts.assignments.ok()) {
    const base::FileTree* root = sources.hardware.xml || !sources.files ? nullptr : &*sources.files;
    facts.device_hardware = ResolveDevices(*facts.assignments, facts.state, facts.topology, root);
  }
  return facts;
}

}  // namespace agent
