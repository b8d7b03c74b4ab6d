#include "cli/simulation.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "scheduler/admission/admit.h"
#include "scheduler/admission/explain.h"
#include "scheduler/admission/node_sums.h"
#include "scheduler/admission/request.h"

namespace cli {
namespace {

namespace admission = scheduler::admission;
using admission::At;
using admission::Bits;
using admission::ToCpuSet;

// Amounts by position, before they are shared out.
struct Amounts {
  Bits cpus;
  std::vector<std::vector<std::int64_t>> memory;  // by NUMA node, then by type
  std::vector<Bits> devices;                      // by resource
};

Amounts TotalOf(const admission::Machine& machine) {
  Amounts total;
  total.cpus = machine.cpu.all - machine.reserved_cpus;
  for (const auto& tables : machine.memory) {
    std::vector<std::int64_t>& row = total.memory.emplace_back();
    for (const admission::Machine::NodeMemory& table : tables) row.push_back(table.allocatable);
  }
  for (const admission::DeviceResource& resource : machine.devices) {
    Bits& all = total.devices.emplace_back(static_cast<int>(resource.devices.size()));
    for (std::size_t i = 0; i < resource.devices.size(); ++i) all.Set(static_cast<int>(i));
  }
  return total;
}

Amounts FreeOf(const admission::Pool& pool) {
  Amounts free;
  free.cpus = pool.cpus;
  for (const admission::Pool::NodeMemory& memory : pool.memory) {
    free.memory.emplace_back(memory.free.begin(), memory.free.end());
  }
  for (const admission::Pool::Devices& devices : pool.devices) {
    free.devices.push_back(devices.healthy - devices.allocated);
  }
  return free;
}

Amounts Difference(const Amounts& before, const Amounts& after) {
  Amounts held = before;
  held.cpus -= after.cpus;
  for (std::size_t node = 0; node < held.memory.size(); ++node) {
    for (std::size_t type = 0; type < held.memory[node].size(); ++type) {
      held.memory[node][type] -= after.memory[node][type];
    }
  }
  for (std::size_t i = 0; i < held.devices.size(); ++i) held.devices[i] -= after.devices[i];
  return held;
}

std::vector<Share> ShareOut(const admission::Machine& machine, const Amounts& amounts) {
  std::vector<Share> shares;
  for (int node = 0; node < machine.numa_count(); ++node) {
    Share& share = shares.emplace_back();
    share.nodes.Insert(machine.numa_ids[At(node)]);
    if (machine.settings.cpu_static) {
      share.cpus = ToCpuSet(amounts.cpus & machine.cpu.in_numa[At(node)]);
    }
    for (std::size_t type = 0; machine.settings.memory_static && type < machine.memory_types.size();
         ++type) {
      if (!machine.memory[At(node)][type].present) continue;
      share.memory[machine.memory_types[type]] = amounts.memory[At(node)][type];
    }
  }
  for (std::size_t i = 0; i < machine.devices.size(); ++i) {
    const admission::DeviceResource& resource = machine.devices[i];
    for (std::size_t device = 0; device < resource.devices.size(); ++device) {
      const base::NumaMask nodes = machine.ToIds(resource.devices[device].nodes);
      auto share = std::ranges::find(shares, nodes, &Share::nodes);
      if (share == shares.end()) share = shares.insert(shares.end(), {nodes, {}, {}, {}});
      share->devices[resource.name] += amounts.devices[i].Test(static_cast<int>(device)) ? 1 : 0;
    }
  }
  return shares;
}

bool IsEmpty(const Share& share) {
  const auto none = [](const auto& entry) { return entry.second == 0; };
  return share.cpus.empty() && std::ranges::all_of(share.memory, none) &&
         std::ranges::all_of(share.devices, none);
}

// What is held: without the amounts and shares that are nothing.
std::vector<Share> WithoutEmpty(std::vector<Share> shares) {
  std::erase_if(shares, IsEmpty);
  for (Share& share : shares) {
    std::erase_if(share.memory, [](const auto& entry) { return entry.second == 0; });
    std::erase_if(share.devices, [](const auto& entry) { return entry.second == 0; });
  }
  return shares;
}

SimulatedContainer Describe(const admission::NodeState& state,
                            const admission::ContainerVerdict& verdict) {
  const admission::Machine& machine = *state.machine;
  SimulatedContainer container;
  container.name = verdict.name;
  if (verdict.has_affinity) container.affinity = machine.ToIds(verdict.affinity);
  container.preferred = verdict.preferred;
  container.cpus = ToCpuSet(verdict.holding.cpus);
  verdict.holding.cpus.ForEach([&](int cpu) {
    container.cpu_nodes.Insert(machine.numa_ids[At(machine.cpu.place[At(cpu)].numa)]);
  });
  for (const admission::MemoryBlock& block : verdict.holding.memory) {
    container.memory.push_back({.type = machine.memory_types[At(block.type)],
                                .bytes = block.bytes,
                                .numa_nodes = machine.ToIds(block.nodes)});
  }
  for (const auto& [position, bits] : verdict.holding.devices) {
    const admission::DeviceResource& resource = machine.devices[At(position)];
    const std::vector<std::string>& ids = (*state.device_ids)[At(position)];
    SimulatedDevices devices{.resource = resource.name, .ids = {}, .nodes = {}};
    bits.ForEach([&](int device) {
      devices.ids.push_back(ids[At(device)]);
      devices.nodes |= machine.ToIds(resource.devices[At(device)].nodes);
    });
    std::ranges::sort(devices.ids);
    container.devices.push_back(std::move(devices));
  }
  return container;
}

std::string Sentence(std::string text) {
  if (text.empty()) return text;
  if (text[0] >= 'a' && text[0] <= 'z') text[0] = static_cast<char>(text[0] - 'a' + 'A');
  return text + ".";
}

// What an admitted pod did not get though it asks for it, and why.
std::string NotGiven(const admission::Machine& machine, const kube::Pod& pod,
                     const admission::Request& request,
                     const std::optional<kube::Resources>& allocatable) {
  std::vector<std::string> sentences;
  for (const auto& [name, count] : request.pod.devices) {
    const bool told = machine.grade == admission::Grade::kExact;  // else some may be in no zone
    if (count == 0 || !told || machine.FindResource(name) >= 0) continue;
    if (allocatable && allocatable->contains(name)) continue;
    sentences.push_back(fmt::format(
        "The node has no {}: its kubelet does not look at that, and no scheduler would send the "
        "pod here.",
        name));
  }
  const bool wants_cpus = std::ranges::any_of(pod.containers, [](const kube::Container& container) {
    const std::int64_t milli = kube::Amount(container.requests, kube::kCpu);
    return milli > 0 && milli % 1000 == 0;
  });
  const admission::Settings& settings = machine.settings;
  if (wants_cpus && pod.qos != kube::Qos::kGuaranteed &&
      (settings.cpu_static || settings.memory_static)) {
    sentences.push_back(
        fmt::format("Its QoS class is {}: CPUs and memory of their own only pods of class "
                    "Guaranteed get.",
                    kube::ToString(pod.qos)));
  }
  return fmt::format("{}", fmt::join(sentences, " "));
}

class Simulator {
 public:
  explicit Simulator(Scene scene) : scene_(std::move(scene)) {
    if (scene_.allocatable) sums_.emplace(*scene_.allocatable);
  }

