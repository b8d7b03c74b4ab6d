#include "hwinfo/mig.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "base/file_tree.h"
#include "base/status_macros.h"
#include "base/text.h"
#include "hwinfo/nvidia_procfs.h"

namespace hwinfo {
namespace {

using base::ParseNumber;

constexpr char kCapabilities[] = "proc/driver/nvidia/capabilities";

// Minors of the GPUs that have MIG instances, or the error that kept us from looking.
absl::StatusOr<std::vector<int>> MinorsWithInstances(const base::FileTree& root) {
  ASSIGN_OR_RETURN(const std::vector<std::string> names, root.List(kCapabilities));
  std::vector<int> minors;
  for (const std::string& name : names) {
    if (!name.starts_with("gpu")) continue;
    const auto minor = ParseNumber<int>(std::string_view(name).substr(3));
    if (!minor) continue;
    const auto entries = root.List(fmt::format("{}/{}/mig", kCapabilities, name));
    if (absl::IsNotFound(entries.status())) continue;
    // A GPU that may have instances: the only other one would not be the only one.
    if (!entries.ok()) return entries.status();
    if (std::ranges::any_of(*entries, [](const std::string& e) { return e.starts_with("gi"); })) {
      minors.push_back(*minor);
    }
  }
  return minors;
}

}  // namespace

absl::StatusOr<PciAddress> FindOnlyMigGpu(const Topology& topology, const base::FileTree* root) {
  constexpr std::string_view kSilent = "the kernel does not tie a MIG instance's UUID to a GPU";
  if (root == nullptr) return absl::NotFoundError(std::string(kSilent));
  const absl::StatusOr<std::vector<int>> minors = MinorsWithInstances(*root);
  if (!minors.ok()) {
    return absl::NotFoundError(
        fmt::format("{}: {}", kSilent, std::string(minors.status().message())));
  }
  if (minors->size() != 1) {
    return absl::NotFoundError(
        fmt::format("{}, and {} GPUs have instances", kSilent, minors->size()));
  }
  for (const PciDevice& device : topology.devices) {
    if (device.vendor == kNvidia && device.minor == minors->front()) return device.address;
  }
  return absl::NotFoundError(fmt::format("{}, and the GPU with instances, minor {}, is not known",
                                         kSilent, minors->front()));
}

}  // namespace hwinfo
