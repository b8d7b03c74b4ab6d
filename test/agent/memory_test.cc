#include "agent/memory.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
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

// Whether a page is mapped; /proc/self/pagemap has 8 bytes for each, of which the highest bit says
// it.
bool IsPresent(const void* address) {
  const auto page = reinterpret_cast<std::uintptr_t>(address) /
                    static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  std::uint64_t entry = 0;
  const int pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
  const auto offset = static_cast<off_t>(page * sizeof entry);
  EXPECT_EQ(pread(pagemap, &entry, sizeof entry, offset), static_cast<ssize_t>(sizeof entry));
  close(pagemap);
  return (entry >> 63) == 1;
}

TEST(ProgramFiles, LeaveOnlyThePagesThatAreNeededAndAllThreadsGoOn) {
  const ProgramFiles files;
  std::string text = "unchanged";
  const long before = ResidentFileKib();
  std::jthread other([](const std::stop_token& stop) {
    while (!stop.stop_requested()) std::this_thread::yield();
  });
  files.GiveBackPages();
  EXPECT_LT(ResidentFileKib(), before / 2);
  std::ranges::reverse(text);
  EXPECT_EQ(text, "degnahcnu");
}

TEST(ProgramFiles, WereTakenForAllThatIsMappedByNowThoughThatMayMakeWayForData) {
  const ProgramFiles files;
  std::FILE* const file = std::tmpfile();
  ASSERT_NE(file, nullptr);
  std::fputs("mapped later", file);
  std::fflush(file);
  void* const later = mmap(nullptr, 1, PROT_READ, MAP_PRIVATE, fileno(file), 0);
  ASSERT_NE(later, MAP_FAILED);
  EXPECT_EQ(*static_cast<const char*>(later), 'm');
  files.GiveBackPages();
  EXPECT_TRUE(IsPresent(later));
  munmap(later, 1);
  std::fclose(file);
}

}  // namespace
}  // namespace agent
