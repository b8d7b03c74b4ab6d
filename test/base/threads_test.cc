// Run under ThreadSanitizer as well.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <thread>
#include <vector>

#include "base/file_tree.h"
#include "test/support/temp_tree.h"

namespace base {
namespace {

// Reads all of the tree; how many answers were wrong.
int ReadAll(const FileTree& files) {
  int wrong = 0;
  for (int round = 0; round < 20; ++round) {
    for (const char* name : {"0", "1", "2"}) {
      wrong += files.ReadTrimmed(std::string("sys/") + name).value_or("") == name ? 0 : 1;
    }
    wrong += files.List("sys").value_or(std::vector<std::string>()).size() == 3 ? 0 : 1;
    wrong += files.Exists("sys/absent") ? 1 : 0;
  }
  return wrong;
}

TEST(FileTree, IsReadByManyThreadsAtOnce) {
  test::TempTree tree;
  tree.Put("sys/0", "0\n").Put("sys/1", "1\n").Put("sys/2", "2\n");
  const FileTree files = tree.Open();
  std::array<int, 4> wrong = {-1, -1, -1, -1};
  std::vector<std::thread> threads;
  threads.reserve(wrong.size());
  for (int& count : wrong) {
    threads.emplace_back([&files, &count] { count = ReadAll(FileTree(files)); });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(wrong, testing::Each(0));
}

}  // namespace
}  // namespace base
