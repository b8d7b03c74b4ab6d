// A described machine, YAML or JSON: it is refused in words, or pods can be admitted to it and the
// answer be shown, with equal bytes each time.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "cli/scene.h"
#include "cli/simulation.h"
#include "cli/simulation_report.h"

namespace {

const char* const kPods = R"(
kind: Pod
metadata: {name: pinned}
spec:
  containers:
  - {name: a, resources: {limits: {cpu: 3, memory: 3Gi, hugepages-2Mi: 4Mi, example.com/gpu: 2}}}
---
kind: Pod
metadata: {name: shared}
spec:
  containers:
  - {name: b, resources: {requests: {cpu: 100m}}}
---
kind: Pod
metadata: {name: staged}
spec:
  initContainers:
  - {name: c, resources: {limits: {cpu: 2, memory: 1Gi, example.com/gpu: 1}}}
  containers:
  - {name: d, resources: {limits: {cpu: 1, memory: 2Gi, example.com/gpu: 1}}}
)";

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const cli::Source node{.name = "node", .text = std::string(data, data + size)};
  const auto scene = cli::ReadScene({.name = "pods", .text = kPods}, node, {});
  if (!scene.ok()) {
    if (scene.status().message().empty()) std::abort();
    return 0;
  }
  const cli::Simulation simulation = cli::Simulate(*scene);
  if (simulation.free.size() != simulation.total.size()) std::abort();
  if (cli::ToJson(simulation) != cli::ToJson(cli::Simulate(*scene))) std::abort();
  if (cli::ToText(simulation, {}).empty()) std::abort();
  return 0;
}
