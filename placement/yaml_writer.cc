#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "placement/document_writer.h"

namespace placement {
namespace {

bool IsPlainCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '-' || c == '.' || c == '/';
}

// What a YAML 1.1 reader takes for a boolean or for null.
bool IsReservedWord(std::string_view text) {
  constexpr std::array<std::string_view, 10> kWords = {"y",   "n",    "yes",   "no",   "on",
                                                       "off", "true", "false", "null", "nan"};
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(), [](char c) {
    return static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  });
  return std::ranges::find(kWords, lower) != kWords.end();
}

// Text that begins with a letter is no number, date or indicator.
bool IsPlain(std::string_view text) {
  if (text.empty() || std::isalpha(static_cast<unsigned char>(text.front())) == 0) return false;
  return std::ranges::all_of(text, IsPlainCharacter) && !IsReservedWord(text);
}

// The length of the well-formed UTF-8 sequence that `text` begins with, 0 if there is none.
std::size_t SequenceLength(std::string_view text) {
  const auto byte = [&](std::size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U;
  };
  const auto follows = [&](std::size_t i) { return (byte(i) & 0xc0U) == 0x80U; };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  if (first >= 0xc2 && first <= 0xdf && follows(1)) return 2;
  const bool overlong3 = first == 0xe0 && byte(1) < 0xa0;
  const bool surrogate = first == 0xed && byte(1) >= 0xa0;
  if (first >= 0xe0 && first <= 0xef && follows(1) && follows(2) && !overlong3 && !surrogate) {
    return 3;
  }
  const bool out_of_range = (first == 0xf0 && byte(1) < 0x90) || (first == 0xf4 && byte(1) > 0x8f);
  if (first >= 0xf0 && first <= 0xf4 && follows(1) && follows(2) && follows(3) && !out_of_range) {
    return 4;
  }
  return 0;
}

// One character, escaped if YAML does not hold it to be printable.
std::string Escaped(std::string_view sequence) {
  const auto first = static_cast<unsigned char>(sequence.front());
  if (sequence == "\"" || sequence == "\\") return fmt::format("\\{}", sequence);
  if (sequence == "\n") return "\\n";
  if (first < 0x20) return fmt::format("\\x{:02x}", first);
  if (const Control control = ControlAt(sequence); control.length != 0) {
    return fmt::format("\\u{:04x}", control.code);
  }
  if (sequence == "\xef\xbb\xbf") return "\\ufeff";
  if (sequence == "\xef\xbf\xbe") return "\\ufffe";
  if (sequence == "\xef\xbf\xbf") return "\\uffff";
  return std::string(sequence);
}

std::string Quoted(std::string_view text) {
  if (IsPlain(text)) return std::string(text);
  const std::string valid = ValidUtf8(text);
  std::string quoted = "\"";
  for (std::size_t i = 0; i < valid.size();) {
    const std::size_t length = std::max<std::size_t>(1, SequenceLength(valid.substr(i, 4)));
    quoted += Escaped(std::string_view(valid).substr(i, length));
    i += length;
  }
  return quoted + "\"";
}

}  // namespace

std::string ValidUtf8(std::string_view text) {
  std::string valid;
  valid.reserve(text.size());
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = SequenceLength(text.substr(i, 4));
    if (length == 0) valid += "\xef\xbf\xbd";  // U+FFFD
    valid += text.substr(i, length);
    i += std::max<std::size_t>(1, length);
  }
  return valid;
}

Control ControlAt(std::string_view text) {
  const auto byte = [&](std::size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U;
  };
  if (byte(0) == 0x7f) return {1, 0x7f};
  if (byte(0) == 0xc2 && byte(1) >= 0x80 && byte(1) < 0xa0) return {2, byte(1)};
  if (byte(0) != 0xe2 || (byte(1) & 0xc0U) != 0x80U || (byte(2) & 0xc0U) != 0x80U) return {};
  const unsigned code = 0x2000 | (byte(1) & 0x3fU) << 6 | (byte(2) & 0x3fU);
  const bool turns = code == 0x200e || code == 0x200f || (code >= 0x202a && code <= 0x202e) ||
                     (code >= 0x2066 && code <= 0x2069);
  if (!turns && code != 0x2028 && code != 0x2029) return {};
  return {3, code};
}

void YamlWriter::NewLine() {
  if (text_.empty()) return;
  text_ += '\n';
  text_.append((open_.size() - 1) * 2, ' ');
}

void YamlWriter::BeforeValue() {
  if (!open_.empty() && open_.back().kind == Kind::kList) {
    NewLine();
    text_ += '-';
    open_.back().empty = false;
  }
}

void YamlWriter::Begin(Kind kind) {
  BeforeValue();
  after_dash_ = !open_.empty() && open_.back().kind == Kind::kList;
  open_.push_back({.kind = kind});
}

void YamlWriter::End(std::string_view if_empty) {
  const bool empty = open_.back().empty;
  open_.pop_back();
  if (empty) text_ += text_.empty() ? std::string(if_empty) : fmt::format(" {}", if_empty);
  after_dash_ = false;
  if (open_.empty()) text_ += '\n';
}

void YamlWriter::Key(std::string_view key) {
  if (after_dash_) {
    text_ += ' ';
  } else {
    NewLine();
  }
  after_dash_ = false;
  open_.back().empty = false;
  const std::string quoted = Quoted(key);
  // A reader may refuse a key on one line with its value if it has more than 1024 characters.
  constexpr std::size_t kLongestSimple = 1000;
  if (quoted.size() <= kLongestSimple) {
    text_ += fmt::format("{}:", quoted);
    return;
  }
  text_ += fmt::format("? {}", quoted);
  NewLine();
  text_ += ':';
}

void YamlWriter::Scalar(std::string_view text) {
  BeforeValue();
  text_ += fmt::format(" {}", text);
}

void YamlWriter::String(std::string_view text) { Scalar(Quoted(text)); }
void YamlWriter::Int(std::int64_t number) { Scalar(fmt::format("{}", number)); }

}  // namespace placement
