#include "base/quantity.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "base/text.h"

namespace base {
namespace {

__extension__ using Wide = __int128;

struct Scale {
  int power_of_two = 0;
  int power_of_ten = 0;
};

constexpr std::array<std::pair<std::string_view, Scale>, 16> kSuffixes = {{
    {"", {0, 0}},
    {"n", {0, -9}},
    {"u", {0, -6}},
    {"m", {0, -3}},
    {"k", {0, 3}},
    {"M", {0, 6}},
    {"G", {0, 9}},
    {"T", {0, 12}},
    {"P", {0, 15}},
    {"E", {0, 18}},
    {"Ki", {10, 0}},
    {"Mi", {20, 0}},
    {"Gi", {30, 0}},
    {"Ti", {40, 0}},
    {"Pi", {50, 0}},
    {"Ei", {60, 0}},
}};

absl::Status NoQuantity(std::string_view text) {
  return absl::InvalidArgumentError(fmt::format("\"{:.60}\" is no quantity", text));
}

absl::Status TooLarge(std::string_view text) {
  return absl::OutOfRangeError(fmt::format("the quantity \"{:.60}\" is beyond 64 bits", text));
}

std::optional<Scale> ParseScale(std::string_view suffix) {
  for (const auto& [name, scale] : kSuffixes) {
    if (name == suffix) return scale;
  }
  if (suffix.size() < 2 || (suffix[0] != 'e' && suffix[0] != 'E')) return std::nullopt;
  std::string_view digits = suffix.substr(1);
  if (digits.starts_with("+-")) return std::nullopt;
  if (digits[0] == '+') digits.remove_prefix(1);
  const std::optional<std::int64_t> exponent = ParseNumber<std::int64_t>(digits);
  if (!exponent) return std::nullopt;
  // Beyond this nothing but 0 stays within 64 bits, or above the smallest amount.
  constexpr std::int64_t kFar = 1000;
  return Scale{0, static_cast<int>(std::clamp(*exponent, -kFar, kFar))};
}

// mantissa * 2^a * 10^b, a rest rounded up or cut off; nothing beyond int64. `rest`: the mantissa
// is a little more than it says.
std::optional<std::int64_t> Apply(Wide mantissa, bool rest, Scale scale, bool round_up) {
  constexpr Wide kLimit = Wide{1} << 122;
  const auto divide = [&] {
    rest = rest || mantissa % 10 != 0;
    mantissa /= 10;
    ++scale.power_of_ten;
  };
  for (int i = 0; i < scale.power_of_two; ++i) {
    if (mantissa > kLimit && scale.power_of_ten < 0) divide();
    if (mantissa > kLimit) return std::nullopt;
    mantissa *= 2;
  }
  while (scale.power_of_ten < 0 && mantissa != 0) divide();
  for (; scale.power_of_ten > 0 && mantissa != 0; --scale.power_of_ten) {
    if (mantissa > kLimit / 10) return std::nullopt;
    mantissa *= 10;
  }
  mantissa += rest && round_up ? 1 : 0;
  if (mantissa > std::numeric_limits<std::int64_t>::max()) return std::nullopt;
  return static_cast<std::int64_t>(mantissa);
}

absl::StatusOr<std::int64_t> Parse(std::string_view text, int extra_power_of_ten,
                                   Rounding rounding) {
  std::string_view rest = text;
  const bool negative = !rest.empty() && rest[0] == '-';
  if (!rest.empty() && (rest[0] == '-' || rest[0] == '+')) rest.remove_prefix(1);
  Wide mantissa = 0;
  int fraction_digits = 0;
  bool any_digit = false;
  bool in_fraction = false;
  bool beyond = false;  // digits too far behind the point to matter, unless they are zeros
  std::size_t at = 0;
  for (; at < rest.size(); ++at) {
    const char c = rest[at];
    if (c == '.' && !in_fraction) {
      in_fraction = true;
      continue;
    }
    if (c < '0' || c > '9') break;
    any_digit = true;
    if (mantissa > (Wide{1} << 90)) {
      if (!in_fraction) return TooLarge(text);
      beyond = beyond || c != '0';
      continue;
    }
    mantissa = mantissa * 10 + (c - '0');
    fraction_digits += in_fraction ? 1 : 0;
  }
  if (!any_digit) return NoQuantity(text);
  std::optional<Scale> scale = ParseScale(rest.substr(at));
  if (!scale) return NoQuantity(text);
  scale->power_of_ten += extra_power_of_ten - fraction_digits;
  const bool round_up = negative || rounding == Rounding::kAwayFromZero;
  const std::optional<std::int64_t> value = Apply(mantissa, beyond, *scale, round_up);
  if (!value) return TooLarge(text);
  return negative ? -*value : *value;
}

}  // namespace

absl::StatusOr<std::int64_t> ParseQuantity(std::string_view text, Rounding rounding) {
  return Parse(text, 0, rounding);
}

absl::StatusOr<std::int64_t> ParseMilliQuantity(std::string_view text) {
  return Parse(text, 3, Rounding::kAwayFromZero);
}

std::string FormatBytes(std::int64_t bytes) {
  constexpr std::array<std::string_view, 7> kUnits = {"", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"};
  std::size_t unit = 0;
  while (bytes != 0 && bytes % 1024 == 0 && unit + 1 < kUnits.size()) {
    bytes /= 1024;
    ++unit;
  }
  return fmt::format("{}{}", bytes, kUnits[unit]);
}

std::string HugePagesResource(std::int64_t page_bytes) {
  return "hugepages-" + FormatBytes(page_bytes);
}

}  // namespace base
