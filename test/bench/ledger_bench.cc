#include <benchmark/benchmark.h>
#include <fmt/format.h>
#include <malloc.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kube/pod.h"
#include "placement/node_placement.h"
#include "scheduler/admission/admit.h"
#include "scheduler/admission/state.h"
#include "scheduler/ledger/ledger.h"
#include "scheduler/ledger/predict.h"

// A ledger of 5,000 nodes of 8 GPUs and 100,000 pods: what it takes, and what an event, a snapshot
// and a question cost.
namespace {

using scheduler::admission::NodeState;
using scheduler::ledger::AgentAlive;
using scheduler::ledger::Certainty;
using scheduler::ledger::Event;
using scheduler::ledger::LeaseTaken;
using scheduler::ledger::Ledger;
using scheduler::ledger::NodeChanged;
using scheduler::ledger::NodeViewPtr;
using scheduler::ledger::Phase;
using scheduler::ledger::PlacementChanged;
using scheduler::ledger::PodBound;
using scheduler::ledger::PodChanged;
using scheduler::ledger::PodFacts;
using scheduler::ledger::PodGone;
using scheduler::ledger::Predict;
using scheduler::ledger::Prediction;
using scheduler::ledger::Snapshot;

constexpr int kNodes = 5000;
constexpr int kPodsOfNode = 20;
constexpr std::int64_t kGiB = std::int64_t{1} << 30;
constexpr const char* kGpu = "nvidia.com/gpu";

std::string NodeName(int node) { return fmt::format("gpu-{:04}", node); }

// Two NUMA nodes of 64 cores, 512 GiB and 4 GPUs each.
placement::NodePlacement Machine(int number) {
  placement::NodePlacement node;
  node.node_name = NodeName(number);
  node.boot_id = fmt::format("boot-{}", number);
  node.kubelet.version = "v1.37.2";
  node.kubelet.topology_policy = "single-numa-node";
  node.kubelet.topology_scope = "container";
  node.kubelet.cpu_policy = "static";
  node.kubelet.memory_policy = "Static";
  node.kubelet.reserved_memory = {{.numa_node = 0, .type = "memory", .bytes = kGiB}};
  node.kubelet.reserved_cpus = base::CpuSet{0, 128};
  for (int id = 0; id < 2; ++id) {
    placement::NumaNodePlacement numa;
    numa.id = id;
    placement::CoreGroup group{.socket = id, .l3 = id, .cores = {}};
    for (int core = id * 64; core < (id + 1) * 64; ++core) {
      group.cores.push_back(base::CpuSet{core, 128 + core});
      numa.cpus |= group.cores.back();
    }
    numa.core_groups.push_back(std::move(group));
    const std::int64_t reserved = id == 0 ? kGiB : 0;
    const std::int64_t free = 512 * kGiB - reserved;
    numa.memory = {{.type = "memory",
                    .capacity = 512 * kGiB,
                    .system_reserved = reserved,
                    .allocatable = free,
                    .free = free}};
    numa.memory_group = base::NumaMask{id};
    numa.memory_assignments = 0;
    numa.distances = {{id, 10}, {1 - id, 20}};
    for (int gpu = 0; gpu < 4; ++gpu) {
      placement::PlacedDevice device;
      device.resource = kGpu;
      device.id = fmt::format("GPU-{:08x}-{:04x}-4c1e-9a57-{:012x}", number, id, gpu);
      device.numa_nodes = base::NumaMask{id};
      node.devices.push_back(std::move(device));
    }
    numa.free_cpus = numa.cpus - *node.kubelet.reserved_cpus;
    node.numa_nodes.push_back(std::move(numa));
  }
  return node;
}

// 6 of a node's 20 pods hold a GPU, the others are small.
kube::Pod PodSpec(int pod) {
  kube::Container container;
  container.name = "main";
  const bool gpu = pod % kPodsOfNode < 6;
  container.limits = {{kube::kCpu, gpu ? 12000 : 1000}, {kube::kMemory, (gpu ? 64 : 2) * kGiB}};
  if (gpu) container.limits[kGpu] = 1;
  kube::Pod spec;
  spec.containers.push_back(std::move(container));
  kube::ApplyDefaults(spec);
  spec.qos = kube::ComputeQos(spec);
  return spec;
}

PodFacts Facts(int node, int pod) {
  PodFacts facts;
  facts.pod = PodSpec(pod);
  facts.pod.uid = fmt::format("{:08x}-{:04x}-4c1e-9a57-0123456789ab", node, pod);
  facts.pod.namespace_name = "training";
  facts.pod.name = fmt::format("job-{}-worker-{}-x7k2p", node, pod);
  facts.pod.node_name = NodeName(node);
  facts.phase = Phase::kRunning;
  facts.created = facts.started = base::Time(std::chrono::hours(438000));
  return facts;
}

class Big {
 public:
  Big() {
    const std::size_t before = mallinfo2().uordblks;
    for (int node = 0; node < kNodes; ++node) Add(node);
    bytes = mallinfo2().uordblks - before;
  }
  Event At(decltype(Event::what) what) {
    now += std::chrono::milliseconds(1);
    return {now, std::move(what)};
  }

  base::Time now{std::chrono::hours(438000)};
  Ledger ledger;
  std::size_t bytes = 0;
  std::vector<placement::NodePlacement> observed;  // of the first nodes

