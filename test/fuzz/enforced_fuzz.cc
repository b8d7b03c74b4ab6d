// What the kernel writes about cgroups, and the names that runtimes give them.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "hwinfo/cgroup_names.h"
#include "hwinfo/numa_stat.h"

namespace {

void Check(const absl::StatusOr<std::map<int, std::int64_t>>& bytes) {
  if (!bytes.ok()) return;
  for (const auto& [node, count] : *bytes) {
    if (node < 0 || count <= 0) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  Check(hwinfo::ParseNumaStat(text));
  Check(hwinfo::ParseNumaStatV1(text, 4096));
  hwinfo::IsControlFile(text);
  hwinfo::IsAllPods(text);
  if (const auto uid = hwinfo::PodUidOf(text); uid && uid->empty()) std::abort();
  if (const auto id = hwinfo::ContainerIdOf(text); id && !hwinfo::IsContainerId(*id)) std::abort();
  return 0;
}
