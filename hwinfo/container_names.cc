#include <algorithm>
#include <string_view>

#include "base/status_macros.h"
#include "hwinfo/cgroup_names.h"
#include "hwinfo/enforced.h"

namespace hwinfo {
namespace {

// '_' occurs in none of the names, so that two of them split the text in three for certain.
std::optional<ContainerName> ParseLogName(std::string_view name) {
  constexpr std::string_view kLog = ".log";
  if (!name.ends_with(kLog)) return std::nullopt;
  name.remove_suffix(kLog.size());
  const std::size_t first = name.find('_');
  const std::size_t second = name.rfind('_');
  const std::size_t dash = name.rfind('-');
  if (first == std::string_view::npos || first == second) return std::nullopt;
  if (dash == std::string_view::npos || dash < second) return std::nullopt;
  ContainerName parsed = {.namespace_name = std::string(name.substr(first + 1, second - first - 1)),
                          .pod = std::string(name.substr(0, first)),
                          .container = std::string(name.substr(second + 1, dash - second - 1)),
                          .container_id = std::string(name.substr(dash + 1))};
  const bool whole = !parsed.pod.empty() && !parsed.namespace_name.empty() &&
                     parsed.namespace_name.find('_') == std::string::npos &&
                     !parsed.container.empty() && IsContainerId(parsed.container_id);
  if (!whole) return std::nullopt;
  return parsed;
}

}  // namespace

absl::StatusOr<std::vector<ContainerName>> ReadContainerNames(const base::FileTree& root) {
  ASSIGN_OR_RETURN(const std::vector<std::string> names, root.List("var/log/containers"));
  std::vector<ContainerName> containers;
  for (const std::string& name : names) {
    if (auto container = ParseLogName(name)) containers.push_back(*std::move(container));
  }
  std::ranges::sort(containers);
  return containers;
}

}  // namespace hwinfo
