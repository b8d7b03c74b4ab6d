#include "podresources/kubelet_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string_view>
#include <utility>

#include "absl/status/status.h"

namespace podresources {
namespace {

std::string Join(const std::string& folder, std::string_view name) {
  return folder.ends_with('/') ? fmt::format("{}{}", folder, name)
                               : fmt::format("{}/{}", folder, name);
}

struct StatePaths {
  std::string cpu;
  std::string memory;
  std::string devices;
  std::string pod_logs;
};

StatePaths PathsBelow(const std::string& root_dir, const std::string& pod_logs_dir) {
  return {.cpu = Join(root_dir, "cpu_manager_state"),
          .memory = Join(root_dir, "memory_manager_state"),
          .devices = Join(root_dir, "device-plugins/kubelet_internal_checkpoint"),
          .pod_logs = pod_logs_dir};
}

void AddFingerprint(const base::FileTree& root, const std::string& path, std::string& fingerprint) {
  const absl::StatusOr<base::FileInfo> info = root.Stat(path);
  if (info.ok()) {
    fingerprint += fmt::format("{}:{}:{}:{};", path, info->inode, info->bytes,
                               info->modified.time_since_epoch().count());
  } else {
    fingerprint += fmt::format("{}:{};", path, static_cast<int>(info.status().code()));
  }
}

base::Diagnostic Describe(const std::string& path, const absl::Status& error) {
  const std::string message(error.message());
  switch (error.code()) {
    case absl::StatusCode::kNotFound:
      return {"KubeletFileAbsent", path, message};
    case absl::StatusCode::kPermissionDenied:
      return {"KubeletFileForbidden", path, message + "; run as root to read it"};
    default:
      return {"KubeletFileUnreadable", path, message};
  }
}

// The fingerprint is taken before the content: a file replaced in between differs from it the next
// time, and the reader asks again.
template <class T>
std::optional<T> ReadStateFile(const base::FileTree& root, const std::string& path,
                               absl::StatusOr<T> (*parse)(const std::string&),
                               KubeletState& state) {
  AddFingerprint(root, path, state.fingerprint);
  const absl::StatusOr<std::string> text = root.Read(path);
  if (!text.ok()) {
    state.diagnostics.push_back(Describe(path, text.status()));
    return std::nullopt;
  }
  absl::StatusOr<T> parsed = parse(*text);
  if (parsed.ok()) return *std::move(parsed);
  state.diagnostics.push_back(
      {"KubeletFileDamaged", path,
       fmt::format("{}: {}", root.Describe(path), std::string(parsed.status().message()))});
  return std::nullopt;
}

// "namespace_name_uid". None of the three can have a '_', so any other count of them is something
// else, such as the folders of kubelets before 1.14, which were named by the UID alone.
std::optional<PodLogFolder> SplitLogFolder(std::string_view folder) {
  const std::size_t first = folder.find('_');
  if (first == std::string_view::npos) return std::nullopt;
  const std::size_t second = folder.find('_', first + 1);
  if (second == std::string_view::npos) return std::nullopt;
  PodLogFolder parts{std::string(folder.substr(0, first)),
                     std::string(folder.substr(first + 1, second - first - 1)),
                     std::string(folder.substr(second + 1))};
  if (parts.namespace_name.empty() || parts.name.empty() || parts.uid.empty()) return std::nullopt;
  if (parts.uid.find('_') != std::string::npos) return std::nullopt;
  return parts;
}

std::optional<std::vector<PodLogFolder>> ReadPodLogs(const base::FileTree& root,
                                                     const std::string& path, KubeletState& state) {
  AddFingerprint(root, path, state.fingerprint);
  const absl::StatusOr<std::vector<std::string>> names = root.List(path);
  if (!names.ok()) {
    state.diagnostics.push_back(Describe(path, names.status()));
    return std::nullopt;
  }
  std::vector<PodLogFolder> folders;
  for (const std::string& name : *names) {
    if (std::optional<PodLogFolder> folder = SplitLogFolder(name)) {
      folders.push_back(*std::move(folder));
    }
  }
  std::sort(folders.begin(), folders.end());
  return folders;
}

std::uint64_t Unsigned(std::int64_t bytes) { return static_cast<std::uint64_t>(bytes); }

bool HasContainerIds(const CpuManagerState& state) {
  return std::any_of(state.entries.begin(), state.entries.end(),
                     [](const auto& entry) { return entry.second.contains(""); });
}

}  // namespace

KubeletState ReadKubeletState(const base::FileTree& root, const std::string& root_dir,
                              const std::string& pod_logs_dir) {
  KubeletState state;
  const StatePaths paths = PathsBelow(root_dir, pod_logs_dir);
  state.cpu = ReadStateFile(root, paths.cpu, ParseCpuManagerState, state);
  state.memory = ReadStateFile(root, paths.memory, ParseMemoryManagerState, state);
  state.devices = ReadStateFile(root, paths.devices, ParseDeviceCheckpoint, state);
  state.pod_logs = ReadPodLogs(root, paths.pod_logs, state);
  if (state.cpu && HasContainerIds(*state.cpu)) {
    state.diagnostics.push_back(
        {"CpuStateByContainerId", paths.cpu,
         fmt::format("{} is in the format of kubelets up to 1.17, by container id: its entries "
                     "cannot be given to pods",
                     root.Describe(paths.cpu))});
  }
  return state;
}

std::string FingerprintKubeletState(const base::FileTree& root, const std::string& root_dir,
                                    const std::string& pod_logs_dir) {
  const StatePaths paths = PathsBelow(root_dir, pod_logs_dir);
  std::string fingerprint;
  for (const std::string& path : {paths.cpu, paths.memory, paths.devices, paths.pod_logs}) {
    AddFingerprint(root, path, fingerprint);
  }
  return fingerprint;
}

bool IsHalfOfAChange(const CpuManagerState& state, const base::CpuSet& allocatable) {
  if (state.policy != "static") return false;  // others keep no account of CPUs
  base::CpuSet nowhere = allocatable - state.default_cpus;
  for (const auto& [uid, containers] : state.entries) {
    for (const auto& [container, cpus] : containers) nowhere -= cpus;
  }
  for (const auto& [uid, cpus] : state.pod_entries) nowhere -= cpus;
  return !nowhere.empty();
}

bool IsHalfOfAChange(const MemoryManagerState& state) {
  if (state.policy != "Static") return false;
  std::map<std::string, std::uint64_t> nobodys;  // bytes by type; less than none: above 2^63
  for (const auto& [id, node] : state.nodes) {
    for (const auto& [type, table] : node.memory) nobodys[type] += Unsigned(table.reserved);
  }
  const auto take = [&](const std::vector<MemoryBlock>& blocks) {
    for (const MemoryBlock& block : blocks) nobodys[block.type] -= Unsigned(block.bytes);
  };
  for (const auto& [uid, containers] : state.entries) {
    if (state.pod_entries.contains(uid)) continue;  // parts of what the pod has
    for (const auto& [container, blocks] : containers) take(blocks);
  }
  for (const auto& [uid, blocks] : state.pod_entries) take(blocks);
  return std::ranges::any_of(nobodys, [](const auto& left) { return left.second != 0; });
}

}  // namespace podresources
