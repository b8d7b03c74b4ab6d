#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/cpu_set.h"

// Text for a terminal: columns are counted, not bytes, and nothing that came from outside can move
// the cursor or change a colour.
namespace base {

enum class Style { kPlain, kDim, kBold, kTitle, kDevice, kGood, kNote, kBad };

struct Span {
  std::string text;
  Style style = Style::kPlain;
};
using Line = std::vector<Span>;

// What the picture is drawn with. Every frame character is one column wide.
struct Glyphs {
  const char* horizontal;
  const char* vertical;
  const char* top_left;
  const char* top_right;
  const char* bottom_left;
  const char* bottom_right;
  const char* tee_left;
  const char* tee_right;
  const char* used;
  const char* unused;
  const char* dot;       // between parts of a line, with its blanks
  const char* times;     // 56 cores × 2 threads
  const char* ellipsis;  // something was left out
  bool ascii;
};
const Glyphs& UnicodeGlyphs();
const Glyphs& AsciiGlyphs();

// Columns of a text of which each code point is one column wide, as all text here is after Clean.
int Width(std::string_view text);
int Width(const Line& line);

// Makes text from outside harmless: control characters, invalid UTF-8 and characters of unsure
// width become '?'; in ASCII the few signs that messages use are spelled out.
std::string Clean(std::string_view text, const Glyphs& glyphs);
// The same for messages that no column depends on: only what could end the line or steer a terminal
// is replaced.
std::string OneLine(std::string_view text);

std::string Pad(std::string text, int width);
std::string Truncate(const std::string& text, int width, const Glyphs& glyphs);
// At blanks; a word longer than a line is cut into pieces, after a '/' if it has one. Never empty.
std::vector<std::string> Wrap(std::string_view text, int width);
// Joins parts by the dot into as few lines as fit; a part longer than a line is wrapped.
std::vector<std::string> JoinWrapped(const std::vector<std::string>& parts, int width,
                                     const Glyphs& glyphs);

// `share` of 0..1 filled; anything above 0 shows at least one cell, anything below 1 leaves one.
Line Bar(double share, int cells, const Glyphs& glyphs);

// "512 GiB", "1.5 TiB", "0 B": three digits are enough for the eye.
std::string HumanBytes(std::int64_t bytes);
// "8 pods", "1 pod".
std::string Count(std::int64_t count, const std::string& noun);

// The kernel's list if it fits; "every 2nd of 0-62" for interleaved ids; else its beginning and how
// many ids are left out.
std::string ShortList(const base::CpuSet& cpus, int width, const Glyphs& glyphs);
std::string ShortList(const base::NumaMask& nodes, int width, const Glyphs& glyphs);

// Collects lines, framed or not, and renders them; no line is ever wider than `width`.
class Canvas {
 public:
  Canvas(int width, bool color, const Glyphs& glyphs);

  const Glyphs& glyphs() const { return *glyphs_; }
  int width() const { return width_; }
  int inner_width() const { return width_ - 4; }  // inside a box

  void Text(const Line& line);
  void Blank();
  void BoxTop(const Line& title) { Rule(glyphs_->top_left, title, glyphs_->top_right); }
  void BoxLine(const Line& line);
  void BoxRule(const Line& title) { Rule(glyphs_->tee_left, title, glyphs_->tee_right); }
  void BoxBottom() { Rule(glyphs_->bottom_left, {}, glyphs_->bottom_right); }

  const std::string& text() const { return text_; }

 private:
  void Rule(const char* left, const Line& title, const char* right);
  // Appends as much of the line as fits in `width`; returns the columns used.
  int Put(const Line& line, int width);
  void Put(std::string_view text, Style style);
  void EndLine();

  int width_;
  bool color_;
  const Glyphs* glyphs_;
  std::string text_;
};

}  // namespace base
