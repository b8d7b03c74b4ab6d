#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <string>
#include <utility>

#include "placement/encode.h"
#include "placement/observation.h"
#include "test/placement/scene.h"

// One look at a node, from the facts to the bytes that are published, by number of pods.
namespace {

placement::Scene SceneWith(int pods) {
  placement::Scene scene(placement::Machine({{0, "0-127", std::int64_t{1} << 40, 0},
                                             {1, "128-255", std::int64_t{1} << 40, 1}}),
                         "0-1");
  scene.Policy("restricted", "pod");
  for (int i = 0; i < pods; ++i) {
    podresources::Container container;
    container.name = "main";
    container.cpus = placement::Cpus(fmt::format("{}", 2 + i));
    container.memory = {placement::Block(placement::kGiB, {i < 126 ? 0 : 1})};
    scene.Add(fmt::format("pod-{}", i), fmt::format("uid-{}", i), {container});
  }
  return scene;
}

void Observe(benchmark::State& state) {
  const placement::Scene scene = SceneWith(static_cast<int>(state.range(0)));
  while (state.KeepRunning()) benchmark::DoNotOptimize(scene.Look());
}
BENCHMARK(Observe)->Arg(0)->Arg(110)->Arg(250)->Unit(benchmark::kMicrosecond);

void EncodeNodePlacement(benchmark::State& state) {
  const placement::Observation seen = SceneWith(static_cast<int>(state.range(0))).Look();
  std::size_t bytes = 0;
  while (state.KeepRunning()) {
    const std::string json = placement::ToJson(seen.placement);
    bytes = json.size();
    benchmark::DoNotOptimize(json.data());
  }
  state.counters["bytes"] = static_cast<double>(bytes);
}
BENCHMARK(EncodeNodePlacement)->Arg(0)->Arg(110)->Arg(250)->Unit(benchmark::kMicrosecond);

}  // namespace
