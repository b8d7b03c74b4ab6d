#include "test/hwinfo/machine_tree.h"

#include <fmt/format.h>

namespace test {

void PutCpu(TempTree& tree, int id, int socket, int core, const std::string& siblings) {
  const std::string folder = fmt::format("{}cpu{}/topology/", kCpuFolder, id);
  tree.Put(folder + "physical_package_id", fmt::format("{}\n", socket))
      .Put(folder + "core_id", fmt::format("{}\n", core))
      .Put(folder + "thread_siblings_list", siblings + "\n");
}

void PutNode(TempTree& tree, int id, const std::string& cpus, long kibibytes,
             const std::string& distances) {
  const std::string folder = fmt::format("{}node{}/", kNodeFolder, id);
  tree.Put(folder + "cpulist", cpus + "\n")
      .Put(folder + "distance", distances + "\n")
      .Put(folder + "meminfo",
           fmt::format("Node {0} MemTotal:  {1} kB\nNode {0} MemFree:  {2} kB\n", id, kibibytes,
                       kibibytes / 2));
}

void PutTwoSocketMachine(TempTree& tree) {
  for (int id = 0; id < 8; ++id) {
    const int first = id % 4;
    PutCpu(tree, id, first / 2, first % 2, fmt::format("{},{}", first, first + 4));
  }
  tree.Put(std::string(kCpuFolder) + "online", "0-7\n");
  tree.Put(std::string(kCpuFolder) + "present", "0-7\n");
  tree.Put(std::string(kNodeFolder) + "online", "0-1\n");
  PutNode(tree, 0, "0-1,4-5", 64L << 20, "10 21");
  PutNode(tree, 1, "2-3,6-7", 32L << 20, "21 10");
}

base::Diagnostic FindDiagnostic(const base::Diagnostics& diagnostics, std::string_view code,
                                std::string_view subject) {
  for (const base::Diagnostic& diagnostic : diagnostics) {
    if (diagnostic.code == code && (subject.empty() || diagnostic.subject == subject)) {
      return diagnostic;
    }
  }
  return {};
}

}  // namespace test
