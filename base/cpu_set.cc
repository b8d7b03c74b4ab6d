#include "base/cpu_set.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "absl/status/status.h"
#include "base/status_macros.h"
#include "base/text.h"

namespace base::internal {
namespace {

absl::StatusOr<int> ParseId(std::string_view text, std::string_view list) {
  const std::optional<int> id = ParseNumber<int>(text);
  if (!id || *id < 0) {
    return absl::InvalidArgumentError(
        fmt::format("\"{:.40}\" is no id (in the list \"{:.80}\")", text, list));
  }
  if (*id > kMaxId) {
    return absl::InvalidArgumentError(
        fmt::format("id {} is above {} (in the list \"{:.80}\")", *id, kMaxId, list));
  }
  return *id;
}

void InsertRange(int from, int to, Words& words) {
  const auto needed = static_cast<std::size_t>(to) / 64 + 1;
  if (words.size() < needed) words.resize(needed);
  // Word by word: a list may name the same wide range a hundred thousand times.
  const auto first = static_cast<std::size_t>(from) / 64;
  for (std::size_t word = first; word < needed; ++word) {
    std::uint64_t bits = ~std::uint64_t{0};
    if (word == first) bits &= ~std::uint64_t{0} << (from % 64);
    if (word + 1 == needed) bits &= ~std::uint64_t{0} >> (63 - to % 64);
    words[word] |= bits;
  }
}

}  // namespace

absl::StatusOr<Words> ParseIdList(std::string_view list) {
  const std::string_view text = Trim(list);
  Words words;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t comma = std::min(text.find(',', at), text.size());
    const std::string_view part = Trim(text.substr(at, comma - at));
    const std::size_t dash = part.find('-');
    ASSIGN_OR_RETURN(const int from, ParseId(part.substr(0, dash), text));
    int to = from;
    if (dash != std::string_view::npos) {
      ASSIGN_OR_RETURN(to, ParseId(part.substr(dash + 1), text));
    }
    if (to < from) {
      return absl::InvalidArgumentError(
          fmt::format("the range \"{:.40}\" runs backwards (in the list \"{:.80}\")", part, text));
    }
    InsertRange(from, to, words);
    at = comma + 1;
    if (comma + 1 == text.size()) {
      return absl::InvalidArgumentError(fmt::format("the list \"{:.80}\" ends in a comma", text));
    }
  }
  return words;
}

std::string FormatIdList(const Words& words) {
  const int end = static_cast<int>(words.size()) * 64;
  const auto has = [&](int id) {
    return id < end && ((words[static_cast<std::size_t>(id) / 64] >> (id % 64)) & 1) != 0;
  };
  std::string list;
  for (int id = 0; id < end; ++id) {
    if (!has(id)) continue;
    const int from = id;
    while (has(id + 1)) ++id;
    if (!list.empty()) list += ',';
    list += from == id ? fmt::format("{}", from) : fmt::format("{}-{}", from, id);
  }
  return list;
}

// Compares the ascending lists of ids. Up to the lowest differing id both lists are the same; there
// the set that has the id is the smaller one, unless the other has no further id at all.
int CompareIds(const Words& a, const Words& b) {
  const std::size_t shared = std::min(a.size(), b.size());
  std::size_t word = 0;
  while (word < shared && a[word] == b[word]) ++word;
  if (word == shared) return a.size() < b.size() ? -1 : (a.size() > b.size() ? 1 : 0);
  const int bit = std::countr_zero(a[word] ^ b[word]);
  const bool a_has_it = ((a[word] >> bit) & 1) != 0;
  const Words& other = a_has_it ? b : a;
  const bool other_ends = other.size() == word + 1 && (other[word] >> bit) == 0;
  return a_has_it == other_ends ? 1 : -1;
}

}  // namespace base::internal
