#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "base/cpu_set.h"
#include "base/diagnostic.h"
#include "base/file_tree.h"

// How sysfs and procfs write numbers and sets of CPUs.
namespace hwinfo {

// A decimal number, blanks around it allowed; nothing if there is anything else or it is too large.
std::optional<std::int64_t> ParseInteger(std::string_view text);

// The kernel's mask format, "00000000,0000ffff": hexadecimal groups of 32 CPUs, highest first.
absl::StatusOr<base::CpuSet> ParseCpuMask(std::string_view mask);

// InvalidArgument names the file whose content is no number.
absl::StatusOr<std::int64_t> ReadInteger(const base::FileTree& root, const std::string& path);

absl::StatusOr<base::CpuSet> ReadCpuList(const base::FileTree& root, const std::string& path);
absl::StatusOr<base::NumaMask> ReadNumaList(const base::FileTree& root, const std::string& path);

// The list where there is a usable one, else the mask: old kernels have only masks. The error is
// the list's.
absl::StatusOr<base::CpuSet> ReadCpuListOrMask(const base::FileTree& root, const std::string& list,
                                               const std::string& mask);

// N of "cpuN" or "nodeN"; nothing if the name has another form or N does not fit a set.
std::optional<int> NumberAfter(std::string_view prefix, std::string_view name);

// Takes note that a file or folder could not be read or understood.
void NoteUnreadable(const std::string& path, const absl::Status& cause,
                    base::Diagnostics& diagnostics);

}  // namespace hwinfo
