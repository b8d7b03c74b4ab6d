#include "test/scheduler/cluster.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

// The ledger beside a simulated cluster (cluster.h). The program `interleavings` runs as many as
// one likes, and prints a failing one for the folder of kept ones.
namespace test {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int kRuns = 200;
#else
constexpr int kRuns = 5000;
#endif

std::vector<std::filesystem::path> Kept() {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator("test/scheduler/interleavings")) {
    files.push_back(entry.path());
  }
  std::ranges::sort(files);
  return files;
}

TEST(Interleavings, LeaveTheAccountsRightWhateverHappensInWhateverOrder) {
  for (std::uint64_t seed = 0; seed < kRuns; ++seed) {
    const Interleaving run = AnyInterleaving(seed);
    const std::string wrong = test::Run(run);
    ASSERT_EQ(wrong, "") << "seed " << seed << ", shrunk:\n" << ToText(Shrink(run));
  }
}

TEST(Interleavings, ThatWereKeptDoNotFail) {
  for (const std::filesystem::path& path : Kept()) {
    std::ifstream file(path);
    std::ostringstream text;
    text << file.rdbuf();
    const std::optional<Interleaving> run = ParseInterleaving(text.str());
    ASSERT_TRUE(run) << path;
    EXPECT_EQ(test::Run(*run), "") << path;
  }
}

TEST(Interleavings, ComeBackFromTextAsTheyWere) {
  const Interleaving run = AnyInterleaving(17);
  const std::optional<Interleaving> back = ParseInterleaving(ToText(run));
  ASSERT_TRUE(back);
  EXPECT_EQ(ToText(*back), ToText(run));
}

}  // namespace
}  // namespace test
