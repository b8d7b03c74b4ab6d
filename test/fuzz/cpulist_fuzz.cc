#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/cpu_set.h"
#include "hwinfo/sysfs_values.h"

// Lists and masks of CPUs: what is read must come back from its own text.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const absl::StatusOr<base::CpuSet> list = base::CpuSet::Parse(text);
  if (list.ok() && base::CpuSet::Parse(list->ToString()).value() != *list) std::abort();
  const absl::StatusOr<base::CpuSet> mask = hwinfo::ParseCpuMask(text);
  if (mask.ok() && base::CpuSet::Parse(mask->ToString()).value() != *mask) std::abort();
  return 0;
}
