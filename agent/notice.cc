#include "agent/notice.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>

#include "hwinfo/cgroup_names.h"

namespace agent {
namespace {

// Files are replaced by renaming (the kubelet's way) or written in place (a person's).
constexpr std::uint32_t kMask = IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO |
                                IN_CLOSE_WRITE | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR |
                                IN_MASK_ADD;

std::string Join(std::string_view folder, std::string_view name) {
  return fmt::format("{}{}{}", folder, folder.empty() || folder.ends_with('/') ? "" : "/", name);
}

std::pair<std::string, std::string> SplitLast(std::string_view path) {
  while (path.ends_with('/')) path.remove_suffix(1);
  const std::size_t slash = path.rfind('/');
  if (slash == std::string_view::npos) return {"", std::string(path)};
  return {std::string(path.substr(0, slash)), std::string(path.substr(slash + 1))};
}

// The cgroups inside a container are its own affair.
bool IsOfContainer(std::string_view folder) {
  const auto [parent, name] = SplitLast(folder);
  return name == "container" || hwinfo::ContainerIdOf(name).has_value();
}

bool IsStateFile(std::string_view name) {
  constexpr std::array<std::string_view, 3> kFiles = {"cpu_manager_state", "dra_manager_state",
                                                      "memory_manager_state"};
  return std::ranges::find(kFiles, name) != kFiles.end();
}

}  // namespace

struct Notice::Event {
  int watch = -1;
  std::uint32_t mask = 0;
  std::string_view name;
  bool Has(std::uint32_t bits) const { return (mask & bits) != 0; }
};

Hints& Hints::operator|=(const Hints& other) {
  kubelet |= other.kubelet;
  config |= other.config;
  pods |= other.pods;
  cpusets |= other.cpusets;
  anything |= other.anything;
  lost |= other.lost;
  return *this;
}

absl::StatusOr<std::unique_ptr<Notice>> Notice::Open(base::FileTree files) {
  const int wake = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (wake < 0) {
    return absl::ResourceExhaustedError(
        fmt::format("cannot wait for changes: eventfd: {}", std::strerror(errno)));
  }
  return std::unique_ptr<Notice>(new Notice(std::move(files), wake));
}

Notice::Notice(base::FileTree files, int wake) : files_(std::move(files)), wake_(wake) {
  OpenInotify();
}

bool Notice::OpenInotify() {
  inotify_ = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
  return inotify_ >= 0;
}

Notice::~Notice() {
  if (inotify_ >= 0) close(inotify_);
  close(wake_);
}

void Notice::Watch(const Places& places) {
  const bool anew = inotify_ < 0 && OpenInotify();
  if (places == places_ && all_cgroups_ && !stale_ && !anew) return;
  using Kind = Interest::Kind;
  wanted_ = {{places.kubelet_dir, {Kind::kKubelet, ""}},
             {Join(places.kubelet_dir, "device-plugins"), {Kind::kPlugins, ""}},
             {Join(places.kubelet_dir, "pod-resources"), {Kind::kSocket, ""}},
             {places.pod_logs_dir, {Kind::kPodLogs, ""}}};
  for (const std::string& path : places.config) {
    const absl::StatusOr<base::FileInfo> info = files_.Stat(path);
    if (info.ok() && info->type == base::FileInfo::Type::kDirectory) {
      wanted_.push_back({path, {Kind::kConfig, ""}});
    } else {
      auto [folder, name] = SplitLast(path);
      wanted_.push_back({std::move(folder), {Kind::kConfig, std::move(name)}});
    }
  }
  places_ = places;
  ArmFolders();
  ArmCgroups(places.cgroups);
}

void Notice::ArmFolders() {
  std::map<int, std::vector<Interest>> armed;
  folders_complete_ = true;
  for (const Wanted& wanted : wanted_) {
    const int watch = Arm(wanted, armed);
    const bool known = folders_.contains(watch) &&
                       std::ranges::find(folders_[watch], wanted.interest) != folders_[watch].end();
    if (!known && watch >= 0 && armed[watch].back() == wanted.interest) pending_.anything = true;
  }
  for (const auto& [watch, interests] : folders_) {
    if (!armed.contains(watch) && !cgroup_of_.contains(watch)) inotify_rm_watch(inotify_, watch);
  }
  folders_ = std::move(armed);
  stale_ = false;
}

int Notice::Arm(const Wanted& wanted, std::map<int, std::vector<Interest>>& armed) {
  Interest interest = wanted.interest;
  for (std::string folder = wanted.folder;;) {
    if (const int watch = AddWatch(folder); watch >= 0) {
      armed[watch].push_back(std::move(interest));
      return watch;
    }
    folders_complete_ = false;
    auto [parent, name] = SplitLast(folder);
    if (name.empty()) return -1;
    interest = {Interest::Kind::kArrival, std::move(name)};
    folder = std::move(parent);
  }
}

// inotify knows no root but "/", so that links of the tree are resolved first.
int Notice::AddWatch(const std::string& folder) {
  const absl::StatusOr<std::string> real = files_.RealPath(folder);
  if (!real.ok()) return -1;
  return inotify_add_watch(inotify_, files_.Describe(*real).c_str(), kMask);
}

void Notice::ArmCgroups(const std::vector<std::string>& folders) {
  std::map<std::string, int> armed;
  all_cgroups_ = cgroups_complete_ = true;
  for (const std::string& folder : folders) {
    const auto known = cgroups_.find(folder);
    const int watch = known != cgroups_.end() ? known->second : AddWatch(folder);
    if (watch < 0) {
      // It went away, and may be made anew, or the kernel grants no more watches.
      all_cgroups_ = false;
      cgroups_complete_ = cgroups_complete_ && !files_.Exists(folder);
      continue;
    }
    if (known == cgroups_.end()) pending_.cpusets = true;
    armed.emplace(folder, watch);
  }
  for (const auto& [folder, watch] : cgroups_) {
    if (armed.contains(folder)) continue;
    inotify_rm_watch(inotify_, watch);
    cgroup_of_.erase(watch);
  }
  for (const auto& [folder, watch] : armed) cgroup_of_[watch] = folder;
  cgroups_ = std::move(armed);
}

Hints Notice::Wait(base::Instant until, const std::stop_token& stop) {
  const std::stop_callback wake(stop, [this] {
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = write(wake_, &one, sizeof one);
  });
  Hints hints = std::exchange(pending_, {});
  while (true) {
    const base::Instant now = base::Instant::clock::now();
    const std::int64_t nanoseconds =
        hints.any() || until <= now ? 0 : std::chrono::nanoseconds(until - now).count();
    const timespec patience = {.tv_sec = nanoseconds / 1'000'000'000,
                               .tv_nsec = nanoseconds % 1'000'000'000};
    std::array<pollfd, 2> sources = {pollfd{inotify_, POLLIN, 0}, pollfd{wake_, POLLIN, 0}};
    const int ready = ppoll(sources.data(), sources.size(), &patience, nullptr);
    if (ready > 0 && TakePoke()) hints.anything |= !stop.stop_requested();
    if (ready > 0) hints |= ReadEvents();
    const bool over = ready == 0 && nanoseconds == 0;
    if (stale_ || (over && !hints.any())) ArmFolders();
    hints |= std::exchange(pending_, {});
    if (over || hints.any() || stop.stop_requested()) return hints;
  }
}

void Notice::Poke() {
  const std::uint64_t one = 1;
  // A full counter is a poke that nobody has taken yet.
  [[maybe_unused]] const ssize_t written = write(wake_, &one, sizeof one);
}

bool Notice::TakePoke() {
  std::uint64_t count = 0;
  return read(wake_, &count, sizeof count) > 0;
}

Hints Notice::ReadEvents() {
  Hints hints;
  alignas(inotify_event) std::array<char, 16384> buffer;
  while (true) {
    const ssize_t got = read(inotify_, buffer.data(), buffer.size());
    if (got <= 0) return hints;
    for (ssize_t at = 0; at < got;) {
      inotify_event event = {};
      std::memcpy(&event, buffer.data() + at, sizeof event);
      const char* const name = buffer.data() + at + sizeof event;
      Take({.watch = event.wd, .mask = event.mask, .name = event.len > 0 ? name : ""}, hints);
      at += static_cast<ssize_t>(sizeof event + event.len);
    }
  }
}

void Notice::Take(const Event& event, Hints& hints) {
  if (event.Has(IN_Q_OVERFLOW)) {
    hints.anything = hints.lost = stale_ = true;
    return;
  }
  if (event.Has(IN_IGNORED | IN_UNMOUNT | IN_DELETE_SELF | IN_MOVE_SELF)) {
    Lose(event.watch, hints);
    return;
  }
  if (const auto cgroup = cgroup_of_.find(event.watch); cgroup != cgroup_of_.end()) {
    if (event.Has(IN_ISDIR)) {
      hints.pods |= !IsOfContainer(cgroup->second);
    } else {
      hints.cpusets |= event.Has(IN_CLOSE_WRITE) && event.name.starts_with("cpuset.");
    }
  }
  const auto found = folders_.find(event.watch);
  if (found == folders_.end()) return;
  for (const Interest& interest : found->second) {
    hints |= HintOf(interest, event.name);
    stale_ |= interest.kind == Interest::Kind::kArrival && event.name == interest.name;
  }
}

void Notice::Lose(int watch, Hints& hints) {
  if (const auto cgroup = cgroup_of_.find(watch); cgroup != cgroup_of_.end()) {
    cgroups_.erase(cgroup->second);
    cgroup_of_.erase(cgroup);
    hints.pods = true;
    all_cgroups_ = false;
    inotify_rm_watch(inotify_, watch);
  }
  if (folders_.erase(watch) == 0) return;
  inotify_rm_watch(inotify_, watch);  // one that moved away is still watched
  hints.anything = stale_ = true;
}

Hints Notice::HintOf(const Interest& interest, std::string_view name) {
  Hints hints;
  switch (interest.kind) {
    case Interest::Kind::kKubelet:
      hints.kubelet = IsStateFile(name);
      break;
    case Interest::Kind::kPlugins:
      hints.kubelet = name == "kubelet_internal_checkpoint" || name.ends_with(".sock");
      break;
    case Interest::Kind::kSocket:
      hints.kubelet = name == "kubelet.sock";
      break;
    case Interest::Kind::kPodLogs:
      hints.kubelet = true;
      break;
    case Interest::Kind::kConfig:
      hints.config = interest.name.empty() || name == interest.name;
      break;
    case Interest::Kind::kArrival:
      break;  // its arrival has to be watched before it is a hint
  }
  return hints;
}

}  // namespace agent
