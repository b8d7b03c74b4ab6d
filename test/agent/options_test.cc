#include "agent/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <regex>
#include <set>
#include <string>

#include "test/support/files.h"

namespace agent {
namespace {

using testing::HasSubstr;

const Environment kTerminal = {.node_name = "",
                               .host_name = "GPU-7",
                               .locale = "en_US.UTF-8",
                               .no_color = false,
                               .is_terminal = true,
                               .columns = 132};

CommandLine Parse(std::vector<std::string> arguments, const Environment& environment = kTerminal) {
  arguments.insert(arguments.begin(), "--dry-run");
  return ParseCommandLine(arguments, environment);
}

TEST(Options, DefaultsShowThisHostAsThePictureThatFitsTheTerminal) {
  const CommandLine line = Parse({});
  ASSERT_TRUE(line.options) << line.err;
  EXPECT_EQ(line.options->output, OutputFormat::kText);
  EXPECT_EQ(line.options->root, "/");
  EXPECT_FALSE(line.options->root_given);
  EXPECT_EQ(line.options->width, 132);
  EXPECT_TRUE(line.options->color);
  EXPECT_FALSE(line.options->ascii);
}

TEST(Options, KnowThatARootWasGivenEvenIfItIsTheDefault) {
  ASSERT_TRUE(Parse({"--root", "/"}).options);
  EXPECT_TRUE(Parse({"--root", "/"}).options->root_given);
}

TEST(Options, TakeTheNodesNameFromTheFlagThenTheEnvironmentThenTheHost) {
  Environment environment = kTerminal;
  EXPECT_EQ(Parse({}, environment).options->node_name, "gpu-7");
  environment.node_name = "from-env";
  EXPECT_EQ(Parse({}, environment).options->node_name, "from-env");
  EXPECT_EQ(Parse({"--node-name", "from-flag"}, environment).options->node_name, "from-flag");
}

TEST(Options, ExcludeEachResourceThatIsNamed) {
  const CommandLine line = Parse(
      {"--exclude-resource", "memory", "--dry-run", "--exclude-resource", "example.com/fpga"});
  ASSERT_TRUE(line.options) << line.err;
  EXPECT_EQ(line.options->excluded_resources,
            (std::vector<std::string>{"memory", "example.com/fpga"}));
}

TEST(Options, ColourNeedsATerminalAndRespectsNoColorUnlessAskedFor) {
  Environment environment = kTerminal;
  environment.no_color = true;
  EXPECT_FALSE(Parse({}, environment).options->color);
  EXPECT_TRUE(Parse({"--color", "always"}, environment).options->color);
  environment = kTerminal;
  environment.is_terminal = false;
  EXPECT_FALSE(Parse({}, environment).options->color);
  EXPECT_FALSE(Parse({"--color", "never"}).options->color);
}

TEST(Options, DrawWithAsciiWhereTheLocaleIsNotUtf8) {
  Environment environment = kTerminal;
  for (const char* locale : {"", "C", "POSIX", "de_DE.ISO-8859-1"}) {
    environment.locale = locale;
    EXPECT_TRUE(Parse({}, environment).options->ascii) << locale;
  }
  for (const char* locale : {"C.UTF-8", "en_US.utf8"}) {
    environment.locale = locale;
    EXPECT_FALSE(Parse({}, environment).options->ascii) << locale;
    EXPECT_TRUE(Parse({"--ascii"}, environment).options->ascii) << locale;
  }
}

TEST(Options, KeepTheWidthBetweenItsBounds) {
  Environment environment = kTerminal;
  environment.columns = 20;
  EXPECT_EQ(Parse({}, environment).options->width, kMinWidth);
  environment.columns = 0;
  EXPECT_EQ(Parse({}, environment).options->width, 80);
  EXPECT_EQ(Parse({"--width", "100"}, environment).options->width, 100);
}

TEST(Options, RefuseWrongOnesWithOneLineAndCode2) {
  const std::vector<std::vector<std::string>> wrong = {
      {"-o", "xml"}, {"--colour"},       {"--width", "59"}, {"--width", "wide"},
      {"extra"},     {"--color", "red"}, {"--root"},        {"--log-level", "loud"}};
  for (const std::vector<std::string>& arguments : wrong) {
    const CommandLine line = Parse(arguments);
    EXPECT_FALSE(line.options) << arguments.front();
    EXPECT_EQ(line.exit_code, kExitWrongInput) << arguments.front();
    EXPECT_EQ(line.out, "") << arguments.front();
    EXPECT_EQ(std::ranges::count(line.err, '\n'), 1) << line.err;
    EXPECT_THAT(line.err, HasSubstr(arguments.front() == "-o" ? "--output" : arguments.front()));
  }
}

CommandLine ParsePublishing(const std::vector<std::string>& arguments) {
  return ParseCommandLine(arguments, kTerminal);
}

TEST(Options, WithoutADryRunPublishFromInsideTheClusterOnceASecondAtLeast) {
  const CommandLine line = ParsePublishing({});
  ASSERT_TRUE(line.options) << line.err;
  EXPECT_FALSE(line.options->dry_run);
  EXPECT_EQ(line.options->log_level, "info");
  const PublishOptions& publish = line.options->publish;
  EXPECT_EQ(publish.kubeconfig, std::nullopt);
  EXPECT_EQ(publish.name_space, "");
  EXPECT_EQ(publish.poll_interval, std::chrono::seconds(1));
  EXPECT_EQ(publish.nrt, NrtMode::kAuto);
  EXPECT_EQ(publish.metrics_port, std::nullopt);
  EXPECT_FALSE(publish.kai_annotation);
}

TEST(Options, TakeWhatTheDaemonSetGives) {
  const CommandLine line = ParsePublishing({"--root=/host", "--poll-interval=500ms", "--nrt=always",
                                            "--metrics-port=8080", "--kai-annotation"});
  ASSERT_TRUE(line.options) << line.err;
  EXPECT_EQ(line.options->root, "/host");
  EXPECT_EQ(line.options->publish.poll_interval, std::chrono::milliseconds(500));
  EXPECT_EQ(line.options->publish.nrt, NrtMode::kAlways);
  EXPECT_EQ(line.options->publish.metrics_port, 8080);
  EXPECT_TRUE(line.options->publish.kai_annotation);
}

TEST(Options, RefusePublishingThatCannotBeMeant) {
  const std::vector<std::vector<std::string>> wrong = {
      {"--output", "yaml"},        {"--poll-interval", "1"},     {"--poll-interval", "10ms"},
      {"--poll-interval", "2m"},   {"--poll-interval", "often"}, {"--nrt", "maybe"},
      {"--metrics-port", "65536"}, {"--tls-cert", "a.pem"},      {"--tls-key", "a.pem"}};
  for (const std::vector<std::string>& arguments : wrong) {
    const CommandLine line = ParsePublishing(arguments);
    EXPECT_FALSE(line.options) << arguments.front() << " " << arguments.back();
    EXPECT_EQ(line.exit_code, kExitWrongInput) << arguments.front();
    EXPECT_THAT(line.err, HasSubstr(arguments.front()));
  }
}

TEST(Options, HelpAndVersionAreNoFailure) {
  const CommandLine help = ParseCommandLine({"--help"}, kTerminal);
  EXPECT_EQ(help.exit_code, kExitOk);
  EXPECT_THAT(help.out, HasSubstr("Exit codes:"));
  EXPECT_THAT(help.out, HasSubstr("Examples:"));
  const CommandLine version = ParseCommandLine({"--version"}, kTerminal);
  EXPECT_EQ(version.exit_code, kExitOk);
  EXPECT_THAT(version.out, testing::MatchesRegex("plumbline-agent [0-9]+\\.[0-9]+\\.[0-9]+\n"));
}

TEST(Options, HelpFitsIn80Columns) {
  const std::string help = ParseCommandLine({"--help"}, kTerminal).out;
  std::size_t start = 0;
  for (std::size_t end = help.find('\n'); end != std::string::npos; end = help.find('\n', start)) {
    EXPECT_LE(end - start, 80U) << help.substr(start, end - start);
    start = end + 1;
  }
}

std::set<std::string> FlagsIn(const std::string& text) {
  static const std::regex kFlag("--[a-z][a-z-]*");
  std::set<std::string> flags;
  for (std::sregex_iterator at(text.begin(), text.end(), kFlag); at != std::sregex_iterator();
       ++at) {
    flags.insert(at->str());
  }
  return flags;
}

TEST(Options, DocumentationNamesTheFlagsThatHelpNames) {
  const std::string page = test::Slurp("docs/agent.md");
  ASSERT_NE(page, "") << "tests run in the source directory";
  const std::string flags =
      page.substr(page.find("## Flags"), page.find("## Output") - page.find("## Flags"));
  EXPECT_EQ(FlagsIn(flags), FlagsIn(ParseCommandLine({"--help"}, kTerminal).out));
}

}  // namespace
}  // namespace agent
