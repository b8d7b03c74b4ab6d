#include "agent/memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <thread>

namespace agent {
namespace {

long ResidentFileKib() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    long kib = 0;
    if (word == "RssFile:" && status >> kib) return kib;
  }
  return -1;
}

TEST(GiveBackFilePages, LeavesOnlyWhatIsNeededAndAllThreadsGoOn) {
  std::string text = "unchanged";
  const long before = ResidentFileKib();
  std::jthread other([](const std::stop_token& stop) {
    while (!stop.stop_requested()) std::this_thread::yield();
  });
  GiveBackFilePages();
  EXPECT_LT(ResidentFileKib(), before / 2);
  std::ranges::reverse(text);
  EXPECT_EQ(text, "degnahcnu");
}

}  // namespace
}  // namespace agent
