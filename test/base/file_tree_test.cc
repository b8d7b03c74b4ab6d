#include "base/file_tree.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <thread>

#include "test/support/status.h"
#include "test/support/temp_tree.h"

namespace base {
namespace {

using absl::StatusCode;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(FileTree, ReadsFilesAndListsFoldersBelowItsRoot) {
  test::TempTree tree;
  tree.Put("sys/b", "2\n").Put("sys/a", "1\n");
  const FileTree files = tree.Open();
  EXPECT_EQ(files.Read("sys/a").value(), "1\n");
  EXPECT_EQ(files.ReadTrimmed("/sys/b").value(), "2");
  EXPECT_THAT(files.List("sys").value(), ElementsAre("a", "b"));
}

TEST(FileTree, FollowsAbsoluteLinksInsideTheRecordedMachineAndNotIntoTheHost) {
  test::TempTree tree;
  tree.Put("sys/devices/x/numa_node", "1\n").Link("sys/bus/x", "/sys/devices/x");
  const FileTree files = tree.Open();
  EXPECT_EQ(files.ReadTrimmed("sys/bus/x/numa_node").value(), "1");
  EXPECT_EQ(files.RealPath("sys/bus/x").value(), "sys/devices/x");
  EXPECT_EQ(files.ReadLink("sys/bus/x").value(), "/sys/devices/x");
}

TEST(FileTree, NeverLeavesItsRoot) {
  test::TempTree tree;
  tree.Link("out", "../../../../etc").Put("etc/passwd", "ours");
  EXPECT_EQ(tree.Open().Read("../../etc/passwd").value(), "ours");
  EXPECT_EQ(tree.Open().Read("out/passwd").value(), "ours");
}

TEST(FileTree, TellsEachFailureApartAndNamesTheFile) {
  test::TempTree tree;
  tree.Put("file", "x").Link("loop", "loop").Put("large", std::string(100, 'x'));
  ASSERT_EQ(mkfifo(tree.Path("fifo").c_str(), 0600), 0);
  const FileTree files = tree.Open();
  EXPECT_THAT(files.Read("absent"),
              test::StatusIs(StatusCode::kNotFound, HasSubstr("/absent: No such")));
  EXPECT_THAT(files.Read("file/below"),
              test::StatusIs(StatusCode::kNotFound, HasSubstr("/file/below")));
  EXPECT_THAT(files.Read("loop"), test::StatusIs(StatusCode::kInvalidArgument, HasSubstr("/loop")));
  EXPECT_THAT(files.Read("fifo"),
              test::StatusIs(StatusCode::kInvalidArgument, HasSubstr("no regular file")));
  EXPECT_THAT(files.Read("large", 99),
              test::StatusIs(StatusCode::kResourceExhausted, HasSubstr("99 bytes")));
  EXPECT_THAT(files.List("absent"), test::StatusIs(StatusCode::kNotFound, HasSubstr("/absent")));
  EXPECT_THAT(FileTree::Open(tree.Path("file")),
              test::StatusIs(StatusCode::kNotFound, HasSubstr("/file")));
}

// openat2 answers EAGAIN to a path with ".." when anything on the machine is renamed meanwhile.
TEST(FileTree, FollowsLinksAlsoWhileOtherFilesAreRenamed) {
  test::TempTree tree;
  tree.Put("sys/devices/x/class", "1").Link("sys/bus/x", "../devices/x/../x/../x/../x/../x");
  const test::TempTree other;
  std::atomic<bool> stop = false;
  std::thread renamer([&] {
    const std::string a = other.Path("a");
    const std::string b = other.Path("b");
    mkdir(a.c_str(), 0700);
    while (!stop) {
      rename(a.c_str(), b.c_str());
      rename(b.c_str(), a.c_str());
    }
  });
  const FileTree files = tree.Open();
  int failed = 0;
  for (int i = 0; i < 20'000; ++i) failed += files.Exists("sys/bus/x/class") ? 0 : 1;
  stop = true;
  renamer.join();
  EXPECT_EQ(failed, 0);
}

TEST(FileTree, SeesThatAFileWasReplaced) {
  test::TempTree tree;
  tree.Put("state", "a");
  const FileTree files = tree.Open();
  const FileInfo before = files.Stat("state").value();
  tree.Put("new", "a");
  ASSERT_EQ(rename(tree.Path("new").c_str(), tree.Path("state").c_str()), 0);
  EXPECT_NE(files.Stat("state").value().inode, before.inode);
}

}  // namespace
}  // namespace base
