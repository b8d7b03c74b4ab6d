#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "hwinfo/cpus_sysfs.h"
#include "hwinfo/derived.h"
#include "hwinfo/numa_sysfs.h"
#include "test/support/temp_tree.h"

// A small sysfs whose files have whatever content: the readers must not crash, and what they return
// must hold together. hwloc is left out; it takes 10 ms a tree.
namespace {

constexpr std::array<const char*, 20> kFiles = {
    "sys/devices/system/cpu/online",
    "sys/devices/system/cpu/present",
    "sys/devices/system/cpu/isolated",
    "sys/devices/system/cpu/cpu0/topology/physical_package_id",
    "sys/devices/system/cpu/cpu0/topology/core_id",
    "sys/devices/system/cpu/cpu0/topology/thread_siblings_list",
    "sys/devices/system/cpu/cpu0/cache/index3/level",
    "sys/devices/system/cpu/cpu0/cache/index3/shared_cpu_list",
    "sys/devices/system/cpu/cpu1/topology/thread_siblings",
    "sys/devices/system/cpu/cpu1/cache/index0/level",
    "sys/devices/system/cpu/cpu1/online",
    "sys/devices/system/node/online",
    "sys/devices/system/node/node0/cpulist",
    "sys/devices/system/node/node0/distance",
    "sys/devices/system/node/node0/meminfo",
    "sys/devices/system/node/node0/hugepages/hugepages-2048kB/nr_hugepages",
    "sys/devices/system/node/node1/cpumap",
    "sys/devices/system/node/node1/distance",
    "sys/devices/system/node/node1/meminfo",
    "proc/meminfo",
};

// Each file: its number, its length, its bytes; until the input ends.
void Fill(test::TempTree& tree, std::string_view input) {
  while (input.size() >= 2) {
    const auto file = static_cast<unsigned char>(input[0]) % kFiles.size();
    const auto length = static_cast<unsigned char>(input[1]);
    tree.Put(kFiles[file], std::string(input.substr(2, length)));
    input.remove_prefix(std::min<std::size_t>(input.size(), 2U + length));
  }
}

void Check(bool holds) {
  if (!holds) std::abort();
}

void ReadAll(const base::FileTree& root) {
  hwinfo::Topology topology;
  const auto cpus = hwinfo::ReadCpus(root, topology.diagnostics);
  if (!cpus.ok()) return;
  Check(!cpus->online.empty() &&
        cpus->cpus.size() == static_cast<std::size_t>(cpus->online.size()));
  topology.cpus = cpus->cpus;
  auto nodes = hwinfo::ReadNumaNodes(root, cpus->online, topology.diagnostics);
  if (nodes.ok()) {
    topology.numa_nodes = *nodes;
  } else {
    topology.numa_nodes = {hwinfo::ReadHostAsOneNode(root, cpus->online, topology.diagnostics)};
  }
  hwinfo::SettleOverlaps(root, topology);
  hwinfo::Derive(topology);
  Check(!topology.numa_nodes.empty());
  for (const hwinfo::NumaNode& node : topology.numa_nodes) {
    Check(node.cpus.IsSubsetOf(cpus->online));
    Check(node.memory_bytes.value_or(0) >= 0);
  }
  for (const hwinfo::Cpu& cpu : topology.cpus) Check(cpu.siblings.Contains(cpu.id));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  setenv("TMPDIR", "/dev/shm", 1);
  test::TempTree tree;
  tree.Put("sys/devices/system/cpu/cpu0/topology/core_id", "0\n");
  Fill(tree, {reinterpret_cast<const char*>(data), size});
  ReadAll(tree.Open());
  return 0;
}
