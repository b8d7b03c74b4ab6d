#pragma once

#include <cstdint>
#include <vector>

// What keeps the process small. The agent is on every node, and what it has resident is not there
// for pods.
namespace agent {

// By itself glibc keeps twice the largest block that was ever given back, in an arena for each
// thread: of an agent with 5 MiB in use that makes 16. To be called before there is any other
// thread.
void KeepLittleFreeMemory();

// The program and the libraries that it was started with, as they are mapped into its memory. They
// stay there as long as it runs, which nothing does that is mapped later: where a file was, another
// thread may have data a moment after.
class ProgramFiles {
 public:
  // To be made before there is any other thread.
  ProgramFiles();

  // Gives their pages back; those that are needed are mapped again one by one, from the page cache.
  // Most have been needed once, to start: TLS, gRPC and hwloc set themselves up, symbols are bound.
  // Safe while other threads run.
  void GiveBackPages() const;

  struct Mapping {
    std::uintptr_t begin = 0;
    std::uintptr_t end = 0;
    bool writable = false;
    bool of_file = false;
    bool operator==(const Mapping&) const = default;
  };

 private:
  const std::vector<Mapping> mappings_;
};

}  // namespace agent
