#include "hwinfo/sysfs_values.h"

#include <fmt/format.h>

#include "absl/status/status.h"
#include "base/status_macros.h"
#include "base/text.h"

namespace hwinfo {
namespace {

template <class Set>
absl::StatusOr<Set> ReadList(const base::FileTree& root, const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, root.Read(path));
  absl::StatusOr<Set> set = Set::Parse(text);
  if (set.ok()) return set;
  return absl::InvalidArgumentError(fmt::format("cannot understand {}: {}", root.Describe(path),
                                                std::string(set.status().message())));
}

}  // namespace

std::optional<std::int64_t> ParseInteger(std::string_view text) {
  return base::ParseNumber<std::int64_t>(base::Trim(text));
}

absl::StatusOr<base::CpuSet> ParseCpuMask(std::string_view mask) {
  const std::string_view text = base::Trim(mask);
  base::CpuSet cpus;
  std::int64_t first = 0;
  for (std::size_t end = text.size() + 1; end > 0; first += 32) {
    const std::size_t comma = end < 2 ? std::string_view::npos : text.rfind(',', end - 2);
    const std::size_t start = comma == std::string_view::npos ? 0 : comma + 1;
    const std::string_view group = text.substr(start, end - 1 - start);
    const auto bits = base::ParseNumber<std::uint32_t>(group, 16);
    if (!bits || group.size() > 8) {
      return absl::InvalidArgumentError(fmt::format("\"{:.60}\" is no CPU mask", text));
    }
    for (int bit = 0; bit < 32; ++bit) {
      if (((*bits >> bit) & 1) != 0 && !cpus.Insert(first + bit)) {
        return absl::InvalidArgumentError(
            fmt::format("CPU {} of a mask is above {}", first + bit, base::kMaxId));
      }
    }
    end = start;
  }
  return cpus;
}

absl::StatusOr<std::int64_t> ReadInteger(const base::FileTree& root, const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, root.Read(path));
  const std::optional<std::int64_t> value = ParseInteger(text);
  if (value) return *value;
  return absl::InvalidArgumentError(
      fmt::format("cannot understand {}: \"{:.40}\" is no number", root.Describe(path), text));
}

absl::StatusOr<base::CpuSet> ReadCpuList(const base::FileTree& root, const std::string& path) {
  return ReadList<base::CpuSet>(root, path);
}

absl::StatusOr<base::NumaMask> ReadNumaList(const base::FileTree& root, const std::string& path) {
  return ReadList<base::NumaMask>(root, path);
}

absl::StatusOr<base::CpuSet> ReadCpuListOrMask(const base::FileTree& root, const std::string& list,
                                               const std::string& mask) {
  absl::StatusOr<base::CpuSet> from_list = ReadCpuList(root, list);
  if (from_list.ok()) return from_list;
  const absl::StatusOr<std::string> text = root.Read(mask);
  if (!text.ok()) return from_list;
  absl::StatusOr<base::CpuSet> from_mask = ParseCpuMask(*text);
  return from_mask.ok() ? from_mask : from_list;
}

std::optional<int> NumberAfter(std::string_view prefix, std::string_view name) {
  if (!name.starts_with(prefix)) return std::nullopt;
  name.remove_prefix(prefix.size());
  const std::optional<int> number = base::ParseNumber<int>(name);
  return number && base::CpuSet::Fits(*number) ? number : std::nullopt;
}

void NoteUnreadable(const std::string& path, const absl::Status& cause,
                    base::Diagnostics& diagnostics) {
  diagnostics.push_back(
      {.code = "SysfsUnreadable", .subject = path, .message = std::string(cause.message())});
}

}  // namespace hwinfo
