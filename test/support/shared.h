#pragma once

#include <optional>
#include <string>
#include <vector>

#include "test/support/temp_tree.h"

// Recorded machines and answers live beside the project, in ../shared, and are read in place. Tests
// that need them skip where they are absent: use SKIP_WITHOUT_SHARED first.
namespace test {

// The folder's path; nothing where it is absent.
std::optional<std::string> SharedFolder();
// Files directly in a folder of ../shared, as paths from it, sorted:
// "machines/synthetic/dgx.tar.xz".
std::vector<std::string> SharedFiles(const std::string& folder, const std::string& ending);
std::string ReadShared(const std::string& path);
// Unpacks an archive of ../shared; returns the directory that holds sys/ (archives differ in
// depth).
std::string UnpackShared(const std::string& archive, const TempTree& into);

}  // namespace test

#define SKIP_WITHOUT_SHARED() \
  if (!::test::SharedFolder()) GTEST_SKIP() << "../shared is not beside the project"