 private:
  void Add(int node) {
    placement::NodePlacement placement = Machine(node);
    NodeState state = *scheduler::admission::StateFrom(placement);
    ledger.Apply(At(NodeChanged{placement.node_name, "uid", placement.boot_id, {}}));
    for (int pod = 0; pod < kPodsOfNode; ++pod) {
      const PodFacts facts = Facts(node, pod);
      Commit(facts.pod.uid, Admit(state, scheduler::admission::MakeRequest(facts.pod)), state);
      placement.known_pods.push_back(facts.pod.uid);
      ledger.Apply(At(PodChanged{facts, true}));
    }
    WriteState(state, placement);
    placement.observed_at = now;
    ledger.Apply(At(PlacementChanged{placement}));
    ledger.Apply(At(AgentAlive{placement.node_name, now}));
    if (node < 50) observed.push_back(std::move(placement));
  }
};

Big& Cluster() {
  static Big big;
  return big;
}

void Memory(benchmark::State& state) {
  Big& big = Cluster();
  while (state.KeepRunning()) benchmark::DoNotOptimize(&big);
  state.counters["MiB"] = static_cast<double>(big.bytes) / (1 << 20);
  state.counters["bytes/pod"] = static_cast<double>(big.bytes) / (kNodes * kPodsOfNode);
}
BENCHMARK(Memory)->Iterations(1);

void TakeSnapshot(benchmark::State& state) {
  Big& big = Cluster();
  while (state.KeepRunning()) {
    const Snapshot snapshot = big.ledger.Take();
    benchmark::DoNotOptimize(&snapshot);
  }
}
BENCHMARK(TakeSnapshot);

// Of a pod that is told again, with a snapshot held all the time: the list of nodes is copied.
void PodEventBesideSnapshot(benchmark::State& state) {
  Big& big = Cluster();
  int node = 0;
  while (state.KeepRunning()) {
    const Snapshot held = big.ledger.Take();
    node = (node + 1) % kNodes;
    big.ledger.Apply(big.At(PodChanged{Facts(node, 3), false}));
  }
}
BENCHMARK(PodEventBesideSnapshot);

void PodEvent(benchmark::State& state) {
  Big& big = Cluster();
  int node = 0;
  while (state.KeepRunning()) {
    node = (node + 1) % kNodes;
    big.ledger.Apply(big.At(PodChanged{Facts(node, 3), false}));
  }
}
BENCHMARK(PodEvent);

void PlacementEvent(benchmark::State& state) {
  Big& big = Cluster();
  std::size_t node = 0;
  while (state.KeepRunning()) {
    node = (node + 1) % big.observed.size();
    big.ledger.Apply(big.At(PlacementChanged{big.observed[node]}));
  }
}
BENCHMARK(PlacementEvent);

// A pod's life: lease on three nodes, bound, running, ended, gone; a snapshot taken at each step,
// as an extender does. One iteration is 1,000 events: what it takes is the load of so many a
// second.
void Churn1000(benchmark::State& state) {
  Big& big = Cluster();
  int pod = kPodsOfNode;
  while (state.KeepRunning()) {
    for (int event = 0; event < 1000; event += 5, ++pod) {
      const int node = pod % kNodes;
      PodFacts facts = Facts(node, pod);
      facts.phase = Phase::kPending;
      const auto apply = [&](decltype(Event::what) what) {
        const Snapshot held = big.ledger.Take();
        big.ledger.Apply(big.At(std::move(what)));
      };
      apply(
          LeaseTaken{facts,
                     {NodeName(node), NodeName((node + 1) % kNodes), NodeName((node + 2) % kNodes)},
                     big.now + std::chrono::seconds(2)});
      apply(PodBound{facts});
      facts.phase = Phase::kRunning;
      apply(PodChanged{facts, false});
      facts.phase = Phase::kSucceeded;
      apply(PodChanged{facts, false});
      apply(PodGone{facts.pod.uid});
    }
  }
}
BENCHMARK(Churn1000)->Unit(benchmark::kMillisecond);

// One pod asked on all nodes, as a filter would without remembering anything.
void AskAll(benchmark::State& state) {
  const Snapshot snapshot = Cluster().ledger.Take();
  const auto request = scheduler::admission::MakeRequest(PodSpec(0));
  int yes = 0;
  while (state.KeepRunning()) {
    yes = 0;
    for (const NodeViewPtr& view : snapshot.nodes()) {
      yes += Predict(*view, request).certainty == Certainty::kYes ? 1 : 0;
    }
  }
  state.counters["yes"] = yes;
}
BENCHMARK(AskAll)->Unit(benchmark::kMillisecond);

// One node on which four pods of two shapes wait.
void AskBesideWaiting(benchmark::State& state) {
  Ledger ledger;
  base::Time now{std::chrono::hours(438000)};
  placement::NodePlacement node = Machine(0);
  node.observed_at = now;
  ledger.Apply({now, PlacementChanged{node}});
  ledger.Apply({now, AgentAlive{node.node_name, now}});
  for (int pod = 4; pod < 8; ++pod) {
    PodFacts facts = Facts(0, pod);
    facts.phase = Phase::kPending;
    ledger.Apply({now, PodBound{facts}});
  }
  const Snapshot snapshot = ledger.Take();
  const auto request = scheduler::admission::MakeRequest(PodSpec(0));
  while (state.KeepRunning()) {
    const Prediction prediction = Predict(*snapshot.nodes().front(), request);
    benchmark::DoNotOptimize(&prediction);
  }
}
BENCHMARK(AskBesideWaiting);

}  // namespace
