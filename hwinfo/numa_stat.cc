#include "hwinfo/numa_stat.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "base/cpu_set.h"
#include "base/status_macros.h"
#include "base/text.h"

namespace hwinfo {
namespace {

using base::ParseNumber;

using Bytes = std::map<int, std::int64_t>;

// Takes the text before `separator` off the front, and the separator.
std::string_view Take(std::string_view& text, char separator) {
  const std::string_view part = text.substr(0, text.find(separator));
  text.remove_prefix(std::min(text.size(), part.size() + 1));
  return part;
}

// Adds the "N0=12 N1=7" of one line, times `unit`.
absl::Status AddLine(std::string_view counts, std::int64_t unit, Bytes& bytes) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  while (!counts.empty()) {
    std::string_view count = Take(counts, ' ');
    if (count.empty()) continue;
    const std::string shown(count.substr(0, 40));
    const std::string_view name = Take(count, '=');
    const auto node = name.starts_with('N') ? ParseNumber<int>(name.substr(1)) : std::nullopt;
    const auto value = ParseNumber<std::int64_t>(count);
    if (!node || !base::NumaMask::Fits(*node) || !value || *value < 0) {
      return absl::InvalidArgumentError(fmt::format("\"{}\" is no count of a NUMA node", shown));
    }
    if (*value == 0) continue;
    std::int64_t& sum = bytes[*node];
    if (*value > (kMost - sum) / unit) {
      return absl::InvalidArgumentError(fmt::format("\"{}\" is more than memory can be", shown));
    }
    sum += *value * unit;
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Bytes> ParseNumaStat(std::string_view text) {
  constexpr std::array<std::string_view, 7> kResident = {"anon",
                                                         "file",
                                                         "kernel_stack",
                                                         "pagetables",
                                                         "sec_pagetables",
                                                         "slab_reclaimable",
                                                         "slab_unreclaimable"};
  Bytes bytes;
  bool found = false;
  while (!text.empty()) {
    std::string_view line = Take(text, '\n');
    const std::string_view key = Take(line, ' ');
    if (std::ranges::find(kResident, key) == kResident.end()) continue;
    found = true;
    RETURN_IF_ERROR(AddLine(line, 1, bytes));
  }
  if (!found) return absl::InvalidArgumentError("memory.numa_stat has no line of resident memory");
  return bytes;
}

absl::StatusOr<Bytes> ParseNumaStatV1(std::string_view text, std::int64_t page_bytes) {
  std::optional<std::string_view> total;
  std::optional<std::string_view> hierarchical;
  while (!text.empty()) {
    std::string_view line = Take(text, '\n');
    const std::string_view key = line.substr(0, line.find('='));
    Take(line, ' ');
    if (key == "hierarchical_total") hierarchical = line;
    if (key == "total") total = line;
  }
  if (!hierarchical) hierarchical = total;
  if (!hierarchical) return absl::InvalidArgumentError("memory.numa_stat has no total");
  Bytes bytes;
  RETURN_IF_ERROR(AddLine(*hierarchical, page_bytes, bytes));
  return bytes;
}

}  // namespace hwinfo
