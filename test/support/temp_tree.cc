#include "test/support/temp_tree.h"

#include <stdlib.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <stdexcept>

namespace test {

namespace fs = std::filesystem;

namespace {

// Memory, where there is plenty: a recorded machine is thousands of small files, which disks and
// overlays are slow to make and to take away. TMPDIR, where it is set, is somebody's wish.
fs::path Where() {
  constexpr char kMemory[] = "/dev/shm";
  constexpr std::uintmax_t kPlenty = std::uintmax_t{2} << 30;  // bytes; many tests run at once
  std::error_code error;
  const fs::space_info space = fs::space(kMemory, error);
  const bool plenty = !error && space.available >= kPlenty && access(kMemory, W_OK | X_OK) == 0;
  return plenty && getenv("TMPDIR") == nullptr ? fs::path(kMemory) : fs::temp_directory_path();
}

}  // namespace

TempTree::TempTree() {
  std::string pattern = (Where() / "plumbline-XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("mkdtemp " + pattern);
  root_ = pattern;
}

TempTree::~TempTree() {
  std::error_code ignored;
  fs::remove_all(root_, ignored);
}

TempTree& TempTree::Put(const std::string& path, const std::string& content) {
  fs::create_directories(fs::path(Path(path)).parent_path());
  std::ofstream file(Path(path), std::ios::binary);
  file << content;
  if (!file.flush()) throw std::runtime_error("cannot write " + Path(path));
  return *this;
}

TempTree& TempTree::Link(const std::string& path, const std::string& target) {
  fs::create_directories(fs::path(Path(path)).parent_path());
  fs::create_symlink(target, Path(path));
  return *this;
}

TempTree& TempTree::Folder(const std::string& path) {
  fs::create_directories(Path(path));
  return *this;
}

void TempTree::Remove(const std::string& path) { fs::remove_all(Path(path)); }

base::FileTree TempTree::Open() const { return base::FileTree::Open(root_).value(); }

}  // namespace test
