#include <benchmark/benchmark.h>
#include <fmt/format.h>
#include <hwloc.h>

#include <cstdlib>
#include <string>

#include "hwinfo/read.h"
#include "test/support/temp_tree.h"

// Reading the demo's machine, beside hwloc's own discovery of the same tree.
namespace {

const std::string& DemoRoot() {
  static test::TempTree tree;
  static bool laid = std::system(fmt::format("bash '{}/demo/machine/lay-down' '{}'",
                                             PLUMBLINE_SOURCE_DIR, tree.root())
                                     .c_str()) == 0;
  if (!laid) std::abort();
  return tree.root();
}

void HwlocAlone(benchmark::State& state) {
  setenv("HWLOC_FSROOT", DemoRoot().c_str(), 1);
  setenv("HWLOC_COMPONENTS", "linux,stop", 1);
  while (state.KeepRunning()) {
    hwloc_topology_t topology = nullptr;
    hwloc_topology_init(&topology);
    hwloc_topology_set_flags(topology, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED);
    hwloc_topology_set_io_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_IMPORTANT);
    if (hwloc_topology_load(topology) != 0) state.SkipWithError("hwloc_topology_load failed");
    hwloc_topology_destroy(topology);
  }
  unsetenv("HWLOC_FSROOT");
}
BENCHMARK(HwlocAlone)->Unit(benchmark::kMillisecond);

void Read(benchmark::State& state) {
  const hwinfo::Source source{.root = DemoRoot(), .xml = std::nullopt};
  while (state.KeepRunning()) {
    const auto topology = hwinfo::Read(source);
    if (!topology.ok()) state.SkipWithError(std::string(topology.status().message()).c_str());
  }
}
BENCHMARK(Read)->Unit(benchmark::kMillisecond);

}  // namespace
