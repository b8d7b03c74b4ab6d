#include "test/support/shared.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>

namespace test {

namespace fs = std::filesystem;

std::optional<std::string> SharedFolder() {
  const fs::path folder = fs::path(PLUMBLINE_SOURCE_DIR).parent_path() / "shared";
  if (!fs::exists(folder / "machines")) return std::nullopt;
  return folder.string();
}

std::vector<std::string> SharedFiles(const std::string& folder, const std::string& ending) {
  std::vector<std::string> files;
  if (!SharedFolder() || !fs::exists(fs::path(*SharedFolder()) / folder)) return files;
  for (const fs::directory_entry& entry :
       fs::directory_iterator(fs::path(*SharedFolder()) / folder)) {
    const std::string name = entry.path().filename().string();
    if (name.ends_with(ending)) files.push_back(folder + "/" + name);
  }
  std::ranges::sort(files);
  return files;
}

std::string ReadShared(const std::string& path) {
  std::ifstream file(fs::path(SharedFolder().value()) / path, std::ios::binary);
  if (!file) throw std::runtime_error("cannot read ../shared/" + path);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string UnpackShared(const std::string& archive, const TempTree& into) {
  const std::string command = fmt::format("tar -xf '{}/{}' -C '{}' --no-same-owner 2>/dev/null",
                                          SharedFolder().value(), archive, into.root());
  if (std::system(command.c_str()) != 0) throw std::runtime_error("failed: " + command);
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(into.root())) {
    if (entry.path().filename() == "sys" && entry.is_directory()) {
      return entry.path().parent_path().string();
    }
  }
  throw std::runtime_error("no sys/ in " + archive);
}

}  // namespace test
