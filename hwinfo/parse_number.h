#pragma once

#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>

namespace hwinfo {

// A whole text as a number, nothing else around it; nothing if it is none or does not fit.
template <class Number>
std::optional<Number> ParseNumber(std::string_view text, int base = 10) {
  Number value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value, base);
  if (text.empty() || error != std::errc{} || stop != end) return std::nullopt;
  return value;
}

}  // namespace hwinfo
