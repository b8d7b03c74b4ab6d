#include "test/scheduler/simulated_cluster.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace test {
namespace {

using scheduler::ledger::Event;
using scheduler::ledger::LeaseEnded;
using scheduler::ledger::Ledger;
using scheduler::ledger::Phase;
using scheduler::ledger::TimePassed;

constexpr std::chrono::milliseconds kReleaseTime{2000};  // a kubelet lets go of pods within
constexpr std::chrono::milliseconds kLookAtMost{4000};   // what an agent has to tell is told within
constexpr std::chrono::seconds kExportAtMost{60};        // and an exporter

}  // namespace

SimulatedCluster::SimulatedCluster(const Interleaving& run, Tally* tally,
                                   std::vector<Event>* events)
    : run_(run), tally_(tally), events_(events), ledger_(std::make_unique<Ledger>()) {
  Dice dice(run.seed);
  const int count = 1 + dice.Below(3);
  for (int i = 0; i < count; ++i) AddNode(fmt::format("n{}", i), dice);
  ListAll();
}

void SimulatedCluster::AddNode(const std::string& name, Dice& dice) {
  placement::NodePlacement facts = AnyMachine(dice);
  facts.node_name = name;
  facts.boot_id = name + "-boot-0";
  facts.kubelet.started_at = now_;
  Node& node = *nodes_.emplace_back(std::make_unique<Node>(name, std::move(facts)));
  node.uid = name + "-0";
  node.has_agent = !dice.Once(5);
  node.renewed = node.looked = now_;
  node.renew_at = now_ + kRenewTime;
  Look(node);
}

// ---- Which node, which pod

SimulatedNode& SimulatedCluster::NodeNamed(const std::string& name) const {
  return **std::ranges::find(nodes_, name, [](const auto& node) { return node->name; });
}

SimulatedNode& SimulatedCluster::AnyNodeOf(Dice& dice) {
  return *nodes_[static_cast<std::size_t>(dice.Below(static_cast<int>(nodes_.size())))];
}

// One of the pods for which `which` holds, or none.
SimulatedPod* SimulatedCluster::AnyPodThat(Dice& dice,
                                           const std::function<bool(const Pod&)>& which) {
  std::vector<Pod*> found;
  for (auto& [uid, pod] : pods_) {
    if (which(pod)) found.push_back(&pod);
  }
  if (found.empty()) return nullptr;
  return found[static_cast<std::size_t>(dice.Below(static_cast<int>(found.size())))];
}

SimulatedPod& SimulatedCluster::NewPod(Dice& dice) {
  const std::string uid = fmt::format("p{:02}", pods_.size());
  const Node& node = AnyNodeOf(dice);
  Pod pod;
  if (!shapes_.empty() && dice.Once(2)) {
    pod.facts.pod = shapes_[static_cast<std::size_t>(dice.Below(static_cast<int>(shapes_.size())))];
  } else {
    pod.facts.pod = AnyPodFor(node.facts, dice);
    shapes_.push_back(pod.facts.pod);
  }
  pod.facts.pod.uid = pod.facts.pod.name = uid;
  pod.facts.pod.namespace_name = "ns";
  pod.facts.created = now_;
  return pods_[uid] = std::move(pod);
}

// An agent that works has told what happened long before reconcile::kLookTime.
void SimulatedCluster::Wait(std::chrono::milliseconds time) {
  for (; time > kLookAtMost; time -= kLookAtMost) WaitShortly(kLookAtMost);
  WaitShortly(time);
}

void SimulatedCluster::WaitShortly(std::chrono::milliseconds time) {
  now_ += time;
  Dice dice(run_.seed);
  for (const auto& node : nodes_) {
    const std::chrono::milliseconds at_most = node->has_agent ? kLookAtMost : kExportAtMost;
    if (!node->agent_works || now_ - node->looked < at_most) continue;
    Look(*node);
    while (node->HasNews()) TellNode(*node, dice);
    node->looked = now_;
  }
  for (auto& [uid, pod] : pods_) {
    if (pod.bound && !pod.in_api && !pod.released && now_ - pod.forced_at >= kReleaseTime) {
      LetGo(pod);
    }
  }
  for (const auto& node : nodes_) Renew(*node);
  Tell(TimePassed{});
}

void SimulatedCluster::Do(const Step& step) {
  Dice dice(step.dice);
  now_ += std::chrono::milliseconds(dice.Below(50));
  switch (step.action) {
    case Action::kCreate:
      NewPod(dice);
      return;
    case Action::kSchedule:
      return Schedule(dice);
    case Action::kBind:
      return Bind(dice);
    case Action::kAdmit:
      return Admit(AnyNodeOf(dice), dice);
    case Action::kStart:
      return Start(dice);
    case Action::kEnd:
      return End(dice);
    case Action::kDelete:
      return Delete(dice);
    case Action::kRelease:
      return ReleaseOne(dice);
    case Action::kVanish:
      return Vanish(dice);
    case Action::kForce:
      return Force(dice);
    case Action::kLook:
      return Look(AnyNodeOf(dice));
    case Action::kTellPod:
      return TellPod();
    case Action::kTellNode: {
      Node& node = AnyNodeOf(dice);
      return TellNode(node, dice);
    }
    case Action::kForeign:
      return BindForeign(dice);
    case Action::kHealth:
      return ChangeHealth(dice);
    case Action::kKubelet:
      return RestartKubelet(dice);
    case Action::kScheduler:
      return RestartScheduler();
    case Action::kGap:
      return BreakWatches();
    case Action::kRecreate:
      return Recreate(dice);
    case Action::kAgent:
      return FlipAgent(dice);
    case Action::kWait:
      return Wait(std::chrono::milliseconds(dice.Once(8) ? dice.Below(60000) : dice.Below(3000)));
  }
}

void SimulatedCluster::BeQuiet() {
  in_flight_.clear();
  Dice dice(run_.seed);
  for (const auto& node : nodes_) {
    node->agent_works = true;
    while (!node->bound.empty()) Admit(*node, dice);
  }
  for (const auto& [uid, pod] : pods_) {
    if (!pod.bound) Tell(LeaseEnded{uid});
  }
  for (auto& [uid, pod] : pods_) {
    const bool runs = pod.admitted && !pod.released;
    if (runs && (pod.facts.terminating || !pod.in_api)) LetGo(pod);
    // Without an agent nobody can tell where a pod is before it runs.
    const bool starts = pod.admitted && !pod.released && !NodeOf(pod).has_agent;
    if (starts && pod.facts.phase == Phase::kPending) StartPod(pod);
    if (pod.in_api && pod.bound && pod.released && pod.facts.phase != Phase::kFailed) {
      pod.in_api = false;
      QueuePod(pod);
    }
  }
  while (!pod_events_.empty()) TellPod();
  for (const auto& node : nodes_) {
    Look(*node);
    while (node->HasNews()) TellNode(*node, dice);
  }
  for (int i = 0; i < 4; ++i) Wait(std::chrono::seconds(31));
}

void SimulatedCluster::Count(const std::string& what) {
  if (tally_ != nullptr) ++tally_->counts[what];
}

}  // namespace test
