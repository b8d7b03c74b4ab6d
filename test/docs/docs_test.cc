// The documents say what the sources do. Tests run in the project's root.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <regex>
#include <set>
#include <string>

#include "test/support/files.h"

namespace {

using test::Slurp;
using testing::HasSubstr;
using testing::IsSubsetOf;

// All files of a folder with this ending, one behind the other.
std::string SlurpAll(const std::string& folder, const std::string& ending) {
  std::string text;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ending) text += Slurp(entry.path());
  }
  return text;
}

// What the first group of a pattern finds.
std::set<std::string> Matches(const std::string& text, const std::string& pattern) {
  const std::regex regex(pattern);
  std::set<std::string> found;
  for (std::sregex_iterator match(text.begin(), text.end(), regex), end; match != end; ++match) {
    found.insert((*match)[1]);
  }
  return found;
}

// Codes of diagnostics: a string of its own, in CamelCase of two words or more, as the first value
// of a list or call.
std::set<std::string> CodesIn(const std::string& source) {
  return Matches(source, R"re((?:code = |\(|\{|diagnostics, )\s*"((?:[A-Z][a-z0-9]+){2,})")re");
}

// The words in backticks in the first column of a document's tables.
std::set<std::string> FirstColumn(const std::string& document) {
  std::set<std::string> words;
  for (const std::string& cell : Matches(document, R"(\n\| (`[^|]*) \|)")) {
    words.merge(Matches(cell, R"(`([^`]+)`)"));
  }
  return words;
}

TEST(Documents, NameEachDiagnosticOfARoom) {
  const std::set<std::string> hwinfo = CodesIn(SlurpAll("hwinfo", ".cc"));
  EXPECT_GE(hwinfo.size(), 17U);
  EXPECT_THAT(hwinfo, IsSubsetOf(FirstColumn(Slurp("docs/hwinfo.md"))));
  const std::set<std::string> kubelet =
      CodesIn(SlurpAll("podresources", ".cc") + Slurp("agent/reader.cc"));
  EXPECT_GE(kubelet.size(), 25U);
  EXPECT_THAT(kubelet,
              IsSubsetOf(FirstColumn(Slurp("docs/podresources.md") + Slurp("docs/kubelet.md"))));
}

TEST(Documents, NameNoDiagnosticThatThereIsNot) {
  const std::string sources =
      SlurpAll("hwinfo", ".cc") + SlurpAll("podresources", ".cc") + SlurpAll("agent", ".cc");
  for (const char* document : {"docs/hwinfo.md", "docs/kubelet.md"}) {
    for (const std::string& code : FirstColumn(Slurp(document))) {
      if (!std::regex_match(code, std::regex("(?:[A-Z][a-z0-9]+){2,}"))) continue;
      EXPECT_NE(sources.find('"' + code + '"'), std::string::npos) << document << ": " << code;
    }
  }
}

TEST(Documents, NameEachMetricAndNoOther) {
  const std::string pattern = "[\"`](plumbline_[a-z_]+)[\"`]";
  const std::set<std::string> metrics = Matches(Slurp("agent/metrics.cc"), pattern);
  EXPECT_GE(metrics.size(), 10U);
  EXPECT_EQ(Matches(Slurp("docs/agent.md"), pattern), metrics);
}

// All files below a folder with this ending.
std::string SlurpTree(const std::string& folder, const std::string& ending) {
  std::string text;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.path().extension() == ending) text += Slurp(entry.path());
  }
  return text;
}

TEST(Documents, NameTestsThatThereAre) {
  const std::string document = Slurp("docs/exporters.md");
  const std::string scenarios = SlurpTree("test/system/scenarios", ".py");
  const std::string units = SlurpTree("test", ".cc");
  const std::set<std::string> functions = Matches(document, "`(test_[a-z0-9_]+)`");
  EXPECT_GE(functions.size(), 6U);
  for (const std::string& name : functions) {
    EXPECT_THAT(scenarios, HasSubstr("def " + name + "(")) << name;
  }
  const std::set<std::string> tests = Matches(document, "`([A-Z][A-Za-z]+[.][A-Z][A-Za-z0-9]+)`");
  EXPECT_GE(tests.size(), 5U);
  for (const std::string& name : tests) {
    const std::size_t dot = name.find('.');
    EXPECT_THAT(units, HasSubstr("(" + name.substr(0, dot) + ", " + name.substr(dot + 1) + ")"));
  }
}

TEST(Documents, ShowThePictureThatIsDrawn) {
  EXPECT_THAT(Slurp("README.md"),
              HasSubstr("```\n" + Slurp("test/agent/golden/pods.txt") + "```\n"));
}

}  // namespace
