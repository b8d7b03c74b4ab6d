#include "hwinfo/cgroup_names.h"

#include <algorithm>
#include <array>

namespace hwinfo {
namespace {

constexpr std::string_view kSlice = ".slice";
constexpr std::string_view kScope = ".scope";

bool IsUid(std::string_view text) {
  const auto fits = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-';
  };
  return !text.empty() && std::ranges::all_of(text, fits);
}

}  // namespace

bool IsControlFile(std::string_view name) {
  constexpr std::array<std::string_view, 19> kControllers = {
      "blkio",   "cgroup",   "cpu",        "cpuacct", "cpuset", "debug",  "devices",
      "dmem",    "freezer",  "hugetlb",    "io",      "irq",    "memory", "misc",
      "net_cls", "net_prio", "perf_event", "pids",    "rdma"};
  constexpr std::array<std::string_view, 3> kOthers = {"notify_on_release", "release_agent",
                                                       "tasks"};
  const std::size_t dot = name.find('.');
  if (dot == std::string_view::npos) {
    return std::ranges::find(kOthers, name) != kOthers.end();
  }
  return std::ranges::find(kControllers, name.substr(0, dot)) != kControllers.end();
}

bool IsAllPods(std::string_view name) {
  return name == "kubepods" || name == "kubepods.slice" || name.ends_with("-kubepods.slice");
}

std::optional<std::string> PodUidOf(std::string_view name) {
  constexpr std::string_view kPod = "pod";
  std::string uid;
  if (name.ends_with(kSlice)) {
    name.remove_suffix(kSlice.size());
    const std::size_t pod = name.rfind("-pod");
    if (pod == std::string_view::npos) return std::nullopt;
    uid = std::string(name.substr(pod + 1 + kPod.size()));
    std::ranges::replace(uid, '_', '-');
  } else if (name.starts_with(kPod)) {
    uid = std::string(name.substr(kPod.size()));
  }
  if (!IsUid(uid)) return std::nullopt;
  return uid;
}

bool IsContainerId(std::string_view text) {
  return text.size() == 64 && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

std::optional<std::string> ContainerIdOf(std::string_view name) {
  if (name.ends_with(kScope)) name.remove_suffix(kScope.size());
  const std::size_t dash = name.rfind('-');
  const std::string_view runtime = name.substr(0, dash == std::string_view::npos ? 0 : dash);
  const std::string_view id = name.substr(dash == std::string_view::npos ? 0 : dash + 1);
  if (!IsContainerId(id) || runtime.ends_with("conmon")) return std::nullopt;
  return std::string(id);
}

}  // namespace hwinfo
