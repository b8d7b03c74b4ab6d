#include "agent/memory.h"

#include <malloc.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

namespace agent {
namespace {

using Mapping = ProgramFiles::Mapping;

// A mapping's first line in /proc/self/smaps:
//   7f2a…-7f2b… r-xp 00028000 fe:00 1234  /usr/lib/…/libc.so.6
std::optional<Mapping> ParseMapping(const std::string& line) {
  Mapping mapping;
  char access[5] = "";
  unsigned long inode = 0;
  if (std::sscanf(line.c_str(), "%lx-%lx %4s %*x %*s %lu", &mapping.begin, &mapping.end, access,
                  &inode) != 4) {
    return std::nullopt;
  }
  mapping.writable = access[1] == 'w';
  mapping.of_file = inode != 0;
  return mapping;
}

// Those that are as their files are: nothing is lost with their pages. Relocated data is read-only
// as well, and is the process's own: it counts as anonymous.
std::vector<Mapping> UnchangedFileMappings() {
  std::vector<Mapping> found;
  std::ifstream smaps("/proc/self/smaps");
  Mapping mapping;
  for (std::string line; std::getline(smaps, line);) {
    if (const auto next = ParseMapping(line)) mapping = *next;
    unsigned long anonymous_kib = 0;
    if (std::sscanf(line.c_str(), "Anonymous: %lu kB", &anonymous_kib) != 1) continue;
    if (mapping.of_file && !mapping.writable && anonymous_kib == 0) found.push_back(mapping);
  }
  return found;
}

}  // namespace

void KeepLittleFreeMemory() {
  constexpr int kBytes = 128 << 10;  // what glibc begins with
  mallopt(M_MMAP_THRESHOLD, kBytes);
  mallopt(M_TRIM_THRESHOLD, kBytes);
  mallopt(M_ARENA_MAX, 2);
}

ProgramFiles::ProgramFiles() : mappings_(UnchangedFileMappings()) {}

void ProgramFiles::GiveBackPages() const {
  for (const Mapping& mapping : UnchangedFileMappings()) {
    if (std::ranges::count(mappings_, mapping) == 0) continue;
    // A mapping that cannot be given back stays as it is.
    void* const begin =
        reinterpret_cast<void*>(mapping.begin);  // NOLINT(performance-no-int-to-ptr)
    madvise(begin, mapping.end - mapping.begin, MADV_DONTNEED);
  }
}

}  // namespace agent
