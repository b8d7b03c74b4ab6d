#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <string>

// Tests run in the project's root.
namespace hwinfo {
namespace {

std::string Slurp(const std::filesystem::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::set<std::string> Matches(const std::string& text, const std::string& pattern) {
  const std::regex regex(pattern);
  std::set<std::string> found;
  for (std::sregex_iterator match(text.begin(), text.end(), regex), end; match != end; ++match) {
    found.insert((*match)[1]);
  }
  return found;
}

TEST(DiagnosticCodes, OfHwinfoAreAllInItsManual) {
  std::set<std::string> used;
  for (const auto& entry : std::filesystem::directory_iterator("hwinfo")) {
    if (entry.path().extension() != ".cc") continue;
    // A code is a string of its own, in CamelCase of two words or more.
    used.merge(Matches(Slurp(entry.path()),
                       R"re((?:code = |\(|\{|diagnostics, )\s*"((?:[A-Z][a-z0-9]+){2,})")re"));
  }
  EXPECT_GE(used.size(), 17U);
  const std::set<std::string> documented =
      Matches(Slurp("docs/hwinfo.md"), R"(\| `([A-Za-z0-9]+)` \|)");
  for (const std::string& code : used) EXPECT_TRUE(documented.contains(code)) << code;
}

}  // namespace
}  // namespace hwinfo