  Simulation Run() && {
    Simulation simulation;
    for (const kube::Pod& pod : scene_.pods) simulation.pods.push_back(Admit(pod));
    const admission::Machine& machine = *scene_.state.machine;
    simulation.total = ShareOut(machine, TotalOf(machine));
    simulation.free = ShareOut(machine, FreeOf(scene_.state.pool));
    simulation.node_name = std::move(scene_.node_name);
    simulation.kubelet = std::move(scene_.kubelet);
    simulation.notes = std::move(scene_.notes);
    if (!verified_) {
      simulation.notes.push_back(
          fmt::format("the prediction is not verified for kubelet {}",
                      simulation.kubelet.version.empty() ? "unknown" : simulation.kubelet.version));
    }
    return simulation;
  }

 private:
  SimulatedPod Admit(const kube::Pod& pod) {
    SimulatedPod outcome;
    outcome.namespace_name = pod.namespace_name;
    outcome.name = pod.name;
    if (scene_.pods_there.contains(pod.uid)) {
      outcome.verdict = SimulatedPod::Verdict::kAlreadyThere;
      outcome.why = "The node has this pod already.";
      return outcome;
    }
    admission::NodeState& state = scene_.state;
    const admission::Request request = admission::MakeRequest(pod);
    admission::Verdict verdict = admission::Admit(state, request);
    if (!verdict.verified_version) verified_ = false;
    const std::string out_of = verdict.admitted() && sums_ ? sums_->Check(pod) : "";
    if (!verdict.admitted()) {
      outcome.verdict =
          verdict.rejected() ? SimulatedPod::Verdict::kRefused : SimulatedPod::Verdict::kUnknown;
      outcome.reason = admission::KubeletReason(verdict);
      outcome.why = Sentence(admission::Explain(state, request, verdict).detail);
      admission::Commit(pod.uid, std::move(verdict), state);
    } else if (!out_of.empty()) {
      // What the managers gave is free again for the next admission.
      outcome.verdict = SimulatedPod::Verdict::kRefused;
      outcome.reason = out_of;
      outcome.why = Sentence(admission::ExplainOutOf(out_of).detail);
      admission::Commit(pod.uid, std::move(verdict), state);
      admission::Remove(state, pod.uid);
    } else {
      outcome.why = NotGiven(*state.machine, pod, request, scene_.allocatable);
      Accept(pod, std::move(verdict), outcome);
    }
    return outcome;
  }

  void Accept(const kube::Pod& pod, admission::Verdict verdict, SimulatedPod& outcome) {
    admission::NodeState& state = scene_.state;
    const admission::Machine& machine = *state.machine;
    bool preferred = true;
    for (const admission::ContainerVerdict& container : verdict.containers) {
      outcome.containers.push_back(Describe(state, container));
      preferred = preferred && container.preferred;
    }
    if (machine.settings.topology_policy == admission::TopologyPolicy::kBestEffort && !preferred) {
      if (!outcome.why.empty()) outcome.why += " ";
      outcome.why +=
          "Not aligned as the pod's resources prefer; best-effort admits it all the same.";
    }
    outcome.devices_may_differ = verdict.ambiguous_devices;
    outcome.held =
        WithoutEmpty(ShareOut(machine, Difference(FreeOf(state.pool), FreeOf(verdict.after))));
    admission::Commit(pod.uid, std::move(verdict), state);
    admission::Started(state, pod);
    if (sums_) sums_->Add(pod);
  }

  Scene scene_;
  std::optional<admission::NodeSums> sums_;  // nullopt: not checked
  bool verified_ = true;                     // every answer follows the kubelet's release exactly
};

}  // namespace

base::NumaMask SimulatedPod::nodes() const {
  base::NumaMask nodes;
  for (const Share& share : held) nodes |= share.nodes;
  return nodes;
}

int Simulation::Count(SimulatedPod::Verdict verdict) const {
  return static_cast<int>(std::ranges::count(pods, verdict, &SimulatedPod::verdict));
}

Simulation Simulate(Scene scene) { return Simulator(std::move(scene)).Run(); }

}  // namespace cli
