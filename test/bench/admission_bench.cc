#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "base/cpu_set.h"
#include "kube/pod.h"
#include "placement/node_placement.h"
#include "scheduler/admission/admit.h"
#include "scheduler/admission/filter.h"
#include "scheduler/admission/request.h"
#include "scheduler/admission/state.h"

// One admission, exact, on machines of 2, 8 and 64 NUMA nodes; and one pod asked on 5,000 nodes.
namespace {

using scheduler::admission::Admit;
using scheduler::admission::Answer;
using scheduler::admission::Commit;
using scheduler::admission::Filter;
using scheduler::admission::MakeRequest;
using scheduler::admission::NodeState;
using scheduler::admission::Outcome;
using scheduler::admission::Request;
using scheduler::admission::StateFrom;
using scheduler::admission::Verdict;

constexpr std::int64_t kGiB = std::int64_t{1} << 30;
constexpr const char* kGpu = "nvidia.com/gpu";

struct Shape {
  int numa_nodes = 2;
  int cores = 64;  // of one NUMA node, two threads each
  int gpus = 4;    // of one NUMA node
  std::string policy = "single-numa-node";
  int nodes_with_all = 64;  // only so many NUMA nodes have CPUs and GPUs
  bool memory_static = true;
};

placement::NodePlacement Node(const Shape& shape) {
  placement::NodePlacement node;
  node.kubelet.version = "v1.37.2";
  node.kubelet.topology_policy = shape.policy;
  node.kubelet.topology_scope = "container";
  node.kubelet.topology_options = {{"max-allowable-numa-nodes", "64"}};
  node.kubelet.cpu_policy = "static";
  node.kubelet.memory_policy = shape.memory_static ? "Static" : "None";
  node.kubelet.reserved_memory = {{.numa_node = 0, .type = "memory", .bytes = kGiB}};
  const int with_all = std::min(shape.numa_nodes, shape.nodes_with_all);
  const int all_cores = with_all * shape.cores;
  node.kubelet.reserved_cpus = base::CpuSet{0, all_cores};
  for (int id = 0; id < shape.numa_nodes; ++id) {
    placement::NumaNodePlacement numa;
    numa.id = id;
    placement::CoreGroup group{.socket = id, .l3 = id, .cores = {}};
    for (int core = id * shape.cores; id < with_all && core < (id + 1) * shape.cores; ++core) {
      group.cores.push_back(base::CpuSet{core, all_cores + core});
      numa.cpus |= group.cores.back();
    }
    if (id < with_all) numa.core_groups.push_back(std::move(group));
    const std::int64_t reserved = id == 0 ? kGiB : 0;
    numa.memory = {{.type = "memory",
                    .capacity = 512 * kGiB,
                    .system_reserved = reserved,
                    .allocatable = 512 * kGiB - reserved,
                    .free = 512 * kGiB - reserved}};
    numa.memory_group = base::NumaMask{id};
    numa.memory_assignments = 0;
    for (int other = 0; other < shape.numa_nodes; ++other) {
      numa.distances[other] = other == id ? 10 : 20;
    }
    for (int gpu = 0; id < with_all && gpu < shape.gpus; ++gpu) {
      node.devices.push_back({.resource = kGpu,
                              .id = fmt::format("GPU-{:02}-{}", id, gpu),
                              .numa_nodes = base::NumaMask{id},
                              .pci_address = "",
                              .pci_numa_node = {}});
    }
    numa.free_cpus = numa.cpus - *node.kubelet.reserved_cpus;
    node.numa_nodes.push_back(std::move(numa));
  }
  return node;
}

kube::Pod PodOf(int cpus, std::int64_t memory, int gpus) {
  kube::Container container;
  container.name = "main";
  container.limits = {
      {kube::kCpu, cpus * std::int64_t{1000}}, {kube::kMemory, memory}, {kGpu, gpus}};
  kube::Pod pod;
  pod.uid = "pod";
  pod.containers.push_back(std::move(container));
  kube::ApplyDefaults(pod);
  pod.qos = kube::ComputeQos(pod);
  return pod;
}

NodeState StateOf(const Shape& shape) {
  absl::StatusOr<NodeState> state = StateFrom(Node(shape));
  return *std::move(state);
}

// A node where every second GPU and many CPUs are taken already.
void Fill(NodeState& state, int pods) {
  for (int i = 0; i < pods; ++i) {
    Verdict verdict = Admit(state, MakeRequest(PodOf(6 + i % 3, 20 * kGiB, 1)));
    if (verdict.admitted()) Commit(fmt::format("filler-{}", i), std::move(verdict), state);
  }
}

void AdmitOne(benchmark::State& state, const Shape& shape, int cpus, int gpus) {
  NodeState node = StateOf(shape);
  Fill(node, std::min(shape.numa_nodes, shape.nodes_with_all));
  const Request request = MakeRequest(PodOf(cpus, 100 * kGiB, gpus));
  bool admitted = false;
  while (state.KeepRunning()) {
    const Verdict verdict = Admit(node, request);
    admitted = verdict.admitted();
    benchmark::DoNotOptimize(&verdict);
  }
  state.counters["admitted"] = admitted ? 1 : 0;
}

// The answer without the allocation.
void AnswerOne(benchmark::State& state, const Shape& shape, int cpus, int gpus) {
  NodeState node = StateOf(shape);
  Fill(node, shape.numa_nodes);
  const Request request = MakeRequest(PodOf(cpus, 100 * kGiB, gpus));
  bool admitted = false;
  while (state.KeepRunning()) {
    admitted = Answer(node, request).admitted();
    benchmark::DoNotOptimize(admitted);
  }
  state.counters["admitted"] = admitted ? 1 : 0;
}
void AnswerSingle2(benchmark::State& state) { AnswerOne(state, {}, 16, 2); }
BENCHMARK(AnswerSingle2);
void AnswerRestricted2(benchmark::State& state) {
  AnswerOne(state, {.policy = "restricted"}, 16, 2);
}
BENCHMARK(AnswerRestricted2);
void AnswerRestricted8Of3(benchmark::State& state) {
  AnswerOne(state, {.numa_nodes = 8, .cores = 16, .gpus = 2, .policy = "restricted"}, 70, 5);
}
BENCHMARK(AnswerRestricted8Of3);

void Single2(benchmark::State& state) { AdmitOne(state, {}, 16, 2); }
BENCHMARK(Single2);
void Restricted2(benchmark::State& state) { AdmitOne(state, {.policy = "restricted"}, 16, 2); }
BENCHMARK(Restricted2);
void BestEffort2(benchmark::State& state) { AdmitOne(state, {.policy = "best-effort"}, 16, 4); }
BENCHMARK(BestEffort2);
void Single8(benchmark::State& state) {
  AdmitOne(state, {.numa_nodes = 8, .cores = 16, .gpus = 2}, 8, 1);
}
BENCHMARK(Single8);
void Restricted8(benchmark::State& state) {
  AdmitOne(state, {.numa_nodes = 8, .cores = 16, .gpus = 2, .policy = "restricted"}, 8, 1);
}
BENCHMARK(Restricted8);
void Restricted8Of3(benchmark::State& state) {
  AdmitOne(state, {.numa_nodes = 8, .cores = 16, .gpus = 2, .policy = "restricted"}, 70, 5);
}
BENCHMARK(Restricted8Of3);
void BestEffort8Spread(benchmark::State& state) {
  AdmitOne(state, {.numa_nodes = 8, .cores = 16, .gpus = 2, .policy = "best-effort"}, 30, 4);
}
BENCHMARK(BestEffort8Spread);
// 64 NUMA nodes, 8 of them with CPUs and GPUs: the kubelet itself lists all sets of these.
Shape SixtyFour(const char* policy) {
  return {.numa_nodes = 64,
          .cores = 16,
          .gpus = 2,
          .policy = policy,
          .nodes_with_all = 8,
          .memory_static = false};
}
void Single64(benchmark::State& state) { AdmitOne(state, SixtyFour("single-numa-node"), 8, 1); }
BENCHMARK(Single64);
void Restricted64(benchmark::State& state) { AdmitOne(state, SixtyFour("restricted"), 8, 1); }
BENCHMARK(Restricted64);
void Restricted64Of3(benchmark::State& state) { AdmitOne(state, SixtyFour("restricted"), 70, 5); }
BENCHMARK(Restricted64Of3);

// 5,000 nodes of two kinds in mixed states.
std::vector<std::shared_ptr<const NodeState>> Cluster() {
  const NodeState small = StateOf({});
  const NodeState large = StateOf({.numa_nodes = 8, .cores = 16, .gpus = 2});
  std::vector<std::shared_ptr<const NodeState>> nodes;
  for (int i = 0; i < 5000; ++i) {
    NodeState node = i % 5 == 0 ? large : small;
    Fill(node, i % 9);
    nodes.push_back(std::make_shared<const NodeState>(std::move(node)));
  }
  return nodes;
}

void Filter5000(benchmark::State& state) {
  const std::vector<std::shared_ptr<const NodeState>> nodes = Cluster();
  const Request request = MakeRequest(PodOf(16, 100 * kGiB, 2));
  std::int64_t fits = 0;
  while (state.KeepRunning()) {
    fits = std::ranges::count_if(Filter(request).Ask(nodes), &Outcome::admitted);
  }
  state.counters["fits"] = static_cast<double>(fits);
}
BENCHMARK(Filter5000)->Unit(benchmark::kMicrosecond);

// The next pod of the same shape, after so many nodes changed.
void FilterAgain5000(benchmark::State& state) {
  std::vector<std::shared_ptr<const NodeState>> nodes = Cluster();
  Filter filter(MakeRequest(PodOf(16, 100 * kGiB, 2)));
  filter.Ask(nodes);
  std::int64_t fits = 0;
  std::size_t next = 0;
  while (state.KeepRunning()) {
    for (int i = 0; i < state.range(0); ++i) {
      std::shared_ptr<const NodeState>& node = nodes[(next += 37) % nodes.size()];
      node = std::make_shared<const NodeState>(*node);
    }
    fits = std::ranges::count_if(filter.Ask(nodes), &Outcome::admitted);
  }
  state.counters["fits"] = static_cast<double>(fits);
}
BENCHMARK(FilterAgain5000)->Arg(1)->Arg(50)->Unit(benchmark::kMicrosecond);

}  // namespace
