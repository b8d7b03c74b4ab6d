// The documents say what the sources do. Tests run in the project's root.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <initializer_list>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "test/support/files.h"

namespace {

using test::Slurp;
using testing::HasSubstr;
using testing::IsSubsetOf;
using testing::SizeIs;

using Words = std::set<std::string>;

// All files of a folder with this ending, one behind the other.
std::string SlurpAll(const std::string& folder, const std::string& ending) {
  std::string text;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ending) text += Slurp(entry.path());
  }
  return text;
}

// What the first group of a pattern finds, in its order.
std::vector<std::string> MatchesInOrder(const std::string& text, const std::string& pattern) {
  const std::regex regex(pattern);
  std::vector<std::string> found;
  for (std::sregex_iterator match(text.begin(), text.end(), regex), end; match != end; ++match) {
    found.push_back((*match)[1]);
  }
  return found;
}
std::set<std::string> Matches(const std::string& text, const std::string& pattern) {
  const std::vector<std::string> found = MatchesInOrder(text, pattern);
  return {found.begin(), found.end()};
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

// The part of a document below a heading, up to the next one of its level.
std::string Section(const std::string& document, const std::string& heading) {
  const std::size_t begin = document.find("\n" + heading + "\n");
  if (begin == std::string::npos) return "";
  const std::string level = "\n" + heading.substr(0, heading.find(' ') + 1);
  return document.substr(begin, document.find(level, begin + 1) - begin);
}

Words Union(std::initializer_list<Words> sets) {
  Words all;
  for (const Words& words : sets) all.insert(words.begin(), words.end());
  return all;
}

bool IsCamelCase(const std::string& word) {
  return std::regex_match(word, std::regex("(?:[A-Z]+[a-z0-9]+)+"));
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

TEST(Documents, NameEachFlagAndNoOther) {
  const Words flags = Matches(
      Slurp("agent/options.cc"),
      R"re((?:add_flag|add_option|add|set_version_flag|set_help_flag)\(\s*"(?:-\w,)?(--[a-z-]+)")re");
  Words documented = FirstColumn(Section(Slurp("docs/agent.md"), "## Flags"));
  std::erase_if(documented, [](const std::string& word) { return !word.starts_with("--"); });
  EXPECT_GE(flags.size(), 20U);
  EXPECT_EQ(documented, flags);
}

TEST(Documents, NameEachConditionAndWhyItIsNotTrue) {
  std::string sources;
  for (const char* room : {"placement", "agent"}) {
    sources += SlurpAll(room, ".cc") + SlurpAll(room, ".h");
  }
  const std::string section = Section(Slurp("docs/nodeplacement.md"), "## Conditions");
  const Words types = Union({Matches(sources, R"re(\{"([A-Z]\w+)",\s*"(?:True|False|Unknown)")re"),
                             Matches(sources, R"re(k(?:Type|Condition)(?:\[\])? = "(\w+)")re")});
  EXPECT_THAT(types, SizeIs(12));
  EXPECT_EQ(FirstColumn(section), types);

  const Words reasons = Union(
      {Matches(sources,
               R"re((?:"[A-Z]\w+"|kType|kCondition),\s*"(?:False|Unknown)",\s*"([A-Z]\w+)")re"),
       Matches(sources, R"re(Note\(Outcome::\w+,\s*"([A-Z]\w+)")re"),
       Matches(Slurp("placement/conditions.cc"), R"re(return "([A-Z]\w+)";)re")});
  EXPECT_GE(reasons.size(), 20U);
  const Words documented = Matches(section, "`([^`]+)`");
  EXPECT_THAT(reasons, IsSubsetOf(documented));
  for (const std::string& word : documented) {
    if (!IsCamelCase(word)) continue;
    EXPECT_NE(sources.find('"' + word + '"'), std::string::npos) << word;
  }
}

TEST(Documents, NameEachAttributeOfNodeResourceTopology) {
  const std::string source = Slurp("placement/nrt.cc");
  const Words attributes = Matches(source, R"re(add\("(\w+)")re");
  EXPECT_GE(attributes.size(), 11U);
  const std::string document = Slurp("docs/nrt.md");
  EXPECT_EQ(FirstColumn(Section(document, "## Attributes")), attributes);
  const Words of_zones = Matches(source, R"re(\{\.name = "(\w+)")re");
  EXPECT_EQ(Matches(Section(document, "## Zones"), R"(\n\| attribute `(\w+)`)"), of_zones);
}

TEST(Documents, NameEachFieldOfNodePlacement) {
  std::string writer = Slurp("placement/encode.cc");
  writer = writer.substr(writer.find("void WriteManager"));
  writer = writer.substr(0, writer.find("void WriteAttributes"));  // of NodeResourceTopology
  Words fields = Matches(writer, R"re(\bf\.\w+\("(\w+)")re");
  EXPECT_GE(fields.size(), 60U);
  // Of every object.
  for (const char* name : {"apiVersion", "kind", "metadata", "ownerReferences", "status"}) {
    fields.erase(name);
  }
  EXPECT_THAT(fields, IsSubsetOf(Matches(Slurp("docs/nodeplacement.md"), R"(`(\w+)(?:\[\])?`)")));
}

// The head of the table that kubectl prints, by a definition: without what only -o wide shows.
std::vector<std::string> ColumnsOf(const std::string& definition) {
  std::vector<std::string> columns = {"NAME"};
  for (std::string name :
       MatchesInOrder(definition, R"(\n +- \{name: (\w+), (?![^\n]*priority: 1))")) {
    std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::toupper(c); });
    columns.push_back(std::move(name));
  }
  return columns;
}

TEST(Documents, ShowTheColumnsThatKubectlPrints) {
  const std::string documents = Slurp("README.md") + Slurp("docs/install.md");
  const std::map<std::string, std::string> definitions = {
      {"nodeplacements", "manifests/base/crd-nodeplacements.yaml"},
      {"noderesourcetopologies", "manifests/components/nrt-crd/crd-noderesourcetopologies.yaml"}};
  for (const auto& [kind, file] : definitions) {
    const Words heads = Matches(documents, "\\$ kubectl get " + kind + "\n([^\n]+)");
    EXPECT_THAT(heads, testing::Not(testing::IsEmpty())) << kind;
    for (const std::string& head : heads) {
      EXPECT_EQ(MatchesInOrder(head, R"((\S+))"), ColumnsOf(Slurp(file))) << kind;
    }
  }
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
