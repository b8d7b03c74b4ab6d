#pragma once

#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>

// How files of the kernel, of drivers and of the kubelet are taken apart.
namespace base {

// White space and NULs: what may stand around a value in sysfs and procfs.
inline constexpr std::string_view kBlank = std::string_view(" \t\r\n\0", 5);

// Without the blanks at both ends.
inline std::string_view Trim(std::string_view text) {
  const std::size_t first = text.find_first_not_of(kBlank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

// A whole text as a number, nothing else around it; nothing if it is none or does not fit.
template <class Number>
std::optional<Number> ParseNumber(std::string_view text, int base = 10) {
  Number value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value, base);
  if (text.empty() || error != std::errc{} || stop != end) return std::nullopt;
  return value;
}

// A truth value as Go's strconv.ParseBool has it, which the kubelet reads its options with.
inline std::optional<bool> ParseBool(std::string_view text) {
  for (const std::string_view word : {"1", "t", "T", "TRUE", "true", "True"}) {
    if (text == word) return true;
  }
  for (const std::string_view word : {"0", "f", "F", "FALSE", "false", "False"}) {
    if (text == word) return false;
  }
  return std::nullopt;
}

}  // namespace base
