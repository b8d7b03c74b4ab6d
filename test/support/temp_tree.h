#pragma once

#include <string>

#include "base/file_tree.h"

namespace test {

// A directory of its own that goes with the object; files are put in by name, folders come along.
// Below TMPDIR if that is set, else in memory if there is plenty (/dev/shm), else in /tmp.
class TempTree {
 public:
  TempTree();
  ~TempTree();
  TempTree(const TempTree&) = delete;
  TempTree& operator=(const TempTree&) = delete;

  TempTree& Put(const std::string& path, const std::string& content);
  TempTree& Link(const std::string& path, const std::string& target);
  TempTree& Folder(const std::string& path);
  void Remove(const std::string& path);

  const std::string& root() const { return root_; }
  std::string Path(const std::string& path) const { return root_ + "/" + path; }
  base::FileTree Open() const;

 private:
  std::string root_;
};

}  // namespace test
