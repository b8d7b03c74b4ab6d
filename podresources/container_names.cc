#include "podresources/container_names.h"

#include <string_view>

#include "base/status_macros.h"

namespace podresources {

absl::StatusOr<std::map<std::string, std::string>> ReadContainerNames(const base::FileTree& root) {
  constexpr std::string_view kEnding = ".log";
  constexpr std::size_t kIdDigits = 64;
  ASSIGN_OR_RETURN(const std::vector<std::string> files, root.List("var/log/containers"));
  std::map<std::string, std::string> names;
  for (std::string_view file : files) {
    if (!file.ends_with(kEnding)) continue;
    file.remove_suffix(kEnding.size());
    if (file.size() <= kIdDigits + 1) continue;
    const std::string_view id = file.substr(file.size() - kIdDigits);
    file.remove_suffix(kIdDigits);
    const std::size_t underscore = file.rfind('_');  // names of containers have none
    if (!file.ends_with('-') || underscore == std::string_view::npos ||
        id.find_first_not_of("0123456789abcdef") != std::string_view::npos) {
      continue;
    }
    file.remove_suffix(1);
    const std::string_view name = file.substr(underscore + 1);
    if (!name.empty()) names.emplace(id, name);
  }
  return names;
}

}  // namespace podresources
