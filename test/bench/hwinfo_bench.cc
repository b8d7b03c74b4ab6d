#include <benchmark/benchmark.h>
#include <fmt/format.h>
#include <hwloc.h>

#include <cstdlib>
#include <memory>
#include <string>

#include "hwinfo/read.h"
#include "test/support/temp_tree.h"

// Reading the demo's machine, beside hwloc's own discovery of the same tree.
namespace {

const test::TempTree& DemoTree() {
  static const test::TempTree tree;
  static const int laid = std::system(
      fmt::format("bash '{}/demo/machine/lay-down' '{}'", PLUMBLINE_SOURCE_DIR, tree.root())
          .c_str());
  if (laid != 0) std::abort();
  return tree;
}

void BM_HwlocAlone(benchmark::State& state) {
  setenv("HWLOC_FSROOT", DemoTree().root().c_str(), 1);
  setenv("HWLOC_COMPONENTS", "linux,stop", 1);
  for (auto _ : state) {
    hwloc_topology_t topology = nullptr;
    hwloc_topology_init(&topology);
    hwloc_topology_set_flags(topology, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED);
    hwloc_topology_set_io_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_IMPORTANT);
    if (hwloc_topology_load(topology) != 0) state.SkipWithError("hwloc_topology_load failed");
    hwloc_topology_destroy(topology);
  }
  unsetenv("HWLOC_FSROOT");
}
BENCHMARK(BM_HwlocAlone)->Unit(benchmark::kMillisecond);

void BM_Read(benchmark::State& state) {
  const hwinfo::Source source{.root = DemoTree().root(), .xml = std::nullopt};
  for (auto _ : state) {
    const auto topology = hwinfo::Read(source);
    if (!topology.ok()) state.SkipWithError(std::string(topology.status().message()).c_str());
  }
}
BENCHMARK(BM_Read)->Unit(benchmark::kMillisecond);

}  // namespace
