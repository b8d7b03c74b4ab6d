#include "base/text_layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <utility>

namespace base {
namespace {

constexpr Glyphs kUnicode = {"─", "│", "╭", "╮",   "╰", "╯", "├",
                             "┤", "█", "░", " · ", "×", "…", false};
constexpr Glyphs kAscii = {"-", "|", "+", "+",   "+", "+",  "+",
                           "+", "#", ".", " - ", "x", "..", true};

struct Sign {
  char32_t code;
  const char* ascii;
};
// Signs of certain width that messages may hold, and how ASCII spells them.
constexpr std::array kSigns = {
    Sign{U'·', "-"},  Sign{U'×', "x"},   Sign{U'…', "..."},  Sign{U'–', "-"}, Sign{U'—', "-"},
    Sign{U'≤', "<="}, Sign{U'≥', ">="},  Sign{U'→', "->"},   Sign{U'’', "'"}, Sign{U'“', "\""},
    Sign{U'”', "\""}, Sign{U'®', "(R)"}, Sign{U'™', "(TM)"}, Sign{U'µ', "u"}};

bool IsContinuation(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

// The code point at `text[at]` and its length in bytes; length 0 if it is no valid UTF-8.
std::pair<char32_t, std::size_t> Decode(std::string_view text, std::size_t at) {
  const auto lead = static_cast<unsigned char>(text[at]);
  if (lead < 0x80) return {lead, 1};
  const std::size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : lead >= 0xC2 ? 2 : 0;
  if (length == 0 || lead > 0xF4 || at + length > text.size()) return {0, 0};
  char32_t code = lead & (0xFFU >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) {
    if (!IsContinuation(text[at + i])) return {0, 0};
    code = (code << 6) | (static_cast<unsigned char>(text[at + i]) & 0x3F);
  }
  // What a shorter sequence could say, surrogates and what is beyond Unicode are not UTF-8.
  const char32_t least = length == 2 ? 0x80 : length == 3 ? 0x800 : 0x10000;
  if (code < least || code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF)) return {0, 0};
  return {code, length};
}

const char* Escape(Style style) {
  switch (style) {
    case Style::kPlain:
      return "";
    case Style::kDim:
      return "\x1b[2m";
    case Style::kBold:
      return "\x1b[1m";
    case Style::kTitle:
      return "\x1b[1;36m";
    case Style::kDevice:
      return "\x1b[36m";
    case Style::kGood:
      return "\x1b[32m";
    case Style::kNote:
      return "\x1b[33m";
    case Style::kBad:
      return "\x1b[1;31m";
  }
  return "";
}

// How many bytes of the text are its first `columns` code points.
std::size_t BytesOf(std::string_view text, int columns) {
  std::size_t at = 0;
  while (at < text.size() && columns > 0) {
    ++at;
    while (at < text.size() && IsContinuation(text[at])) ++at;
    --columns;
  }
  return at;
}

std::string Ordinal(int n) {
  const char* ending = n % 100 / 10 == 1 ? "th" : n % 10 == 2 ? "nd" : n % 10 == 3 ? "rd" : "th";
  return fmt::format("{}{}", n, ending);
}

// The step of ids that are evenly spaced and at least 2 apart; 0 if they are not.
template <class Set>
int Step(const Set& set) {
  int step = 0;
  int last = -1;
  for (const int id : set) {
    if (last >= 0) {
      if (step != 0 && id - last != step) return 0;
      step = id - last;
    }
    last = id;
  }
  return set.size() > 2 && step >= 2 ? step : 0;
}

template <class Set>
int Last(const Set& set) {
  int last = -1;
  for (const int id : set) last = id;
  return last;
}

template <class Set>
std::string Shorten(const Set& set, int width, const Glyphs& glyphs) {
  std::string whole = set.ToString();
  if (Width(whole) <= width) return whole;
  if (const int step = Step(set); step != 0) {
    return fmt::format("every {} of {}-{}", Ordinal(step), set.First(), Last(set));
  }
  std::string shown;
  int left_out = set.size();
  for (std::size_t comma = whole.find(','); comma != std::string::npos;
       comma = whole.find(',', comma + 1)) {
    std::string head = whole.substr(0, comma);
    const auto held = Set::Parse(head);
    const int rest = set.size() - (held.ok() ? held->size() : 0);
    const std::string tail = fmt::format(",{} +{}", glyphs.ellipsis, rest);
    if (Width(head) + Width(tail) > width && !shown.empty()) break;
    shown = head + tail;
    left_out = rest;
  }
  return shown.empty() || left_out == set.size() ? Truncate(whole, width, glyphs) : shown;
}

}  // namespace

const Glyphs& UnicodeGlyphs() { return kUnicode; }
const Glyphs& AsciiGlyphs() { return kAscii; }

int Width(std::string_view text) {
  return static_cast<int>(
      std::ranges::count_if(text, [](char byte) { return !IsContinuation(byte); }));
}

int Width(const Line& line) {
  int width = 0;
  for (const Span& span : line) width += Width(span.text);
  return width;
}

std::string Clean(std::string_view text, const Glyphs& glyphs) {
  std::string clean;
  for (std::size_t at = 0; at < text.size();) {
    const auto [code, length] = Decode(text, at);
    const char32_t wanted = code;
    const auto* sign =
        std::ranges::find_if(kSigns, [wanted](const Sign& known) { return known.code == wanted; });
    if (length == 1 && code >= 0x20 && code < 0x7F) {
      clean += text[at];
    } else if (length > 1 && sign != kSigns.end()) {
      clean += glyphs.ascii ? std::string(sign->ascii) : std::string(text.substr(at, length));
    } else {
      clean += code == U'\n' || code == U'\t' ? ' ' : '?';
    }
    at += std::max<std::size_t>(length, 1);
  }
  return clean;
}

std::string OneLine(std::string_view text) {
  const auto changes_the_terminal = [](char32_t code) {
    return code < 0x20 || (code >= 0x7F && code < 0xA0) ||  // C0, DEL, C1
           (code >= 0x2028 && code <= 0x202E) ||            // line ends, directions
           (code >= 0x2066 && code <= 0x2069) || code == 0x200E || code == 0x200F;
  };
  std::string line;
  for (std::size_t at = 0; at < text.size();) {
    const auto [code, length] = Decode(text, at);
    if (length > 0 && !changes_the_terminal(code)) {
      line += text.substr(at, length);
    } else {
      line += code == U'\n' || code == U'\t' ? ' ' : '?';
    }
    at += std::max<std::size_t>(length, 1);
  }
  return line;
}

std::string Pad(std::string text, int width) {
  const int missing = width - Width(text);
  if (missing > 0) text.append(static_cast<std::size_t>(missing), ' ');
  return text;
}

std::string Truncate(const std::string& text, int width, const Glyphs& glyphs) {
  if (Width(text) <= width) return text;
  const int kept = width - Width(glyphs.ellipsis);
  if (kept <= 0) return text.substr(0, BytesOf(text, std::max(width, 0)));
  return text.substr(0, BytesOf(text, kept)) + glyphs.ellipsis;
}

std::vector<std::string> Wrap(std::string_view text, int width) {
  width = std::max(width, 1);
  std::vector<std::string> lines;
  std::string line;
  while (!text.empty()) {
    const std::size_t blank = std::min(text.find(' '), text.size());
    std::string_view word = text.substr(0, blank);
    text.remove_prefix(std::min(blank + 1, text.size()));
    if (word.empty()) continue;
    if (!line.empty() && Width(line) + 1 + Width(word) > width)
      lines.push_back(std::exchange(line, ""));
    if (!line.empty()) line += ' ';
    // Never measures what is left: a word may be megabytes long.
    for (std::size_t room = BytesOf(word, width); room < word.size(); room = BytesOf(word, width)) {
      const std::size_t slash = word.substr(0, room).rfind('/');
      const std::size_t piece = slash == std::string_view::npos ? room : slash + 1;
      lines.push_back(std::string(word.substr(0, piece)));
      word.remove_prefix(piece);
    }
    line += word;
  }
  if (!line.empty() || lines.empty()) lines.push_back(std::move(line));
  return lines;
}

std::vector<std::string> JoinWrapped(const std::vector<std::string>& parts, int width,
                                     const Glyphs& glyphs) {
  std::vector<std::string> lines;
  for (const std::string& part : parts) {
    if (!lines.empty() && Width(lines.back()) + Width(glyphs.dot) + Width(part) <= width) {
      lines.back() += glyphs.dot + part;
      continue;
    }
    for (std::string& line : Wrap(part, width)) lines.push_back(std::move(line));
  }
  return lines;
}

Line Bar(double share, int cells, const Glyphs& glyphs) {
  share = std::isfinite(share) ? std::clamp(share, 0.0, 1.0) : 0.0;
  int filled = static_cast<int>(std::lround(share * cells));
  if (share > 0) filled = std::max(filled, 1);
  if (share < 1) filled = std::min(filled, cells - 1);
  std::string used;
  std::string unused;
  for (int i = 0; i < cells; ++i)
    (i < filled ? used : unused) += i < filled ? glyphs.used : glyphs.unused;
  return {{used, Style::kDevice}, {unused, Style::kDim}};
}

std::string HumanBytes(std::int64_t bytes) {
  constexpr std::array kUnits = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  double amount = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (std::abs(amount) >= 1023.5 && unit + 1 < kUnits.size()) {
    amount /= 1024;
    ++unit;
  }
  const double tenths = std::round(amount * 10) / 10;
  if (std::abs(tenths) >= 100 || tenths == std::floor(tenths)) {
    return fmt::format("{:.0f} {}", amount, kUnits[unit]);
  }
  return fmt::format("{:.1f} {}", tenths, kUnits[unit]);
}

std::string Count(std::int64_t count, const std::string& noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : noun.ends_with('h') ? "es" : "s");
}

