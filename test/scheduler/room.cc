#include "test/scheduler/room.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "scheduler/reconcile/holdings.h"

namespace scheduler::ledger {

using admission::At;
using admission::NodeState;

Room::Room(placement::NodePlacement node) : facts(std::move(node)), kubelet(facts) {
  facts.node_name = "n";
  facts.boot_id = "boot-0";
  facts.kubelet.started_at = now;
}

void Room::Add(const std::string& uid, const std::string& words) {
  PodFacts& pod = pods[uid];
  pod.pod = admission::PodOf(uid, words);
  pod.pod.namespace_name = "ns";
  pod.pod.node_name = "n";
  pod.created = now;
}

void Room::Bind(const std::string& uid, const std::string& words) {
  Add(uid, words);
  Apply(PodBound{pods[uid]});
}

void Room::BindElsewhere(const std::string& uid, const std::string& words) {
  Add(uid, words);
  Apply(PodChanged{pods[uid], false});
}

void Room::Lease(const std::string& uid, const std::string& words) {
  Add(uid, words);
  PodFacts unbound = pods[uid];
  unbound.pod.node_name = "";
  Apply(LeaseTaken{std::move(unbound), {"n"}, now + kLeaseTime});
}

void Room::Runs(const std::string& uid) {
  pods[uid].phase = Phase::kRunning;
  Apply(PodChanged{pods[uid], false});
}

void Room::Terminates(const std::string& uid) {
  pods[uid].terminating = true;
  Apply(PodChanged{pods[uid], false});
}

void Room::Succeeds(const std::string& uid) {
  pods[uid].phase = Phase::kSucceeded;
  Apply(PodChanged{pods[uid], false});
}

void Room::Fails(const std::string& uid, const std::string& reason) {
  pods[uid].phase = Phase::kFailed;
  pods[uid].reason = reason;
  Apply(PodChanged{pods[uid], false});
}

void Room::Vanishes(const std::string& uid) { Apply(PodGone{uid}); }

placement::NodePlacement Room::Published() const {
  placement::NodePlacement seen = kubelet.Published();
  seen.node_name = facts.node_name;
  seen.boot_id = facts.boot_id;
  seen.kubelet = facts.kubelet;
  seen.conditions = facts.conditions;
  seen.observed_at = now;
  for (placement::PlacedPod& pod : seen.pods) pod.namespace_name = "ns";
  for (const auto& [uid, held] : kubelet.state.pods) seen.known_pods.push_back(uid);
  return seen;
}

void Room::Observe() {
  Apply(PlacementChanged{Published()});
  Renew();
}

void Room::Renew() { Apply(AgentAlive{"n", now}); }

void Room::Wait(std::chrono::milliseconds time) {
  now += time;
  Apply(TimePassed{});
}

std::string Room::Ask(const std::string& words) const {
  const Prediction prediction =
      Predict(view(), admission::MakeRequest(admission::PodOf("asked", words)), "asked");
  if (prediction.certainty == Certainty::kYes) return "Yes";
  return fmt::format("{} {}", ToString(prediction.certainty), ToString(prediction.because));
}

std::string Room::Charged(const std::string& uid) const {
  const NodeView& node = view();
  const auto waiting = std::ranges::find(node.waiting, uid, &Waiting::uid);
  if (waiting != node.waiting.end()) {
    return fmt::format(
        "{} {}", ToString(waiting->standing),
        waiting->numa_nodes.empty() ? "nowhere" : "on " + waiting->numa_nodes.ToString());
  }
  const auto held = node.base->pods.find(uid);
  if (held == node.base->pods.end()) return "";
  const auto nodes = reconcile::NodesOf(*node.base->machine, held->second);
  return "Observed on " + node.base->machine->ToIds(nodes).ToString();
}

std::string Room::PerNode(int (*count)(const NodeState&, int)) const {
  std::vector<int> counts;
  const NodeState& state = *view().expected;
  for (int numa = 0; numa < state.machine->numa_count(); ++numa) {
    counts.push_back(count(state, numa));
  }
  return fmt::format("{}", fmt::join(counts, " "));
}

std::string Room::FreeCpus() const {
  return PerNode([](const NodeState& state, int numa) {
    return state.pool.cpus.CountCommon(state.machine->cpu.in_numa[At(numa)]);
  });
}

std::string Room::FreeGpus() const {
  return PerNode([](const NodeState& state, int numa) {
    const int gpu = state.machine->FindResource("nvidia.com/gpu");
    const auto free = state.pool.devices[At(gpu)].healthy - state.pool.devices[At(gpu)].allocated;
    return free.CountCommon(state.machine->devices[At(gpu)].on_node[At(numa)]);
  });
}

}  // namespace scheduler::ledger
