#pragma once

#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "base/file_tree.h"

namespace podresources {

// Names of containers by the runtime's 64-digit ids, from the links that the kubelet keeps in
// var/log/containers: "<pod>_<namespace>_<container>-<id>.log". A pod's sandbox has none. The error
// is FileTree's, NotFound where there is no such folder.
absl::StatusOr<std::map<std::string, std::string>> ReadContainerNames(const base::FileTree& root);

}  // namespace podresources