std::string ShortList(const base::CpuSet& cpus, int width, const Glyphs& glyphs) {
  return Shorten(cpus, width, glyphs);
}
std::string ShortList(const base::NumaMask& nodes, int width, const Glyphs& glyphs) {
  return Shorten(nodes, width, glyphs);
}

Canvas::Canvas(int width, bool color, const Glyphs& glyphs)
    : width_(std::max(width, 20)), color_(color), glyphs_(&glyphs) {}

void Canvas::Put(std::string_view text, Style style) {
  if (!color_ || style == Style::kPlain) {
    text_ += text;
  } else if (!text.empty()) {
    text_ += Escape(style);
    text_ += text;
    text_ += "\x1b[0m";
  }
}

int Canvas::Put(const Line& line, int width) {
  int used = 0;
  const bool too_long = Width(line) > width;
  for (const Span& span : line) {
    const int room = width - used;
    if (room <= 0) break;
    const bool cut = too_long && Width(span.text) > room;
    const std::string text = cut ? Truncate(span.text, room, *glyphs_) : span.text;
    Put(text, span.style);
    used += Width(text);
  }
  return used;
}

void Canvas::EndLine() {
  while (text_.ends_with(' ')) text_.pop_back();
  text_ += '\n';
}

void Canvas::Text(const Line& line) {
  Put(line, width_);
  EndLine();
}

void Canvas::Blank() { EndLine(); }

void Canvas::BoxLine(const Line& line) {
  Put(glyphs_->vertical, Style::kDim);
  text_ += ' ';
  const int used = Put(line, inner_width());
  text_.append(static_cast<std::size_t>(inner_width() - used) + 1, ' ');
  Put(glyphs_->vertical, Style::kDim);
  EndLine();
}

void Canvas::Rule(const char* left, const Line& title, const char* right) {
  Put(fmt::format("{}{}", left, glyphs_->horizontal), Style::kDim);
  int used = 2;
  if (!title.empty()) {
    text_ += ' ';
    used += 2 + Put(title, width_ - 6);
    text_ += ' ';
  }
  std::string rest;
  for (; used < width_ - 1; ++used) rest += glyphs_->horizontal;
  Put(rest + right, Style::kDim);
  EndLine();
}

}  // namespace base
