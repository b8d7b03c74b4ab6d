#include "kube/yaml_scalar.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/text.h"

namespace kube {
namespace {

constexpr std::array<std::string_view, 11> kTrue = {"y",    "Y",    "yes", "Yes", "YES", "true",
                                                    "True", "TRUE", "on",  "On",  "ON"};
constexpr std::array<std::string_view, 11> kFalse = {"n",     "N",     "no",  "No",  "NO", "false",
                                                     "False", "FALSE", "off", "Off", "OFF"};
constexpr std::array<std::string_view, 5> kNull = {"", "~", "null", "Null", "NULL"};
constexpr std::array<std::string_view, 12> kNoNumber = {".nan",  ".NaN",  ".NAN",  ".inf",
                                                        ".Inf",  ".INF",  "+.inf", "+.Inf",
                                                        "+.INF", "-.inf", "-.Inf", "-.INF"};
constexpr std::string_view kTagPrefix = "tag:yaml.org,2002:";

template <class List>
bool IsIn(const List& list, std::string_view text) {
  return std::ranges::find(list, text) != list.end();
}

Scalar Literal(std::string text) {
  return {.kind = Scalar::Kind::kLiteral, .text = std::move(text)};
}

// A sign, then 12, 0x1f, 017, 0o17 or 0b11.
std::optional<std::string> ReadInteger(std::string_view text) {
  const bool negative = text.starts_with('-');
  const bool sign = negative || text.starts_with('+');
  if (sign) text.remove_prefix(1);
  int radix = 10;
  if (text.size() > 1 && text[0] == '0') {
    const char second = text[1];
    radix = second == 'x' || second == 'X' ? 16 : second == 'b' || second == 'B' ? 2 : 8;
    const bool letter = radix != 8 || second == 'o' || second == 'O';
    text.remove_prefix(letter ? 2 : 1);
  }
  const std::optional<std::uint64_t> value = base::ParseNumber<std::uint64_t>(text, radix);
  if (!value) return std::nullopt;
  constexpr std::uint64_t kLimit = std::uint64_t{1} << 63;
  if (sign && *value >= kLimit + (negative ? 1 : 0)) return std::nullopt;
  return fmt::format("{}{}", negative && *value != 0 ? "-" : "", *value);
}

std::size_t Digits(std::string_view text, std::size_t at) {
  const std::size_t end = text.find_first_not_of("0123456789", at);
  return (end == std::string_view::npos ? text.size() : end) - at;
}

// A sign, digits with a point among them, an exponent.
bool LooksLikeFloat(std::string_view text) {
  std::size_t at = text.starts_with('-') || text.starts_with('+') ? 1 : 0;
  const std::size_t whole = Digits(text, at);
  at += whole;
  if (at < text.size() && text[at] == '.') {
    const std::size_t fraction = Digits(text, at + 1);
    if (whole + fraction == 0) return false;
    at += 1 + fraction;
  } else if (whole == 0) {
    return false;
  }
  if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
    ++at;
    if (at < text.size() && (text[at] == '-' || text[at] == '+')) ++at;
    const std::size_t exponent = Digits(text, at);
    if (exponent == 0) return false;
    at += exponent;
  }
  return at == text.size();
}

std::optional<std::string> ReadFloat(std::string_view text) {
  if (!LooksLikeFloat(text)) return std::nullopt;
  if (text.starts_with('+')) text.remove_prefix(1);
  double value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{}) return std::nullopt;
  return fmt::format("{}", value);
}

std::optional<Scalar> ResolvePlain(const std::string& text) {
  if (IsIn(kNull, text)) return Scalar();
  if (IsIn(kTrue, text)) return Literal("true");
  if (IsIn(kFalse, text)) return Literal("false");
  if (IsIn(kNoNumber, text)) return std::nullopt;
  if (std::string_view("+-.0123456789").find(text[0]) != std::string_view::npos) {
    std::string bare = text;
    std::erase(bare, '_');
    if (std::optional<std::string> number = ReadInteger(bare)) return Literal(*std::move(number));
    if (std::optional<std::string> number = ReadFloat(bare)) return Literal(*std::move(number));
  }
  return Scalar{.kind = Scalar::Kind::kString, .text = text};
}

}  // namespace

std::optional<Scalar> ResolveScalar(const std::string& tag, const std::string& text) {
  if (tag == "?") return ResolvePlain(text);
  if (tag == "!") return Scalar{.kind = Scalar::Kind::kString, .text = text};
  if (!tag.starts_with(kTagPrefix)) return std::nullopt;
  const std::string_view name = std::string_view(tag).substr(kTagPrefix.size());
  if (name == "str" || name == "timestamp") {
    return Scalar{.kind = Scalar::Kind::kString, .text = text};
  }
  if (name != "int" && name != "float" && name != "bool" && name != "null") return std::nullopt;
  std::optional<Scalar> scalar = ResolvePlain(text);
  const bool truth = scalar && (scalar->text == "true" || scalar->text == "false");
  if (!scalar || scalar->kind == Scalar::Kind::kString) return std::nullopt;
  if ((name == "null") != (scalar->kind == Scalar::Kind::kNull)) return std::nullopt;
  if ((name == "bool") != truth) return std::nullopt;
  return scalar;
}

}  // namespace kube
