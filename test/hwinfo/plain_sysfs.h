#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

// A second, plain reading of sysfs, written without the code that it checks: naive, for tests.
namespace test {

struct PlainNode {
  std::set<int> cpus;
  std::optional<long> kibibytes;
  std::vector<int> distances;  // as the file has them
};

// "0-3,8" as a set; empty if the file is absent.
std::set<int> PlainList(const std::string& file);
// The nodes that have a folder and, if there is such a list, are in node/online.
std::map<int, PlainNode> PlainNodes(const std::string& root);
// numa_node of each PCI function.
std::map<std::string, int> PlainPciNodes(const std::string& root);

struct LscpuCpu {
  int socket = -1;
  int core = -1;
};
struct Lscpu {
  std::map<int, LscpuCpu> cpus;        // online; the kernel's socket and core ids
  std::map<int, std::set<int>> nodes;  // CPUs by NUMA node
};
// What lscpu says of a tree; nothing if it is not installed or cannot read the tree.
std::optional<Lscpu> RunLscpu(const std::string& root);

// The output of a command; nothing if it fails.
std::optional<std::string> Run(const std::string& command);

}  // namespace test
