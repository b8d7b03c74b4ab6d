#include "agent/reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "agent/version.h"
#include "base/status_macros.h"
#include "hwinfo/device_id.h"
#include "hwinfo/enforced.h"
#include "hwinfo/read.h"
#include "podresources/container_names.h"
#include "podresources/kubelet_config.h"
#include "podresources/kubelet_process.h"
#include "podresources/kubelet_state.h"
#include "podresources/socket_check.h"

namespace agent {
namespace {

constexpr int kPatientReadings = 40;  // two seconds, see kReadingPause

// Every device id of the kubelet once: what it hands out, and what is held of what it no longer
// lists. Devices of DRA drivers are "pool/device" of their driver.
class DeviceJoin {
 public:
  DeviceJoin(const hwinfo::Topology& topology, const base::FileTree* root,
             const DraDevices& dra_devices)
      : topology_(topology), root_(root), dra_devices_(dra_devices) {}

  void Add(const std::vector<podresources::Device>& devices) {
    for (const podresources::Device& device : devices) {
      const Key key = {device.resource, device.id};
      if (found_.contains(key)) continue;
      found_[key].resolved = hwinfo::ResolveDeviceId(topology_, root_, device.resource, device.id);
    }
  }
  void Add(const std::vector<podresources::ClaimDevice>& devices) {
    for (const podresources::ClaimDevice& device : devices) {
      const Key key = {device.driver, fmt::format("{}/{}", device.pool, device.device)};
      if (found_.contains(key)) continue;
      const hwinfo::DraAttributes published = Published(device);
      found_[key].resolved =
          hwinfo::ResolveDraDevice(topology_, root_, device.driver, device.device, published);
      found_[key].claimed_node = published.numa_node;
    }
  }
  std::vector<placement::DeviceHardware> Take() && {
    std::vector<placement::DeviceHardware> joined;
    joined.reserve(found_.size());
    for (auto& [key, hardware] : found_) {
      hardware.resource = key.first;
      hardware.id = key.second;
      joined.push_back(std::move(hardware));
    }
    return joined;
  }

 private:
  using Key = std::pair<std::string, std::string>;

  hwinfo::DraAttributes Published(const podresources::ClaimDevice& device) const {
    const auto found =
        dra_devices_.find({.driver = device.driver, .pool = device.pool, .name = device.device});
    return found == dra_devices_.end() ? hwinfo::DraAttributes() : found->second;
  }

