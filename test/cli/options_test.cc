#include "cli/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>
#include <string>
#include <utility>
#include <vector>

#include "base/text_layout.h"
#include "test/support/files.h"

namespace cli {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

const base::Terminal kNoTerminal{.locale = "C.UTF-8"};

TEST(CommandLine, ReadsPodsNodeAndSettings) {
  const CommandLine line =
      ParseCommandLine({"simulate", "--policy", "restricted", "--scope=pod", "--cpu-option",
                        "full-pcpus-only=true", "--cpu-option=align-by-socket=false",
                        "--memory-policy", "Static", "--node", "node.yaml", "pods.yaml"},
                       kNoTerminal);
  ASSERT_TRUE(line.simulate) << line.err;
  EXPECT_EQ(line.simulate->file, "pods.yaml");
  EXPECT_EQ(line.simulate->node_file, "node.yaml");
  EXPECT_EQ(line.simulate->settings.policy, "restricted");
  EXPECT_EQ(line.simulate->settings.scope, "pod");
  EXPECT_EQ(line.simulate->settings.cpu_policy, std::nullopt);
  EXPECT_EQ(line.simulate->settings.memory_policy, "Static");
  EXPECT_EQ(line.simulate->settings.cpu_options.at("full-pcpus-only"), "true");
  EXPECT_EQ(line.simulate->settings.cpu_options.at("align-by-socket"), "false");
  EXPECT_EQ(line.simulate->look.width, 80);
  EXPECT_FALSE(line.simulate->look.color);
  EXPECT_FALSE(line.simulate->look.ascii);
}

TEST(CommandLine, TakesADashForStandardInput) {
  const CommandLine line = ParseCommandLine({"simulate", "-"}, kNoTerminal);
  ASSERT_TRUE(line.simulate) << line.err;
  EXPECT_EQ(line.simulate->file, "-");
}

TEST(CommandLine, ColoursATerminalUnlessToldNotTo) {
  base::Terminal terminal{.locale = "en_US.utf8", .is_terminal = true, .columns = 132};
  EXPECT_TRUE(ParseCommandLine({"simulate", "x"}, terminal).simulate->look.color);
  EXPECT_EQ(ParseCommandLine({"simulate", "x"}, terminal).simulate->look.width, 132);
  EXPECT_FALSE(
      ParseCommandLine({"simulate", "x", "--color", "never"}, terminal).simulate->look.color);
  terminal.no_color = true;
  EXPECT_FALSE(ParseCommandLine({"simulate", "x"}, terminal).simulate->look.color);
  EXPECT_TRUE(ParseCommandLine({"simulate", "x"}, {.locale = "C"}).simulate->look.ascii);
}

TEST(CommandLine, RefusesInOneLineWithCode2) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> wrong = {
      {{}, "subcommand"},
      {{"simulat"}, "there is no command simulat"},
      {{"simulate"}, "FILE is missing"},
      {{"simulate", "a", "b"}, "b"},
      {{"simulate", "a", "--polcy", "x"}, "--polcy"},
      {{"simulate", "a", "--policy", "strict"}, "--policy"},
      {{"simulate", "a", "--cpu-option", "full-pcpus-only"}, "give NAME=VALUE"},
      {{"simulate", "a", "--cpu-option", "smt=true"}, "there is none of this name"},
      {{"simulate", "-", "--node", "-"}, "cannot both be standard input"},
      {{"simulate", "a", "--live"}, "go with --recorded"},
      {{"simulate", "a", "--recorded", "b"}, "takes no further FILE"},
      {{"simulate", "--recorded", "b", "--policy", "none"}, "from the recording"},
      {{"simulate", "--recorded", "b", "--show", "-1"}, "--show"},
      {{"replay"}, "LOG is required"},
      {{"replay", "log", "-o", "xml"}, "--output"}};
  for (const auto& [arguments, why] : wrong) {
    const CommandLine line = ParseCommandLine(arguments, kNoTerminal);
    EXPECT_FALSE(line.simulate);
    EXPECT_EQ(line.exit_code, kExitWrongInput);
    EXPECT_EQ(line.out, "");
    EXPECT_THAT(line.err, StartsWith("plumbline"));
    EXPECT_THAT(line.err, HasSubstr(why));
    EXPECT_THAT(line.err, Not(HasSubstr("\n")));
  }
}

TEST(CommandLine, HelpFitsIntoATerminal) {
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"--help"}, std::vector<std::string>{"simulate", "--help"},
        std::vector<std::string>{"replay", "--help"}}) {
    const CommandLine line = ParseCommandLine(arguments, kNoTerminal);
    EXPECT_EQ(line.exit_code, kExitOk);
    EXPECT_EQ(line.err, "");
    EXPECT_GT(test::Lines(line.out).size(), 5U);
    for (const std::string& text : test::Lines(line.out)) EXPECT_LE(base::Width(text), 80) << text;
  }
  EXPECT_THAT(ParseCommandLine({"--version"}, kNoTerminal).out, StartsWith("plumbline 0."));
}

TEST(CommandLine, HasADocumentThatNamesEachOption) {
  const std::string help = ParseCommandLine({"simulate", "--help"}, kNoTerminal).out;
  const std::string document = test::Slurp("docs/simulate.md");
  const std::regex option("\n  (?:-[a-z],)?(--[a-z-]+)");
  int found = 0;
  for (std::sregex_iterator match(help.begin(), help.end(), option), end; match != end; ++match) {
    if ((*match)[1] == "--help") continue;
    EXPECT_THAT(document, HasSubstr("`" + (*match)[1].str() + "`"));
    ++found;
  }
  EXPECT_EQ(found, 13);
}

}  // namespace
}  // namespace cli
