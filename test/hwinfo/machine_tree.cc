#include "test/hwinfo/machine_tree.h"

#include <fmt/format.h>

namespace test {
namespace {

// As sysfs writes a set for those who do not read lists, hwloc among them: "00000001,0000000f".
std::string MaskOf(const std::string& list) {
  const base::CpuSet cpus = base::CpuSet::Parse(list).value();
  int last = 0;
  for (const int cpu : cpus) last = cpu;
  std::string mask;
  for (int group = last / 32; group >= 0; --group) {
    unsigned bits = 0;
    for (int bit = 0; bit < 32; ++bit) bits |= cpus.Contains(group * 32 + bit) ? 1U << bit : 0U;
    mask += fmt::format("{}{:08x}", mask.empty() ? "" : ",", bits);
  }
  return mask + "\n";
}

}  // namespace

void PutCpu(TempTree& tree, int id, int socket, int core, const std::string& siblings) {
  const std::string folder = fmt::format("{}cpu{}/topology/", kCpuFolder, id);
  tree.Put(folder + "physical_package_id", fmt::format("{}\n", socket))
      .Put(folder + "core_id", fmt::format("{}\n", core))
      .Put(folder + "thread_siblings_list", siblings + "\n")
      .Put(folder + "thread_siblings", MaskOf(siblings));
}

void PutNode(TempTree& tree, int id, const std::string& cpus, long kibibytes,
             const std::string& distances) {
  const std::string folder = fmt::format("{}node{}/", kNodeFolder, id);
  tree.Put(folder + "cpulist", cpus + "\n")
      .Put(folder + "cpumap", MaskOf(cpus))
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
