#include "base/text_layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace base {
namespace {

using testing::ElementsAre;

TEST(Width, CountsColumnsNotBytes) {
  EXPECT_EQ(Width("abc"), 3);
  EXPECT_EQ(Width("a·█"), 3);
  EXPECT_EQ(Width(""), 0);
}

TEST(Clean, LetsNoControlSequenceThrough) {
  EXPECT_EQ(Clean("a\x1b[31mb\r\n\tc\x7f", UnicodeGlyphs()), "a?[31mb?  c?");
}

TEST(Clean, ReplacesInvalidUtf8AndSignsOfUnsureWidth) {
  EXPECT_EQ(Clean("\xff\xc3(x)\xe2\x80", UnicodeGlyphs()),
            "?"
            "?(x)?"
            "?");
  EXPECT_EQ(Clean("模型", UnicodeGlyphs()), "??");
}

TEST(Clean, TakesNoSignThatIsEncodedTooLong) {
  EXPECT_EQ(Clean("\xe0\x82\xb7", UnicodeGlyphs()), "???");  // U+00B7 in three bytes
  EXPECT_EQ(Clean("\xf0\x80\x82\xb7", UnicodeGlyphs()), "????");
}

TEST(OneLine, KeepsTextAndReplacesWhatSteersATerminal) {
  EXPECT_EQ(OneLine("/é/名"), "/é/名");
  EXPECT_EQ(OneLine("a\nb\x1b[31m\x7f\xc2\x9b\xe2\x80\xae\xff"), "a b?[31m????");
}

TEST(Clean, SpellsKnownSignsOutInAscii) {
  EXPECT_EQ(Clean("2 × H100 · 4…", UnicodeGlyphs()), "2 × H100 · 4…");
  EXPECT_EQ(Clean("2 × H100 · 4…", AsciiGlyphs()), "2 x H100 - 4...");
}

TEST(Wrap, BreaksAtBlanksAndCutsWordsThatAreTooLong) {
  EXPECT_THAT(Wrap("one two three", 7), ElementsAre("one two", "three"));
  EXPECT_THAT(Wrap("abcdefghij k", 4), ElementsAre("abcd", "efgh", "ij k"));
  EXPECT_THAT(Wrap("", 10), ElementsAre(""));
}

TEST(Wrap, CutsPathsBetweenTheirNames) {
  EXPECT_THAT(Wrap("/var/lib/kubelet/checkpoint is", 12),
              ElementsAre("/var/lib/", "kubelet/", "checkpoint", "is"));
  EXPECT_THAT(Wrap("/abcdefgh/x", 4), ElementsAre("/", "abcd", "efgh", "/x"));
}

TEST(Wrap, TakesNoLongerForAWordOfMegabytes) {
  EXPECT_EQ(Wrap(std::string(4 << 20, 'x'), 64).size(), std::size_t{4 << 20} / 64);
}

TEST(JoinWrapped, KeepsPartsTogetherWhereTheyFit) {
  EXPECT_THAT(JoinWrapped({"one", "two", "three"}, 9, UnicodeGlyphs()),
              ElementsAre("one · two", "three"));
}

TEST(Truncate, MarksWhatWasLeftOut) {
  EXPECT_EQ(Truncate("abcdef", 4, UnicodeGlyphs()), "abc…");
  EXPECT_EQ(Truncate("abcdef", 4, AsciiGlyphs()), "ab..");
  EXPECT_EQ(Truncate("abcd", 4, UnicodeGlyphs()), "abcd");
}

std::string BarText(double share) {
  const Line line = Bar(share, 4, AsciiGlyphs());
  return line[0].text + line[1].text;
}

TEST(Bar, IsEmptyOrFullOnlyIfItIs) {
  EXPECT_EQ(BarText(0), "....");
  EXPECT_EQ(BarText(0.001), "#...");
  EXPECT_EQ(BarText(0.5), "##..");
  EXPECT_EQ(BarText(0.999), "###.");
  EXPECT_EQ(BarText(1), "####");
  EXPECT_EQ(BarText(-1), "....");
}

TEST(HumanBytes, ShowsThreeDigitsAtMostBeforeTheUnitGrows) {
  EXPECT_EQ(HumanBytes(0), "0 B");
  EXPECT_EQ(HumanBytes(std::int64_t{512} << 30), "512 GiB");
  EXPECT_EQ(HumanBytes((std::int64_t{3} << 40) / 2), "1.5 TiB");
  EXPECT_EQ(HumanBytes((std::int64_t{1} << 40) - 1), "1 TiB");
  EXPECT_EQ(HumanBytes(-2048), "-2 KiB");
}

base::CpuSet Interleaved(int count) {
  base::CpuSet set;
  for (int i = 0; i < count; ++i) set.Insert(std::int64_t{2} * i);
  return set;
}

TEST(ShortList, IsTheKernelsListWhereItFits) {
  EXPECT_EQ(ShortList(base::CpuSet{0, 1, 2, 8}, 10, UnicodeGlyphs()), "0-2,8");
  EXPECT_EQ(ShortList(base::CpuSet{}, 10, UnicodeGlyphs()), "");
}

TEST(ShortList, SaysInterleavedIdsInWords) {
  EXPECT_EQ(ShortList(Interleaved(64), 30, UnicodeGlyphs()), "every 2nd of 0-126");
}

TEST(ShortList, SaysHowManyIdsItLeavesOut) {
  base::CpuSet set = Interleaved(32);
  set.Insert(63);
  EXPECT_EQ(ShortList(set, 20, UnicodeGlyphs()), "0,2,4,6,8,10,… +27");
  EXPECT_LE(Width(ShortList(set, 20, AsciiGlyphs())), 20);
}

TEST(Canvas, FramesLinesOfEqualWidth) {
  Canvas canvas(20, /*color=*/false, AsciiGlyphs());
  canvas.BoxTop({{"title"}});
  canvas.BoxLine({{"short"}});
  canvas.BoxLine({{"a line that is longer than the box"}});
  canvas.BoxBottom();
  EXPECT_EQ(canvas.text(),
            "+- title ----------+\n"
            "| short            |\n"
            "| a line that is.. |\n"
            "+------------------+\n");
}

TEST(Canvas, ColoursOnlyWhenAskedTo) {
  Canvas plain(20, /*color=*/false, AsciiGlyphs());
  plain.Text({{"bad", Style::kBad}});
  EXPECT_EQ(plain.text(), "bad\n");
  Canvas colored(20, /*color=*/true, AsciiGlyphs());
  colored.Text({{"bad", Style::kBad}});
  EXPECT_EQ(colored.text(), "\x1b[1;31mbad\x1b[0m\n");
}

}  // namespace
}  // namespace base