  const hwinfo::Topology& topology_;
  const base::FileTree* root_;
  const DraDevices& dra_devices_;
  std::map<Key, placement::DeviceHardware> found_;
};

std::vector<placement::DeviceHardware> ResolveDevices(const podresources::Assignments& assignments,
                                                      const podresources::KubeletState& state,
                                                      const hwinfo::Topology& topology,
                                                      const base::FileTree* root,
                                                      const DraDevices& dra_devices) {
  DeviceJoin join(topology, root, dra_devices);
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

// The files changed and the kubelet did not: its values are those that it has read. What was found
// about the files, that they are newer among it, is new.
void KeepValues(const podresources::KubeletConfig& before, podresources::KubeletConfig& now) {
  podresources::KubeletConfig kept = before;
  kept.looked_at = std::move(now.looked_at);
  kept.diagnostics = std::move(now.diagnostics);
  now = std::move(kept);
}

// The same values, of another run of the kubelet.
podresources::KubeletConfig OfRun(const podresources::KubeletConfig& values,
                                  const podresources::KubeletConfig& run) {
  podresources::KubeletConfig config = values;
  config.pid = run.pid;
  config.started_at = run.started_at;
  config.start_ticks = run.start_ticks;
  config.version = run.version;
  config.looked_at = run.looked_at;
  config.diagnostics = run.diagnostics;
  return config;
}

// A part that can no longer be read stays as it was and says so, once.
void NoteUnreadable(const std::string& code, const absl::Status& status, base::Diagnostics& to) {
  const base::Diagnostic note{code, "", std::string(status.message())};
  if (std::ranges::find(to, note) == to.end()) to.push_back(note);
}

}  // namespace

Reader::Reader(Sources sources, ReaderOptions options, base::Clock& clock)
    : sources_(std::move(sources)), options_(std::move(options)), clock_(clock) {
  facts_.node_name = sources_.node_name;
  facts_.agent_version = kVersion;
  facts_.excluded_resources = sources_.excluded_resources;
}

// The kubelet is asked for its configuration first: it may answer while the rest is read.
absl::Status Reader::Start() {
  const base::Instant begin = clock_.Steady();
  if (sources_.files) {
    RETURN_IF_ERROR(ReadConfig());
    TakeConfigz(configured_run_, {});
    hardware_fingerprint_ = hwinfo::FingerprintHardware(*sources_.files);
  }
  ASSIGN_OR_RETURN(facts_.topology, hwinfo::Read(sources_.hardware));
  hardware_checked_ = hardware_read_ = clock_.Steady();
  if (sources_.files) {
    ReadCgroups();
    AwaitConfigz();
  }
  AwaitPods(begin + kFirstPatience);
  Look look;
  TakeWhatApiServerSays(look);
  AskKubelet(look);
  HasNewDevices();
  ResolveDevices();
  return absl::OkStatus();
}

Look Reader::Again(const Hints& hints) {
  Look look;
  if (sources_.files) FollowConfig(hints, look);
  TakeWhatApiServerSays(look);
  AskKubelet(look);
  if (sources_.files) FollowCgroups(hints, look);
  FollowHardware(hints, look.kubelet_changed && HasNewDevices(), look);
  if (look.changed) ResolveDevices();
  return look;
}

bool Reader::IsDue(base::Instant& last, std::chrono::milliseconds interval) {
  const base::Instant now = clock_.Steady();
  if (now - last < interval) return false;
  last = now;
  return true;
}

// Hardware.

void Reader::FollowHardware(const Hints& hints, bool new_devices, Look& look) {
  const bool check = IsDue(hardware_checked_, kCheapInterval) || hints.anything;
  bool read = IsDue(hardware_read_, kHardwareInterval) || new_devices;
  if (check && sources_.files) {
    std::string fingerprint = hwinfo::FingerprintHardware(*sources_.files);
    read = read || fingerprint != hardware_fingerprint_;
    hardware_fingerprint_ = std::move(fingerprint);
  }
  if (!read) return;
  hardware_read_ = clock_.Steady();
  absl::StatusOr<hwinfo::Topology> topology = hwinfo::Read(sources_.hardware);
  if (!topology.ok()) {
    NoteUnreadable("HardwareUnreadable", topology.status(), facts_.topology.diagnostics);
    look.changed = true;
    return;
  }
  look.changed = look.changed || *topology != facts_.topology;
  facts_.topology = *std::move(topology);
}

// Whether the kubelet has a device that it had not before: hardware or its driver may be new, too.
bool Reader::HasNewDevices() {
  std::set<std::string> devices;
  if (facts_.assignments.ok() && facts_.assignments->allocatable) {
    for (const podresources::Device& device : facts_.assignments->allocatable->devices) {
      devices.insert(fmt::format("{} {}", device.resource, device.id));
    }
  }
  const bool has_new = !std::ranges::includes(known_devices_, devices);
  known_devices_.merge(devices);
  return has_new;
}

void Reader::ResolveDevices() {
  if (!facts_.assignments.ok()) return;
  const bool recorded = sources_.hardware.xml || !sources_.files;
  const bool published = dra_devices_ != nullptr && dra_devices_->ok();
  const DraDevices none;
  facts_.device_hardware = agent::ResolveDevices(*facts_.assignments, facts_.state, facts_.topology,
                                                 recorded ? nullptr : &*sources_.files,
                                                 published ? **dra_devices_ : none);
}

// The kubelet's configuration.

absl::Status Reader::ReadConfig() {
  podresources::KubeletConfigOptions options = {.config_file = sources_.kubelet_config};
  if (configz_ != nullptr && configz_->ok()) options.configz = **configz_;
  ASSIGN_OR_RETURN(facts_.config, podresources::ReadKubeletConfig(*sources_.files, options));
  config_checked_ = clock_.Steady();
  config_fingerprint_ = FingerprintConfig();
  const KubeletRun run = CurrentRun();
  if (run != configured_run_) run_noticed_ = config_checked_;
  configured_run_ = run;
  GoByLastWord();
  if (configz_ != nullptr && !configz_->ok() && !goes_by_last_word_) {
    NoteUnreadable("ConfigzUnreadable", configz_->status(), facts_.config.diagnostics);
  }
  TakeVersion();
  return absl::OkStatus();
}

void Reader::FollowConfig(const Hints& hints, Look& look) {
  const KubeletRun run = CurrentRun();
  const bool restarted = run != configured_run_;
  const bool told = TakeConfigz(run, {});
  const bool waited = goes_by_last_word_ && !MayStillSay();
  const bool check = IsDue(config_checked_, kCheapInterval) || hints.config || hints.anything;
  look.changed = TakeVersion() || look.changed;
  const bool same_files = !check || FingerprintConfig() == config_fingerprint_;
  if (!restarted && !told && !waited && same_files) return;
  const podresources::KubeletConfig before = facts_.config;
  if (const absl::Status status = ReadConfig(); !status.ok()) {
    NoteUnreadable("KubeletConfigUnreadable", status, facts_.config.diagnostics);
    configured_run_ = run;
    config_fingerprint_ = FingerprintConfig();
  } else if (!restarted && !waited && !run.process.empty() && !(told && configz_->ok())) {
    KeepValues(before, facts_.config);
  }
  look.changed = look.changed || facts_.config != before;
}

// What has been read is the kubelet's own word or what its files and flags say. The latter may say
// less or something else, and for a moment after a restart it would look as if that were new.
void Reader::GoByLastWord() {
  goes_by_last_word_ = false;
  if (configz_ != nullptr && configz_->ok()) {
    last_word_ = facts_.config;
    return;
  }
  const bool is_away = by_files_ && by_files_->pid && !facts_.config.pid;  // with its flags
  if (!is_away) {
    const bool same = by_files_ && OfRun(*by_files_, facts_.config) == facts_.config;
    by_files_ = facts_.config;
    goes_by_last_word_ = last_word_ && same && MayStillSay();
    if (!goes_by_last_word_) last_word_.reset();
  }
  if (last_word_) facts_.config = OfRun(*last_word_, facts_.config);
}

// One that refuses will not; one that cannot be reached may be about to listen.
bool Reader::MayStillSay() const {
  if (configz_ != nullptr && !absl::IsUnavailable(configz_->status())) return false;
  return clock_.Steady() - run_noticed_ < kFirstPatience;
}

// Whether the kubelet of this run has given an answer that it had not given before.
bool Reader::TakeConfigz(const KubeletRun& run, std::chrono::milliseconds patience) {
  if (!options_.configz) return false;
  auto answer = options_.configz(run, patience);
  const bool is_new = answer != nullptr && answer != configz_;
  configz_ = std::move(answer);
  return is_new;
}

// So that the first observation has the policies in force rather than those of files.
void Reader::AwaitConfigz() {
  TakeConfigz(configured_run_, kFirstPatience);
  if (configz_ == nullptr) return;
  if (const absl::Status status = ReadConfig(); !status.ok()) {
    NoteUnreadable("KubeletConfigUnreadable", status, facts_.config.diagnostics);
  }
}

void Reader::AwaitPods(base::Instant until) {
  constexpr std::chrono::milliseconds kStep{10};
  while (options_.pods && options_.pods() == nullptr && clock_.Steady() < until) {
    clock_.Sleep(kStep);
  }
}

// The kubelet says which version it is in the Node object alone.
bool Reader::TakeVersion() {
  const std::string version = options_.kubelet_version ? options_.kubelet_version() : "";
  if (version.empty() || facts_.config.version.value == version) return false;
  facts_.config.version = {version, podresources::ConfigSource::kNode, "Node"};
  return true;
}

std::string Reader::FingerprintConfig() const {
  std::string fingerprint;
  for (const std::string& path : facts_.config.looked_at) {
    const absl::StatusOr<base::FileInfo> info = sources_.files->Stat(path);
    fingerprint += info.ok() ? fmt::format("{}:{}:{};", info->inode, info->bytes,
                                           info->modified.time_since_epoch().count())
                             : "-;";
  }
  return fingerprint;
}

KubeletRun Reader::CurrentRun() const {
  KubeletRun run;
  const std::optional<int> pid = facts_.config.pid;
  if (pid && sources_.files) {
    const auto ticks = podresources::StartTicks(*sources_.files, *pid);
    if (ticks) run.process = fmt::format("{}@{}", *pid, *ticks);
  }
  const auto socket = podresources::IdentifySocket(AskedPath(sources_, facts_.config));
  if (socket.ok()) {
    run.socket = fmt::format("{}:{}:{}.{:09}", socket->device, socket->inode,
                             socket->changed_seconds, socket->changed_nanoseconds);
  }
  return run;
}

std::optional<std::chrono::milliseconds> Reader::KubeletAge() {
  if (facts_.config.started_at) return clock_.Now() - *facts_.config.started_at;
  const auto socket = podresources::IdentifySocket(AskedPath(sources_, facts_.config));
  if (!socket.ok()) return std::nullopt;
  return clock_.Now() - base::Time(std::chrono::seconds(socket->changed_seconds));
}

// Cgroups.

void Reader::FollowCgroups(const Hints& hints, Look& look) {
  const bool hinted = hints.pods || hints.cpusets || hints.anything;
  if (!IsDue(cgroups_read_, kCgroupInterval) && !hinted && !look.kubelet_changed) return;
  const auto before = std::move(facts_.enforced);
  ReadCgroups();
  look.changed = look.changed || before.status() != facts_.enforced.status() ||
                 (before.ok() && *before != *facts_.enforced);
}

void Reader::ReadCgroups() {
  facts_.enforced = hwinfo::ReadEnforced(*sources_.files);
  AttachContainerNames(*sources_.files, facts_);
  cgroups_read_ = clock_.Steady();
}

// The kubelet.

void Reader::AskKubelet(Look& look) {
  if (client_ == nullptr) {
    client_ = OpenClient(sources_, facts_.config, options_.connect, clock_);
  }
  if (client_ == nullptr) return;
  run_ = CurrentRun();
  Answer answer = agent::AskKubelet(
      *client_, [this] { return ReadState(); }, options_.readings, clock_);
  look.kubelet_changed = answer.assignments.status() != facts_.assignments.status() ||
                         (answer.assignments.ok() && *answer.assignments != *facts_.assignments) ||
                         answer.settled != facts_.settled || answer.state != facts_.state;
  look.changed = look.changed || look.kubelet_changed;
  facts_.assignments = std::move(answer.assignments);
  facts_.state = std::move(answer.state);
  facts_.settled = answer.settled;
  facts_.observed_at = clock_.Now();
  // The next one looks for the socket anew: it may be at another place in the tree by then.
  if (!facts_.assignments.ok()) client_ = nullptr;
}

void Reader::TakeWhatApiServerSays(Look& look) {
  KnownPods pods = options_.pods ? options_.pods() : nullptr;
  KnownDraDevices dra_devices = options_.dra_devices ? options_.dra_devices() : nullptr;
  absl::Status node_refusal = options_.node_refusal ? options_.node_refusal() : absl::OkStatus();
  if (pods == pods_ && dra_devices == dra_devices_ && node_refusal == node_refusal_) return;
  pods_ = std::move(pods);
  dra_devices_ = std::move(dra_devices);
  node_refusal_ = std::move(node_refusal);
  look.changed = true;
  facts_.diagnostics.clear();
  facts_.api_pods.reset();
  if (!node_refusal_.ok()) NoteUnreadable("NodeUnreadable", node_refusal_, facts_.diagnostics);
  if (pods_ != nullptr && pods_->ok()) facts_.api_pods = **pods_;
  if (pods_ != nullptr && !pods_->ok()) {
    NoteUnreadable("NodePodsUnreadable", pods_->status(), facts_.diagnostics);
  }
  // A cluster that does not serve them has no such devices.
  if (dra_devices_ != nullptr && absl::IsPermissionDenied(dra_devices_->status())) {
    NoteUnreadable("ResourceSlicesUnreadable", dra_devices_->status(), facts_.diagnostics);
  }
}

// Files are parsed only if one is another file than before.
podresources::KubeletState Reader::ReadState() {
  if (!sources_.files) return {};
  const podresources::KubeletConfig& config = facts_.config;
  if (podresources::FingerprintKubeletState(*sources_.files, config.root_dir,
                                            config.pod_logs_dir) == state_.fingerprint) {
    return state_;
  }
  state_ = podresources::ReadKubeletState(*sources_.files, config.root_dir, config.pod_logs_dir);
  return state_;
}

Places Reader::places() const {
  Places places = {.kubelet_dir = facts_.config.root_dir,
                   .pod_logs_dir = facts_.config.pod_logs_dir,
                   .config = facts_.config.looked_at,
                   .cgroups = {}};
  if (facts_.enforced.ok()) places.cgroups = facts_.enforced->folders;
  return places;
}

absl::StatusOr<placement::Facts> Gather(const Sources& sources, base::Clock& clock) {
  Reader reader(sources, {.connect = {}, .readings = kPatientReadings}, clock);
  RETURN_IF_ERROR(reader.Start());
  return std::move(reader.facts());
}

}  // namespace agent
