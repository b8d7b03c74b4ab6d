#include "test/support/temp_tree.h"

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <stdexcept>

namespace test {

namespace fs = std::filesystem;

TempTree::TempTree() {
  std::string pattern = (fs::temp_directory_path() / "plumbline-XXXXXX").string();
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
