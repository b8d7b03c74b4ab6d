#include "test/scheduler/simulated_cluster.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "test/scheduler/any_node.h"
#include "test/scheduler/cluster_check.h"

namespace test {
namespace {

using reference::NaiveVerdict;
using scheduler::admission::AnyNodeOptions;
using scheduler::ledger::AgentAlive;
using scheduler::ledger::Event;
using scheduler::ledger::LeaseEnded;
using scheduler::ledger::Ledger;
using scheduler::ledger::Phase;
using scheduler::ledger::PodBound;
using scheduler::ledger::PodChanged;
using scheduler::ledger::PodFacts;
using scheduler::ledger::PodGone;
using scheduler::ledger::PodRejected;
using scheduler::ledger::TimePassed;

constexpr std::chrono::milliseconds kReleaseTime{2000};  // a kubelet lets go of pods within
constexpr std::chrono::seconds kRenewTime{30};
constexpr std::chrono::seconds kFirstRenewal{
    5};  // of an agent that starts, so long after it published
constexpr std::chrono::milliseconds kLookAtMost{4000};  // what an agent has to tell is told within
constexpr std::chrono::seconds kExportAtMost{60};       // and an exporter

// Rapidcheck's generators, outside of a property.
template <class Draw>
auto Drawn(std::uint64_t seed, Draw draw) {
  return rc::gen::exec(draw)(rc::Random(seed), rc::kNominalSize).value();
}

AnyNodeOptions SmallNodes() { return {.most_numa_nodes = 3, .pods_of_one_container = false}; }

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
  placement::NodePlacement facts =
      Drawn(dice.Roll(), [] { return scheduler::admission::AnyNode(SmallNodes()); });
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

// ---- What is told to the ledger

void SimulatedCluster::Tell(What what) {
  const Event event{now_, std::move(what)};
  Note(event);
  if (events_ != nullptr) events_->push_back(event);
  ledger_->Apply(event);
}

// Keeps up with what the ledger knows.
void SimulatedCluster::Note(const Event& event) {
  for (const auto& node : nodes_) node->Note(event);
  if (const auto* changed = std::get_if<PodChanged>(&event.what)) {
    told_[changed->pod.pod.uid] = changed->pod;
    heard_of_.insert(changed->pod.pod.uid);
  } else if (const auto* bound = std::get_if<PodBound>(&event.what)) {
    told_[bound->pod.pod.uid] = bound->pod;
    heard_of_.insert(bound->pod.pod.uid);
  } else if (const auto* gone = std::get_if<PodGone>(&event.what)) {
    told_.erase(gone->uid);
  } else if (const auto* rejected = std::get_if<PodRejected>(&event.what)) {
    rejected_.insert(rejected->uid);
  }
}

void SimulatedCluster::ListAll() {
  for (const auto& node : nodes_) {
    for (auto& watch : node->untold) watch.clear();
    for (What& object : node->Objects()) Tell(std::move(object));
    if (node->has_agent) Tell(AgentAlive{node->name, node->renewed});
  }
  ListPods();
}

void SimulatedCluster::ListPods() {
  pod_events_.clear();
  const std::map<std::string, PodFacts> told = told_;
  for (const auto& [uid, facts] : told) {
    if (!pods_.at(uid).in_api) Tell(PodGone{uid});
  }
  for (const auto& [uid, pod] : pods_) {
    if (pod.in_api && pod.bound) Tell(PodChanged{pod.facts, true});
  }
}

void SimulatedCluster::QueuePod(const Pod& pod) {
  if (pod.in_api) {
    pod_events_.push_back({now_, PodChanged{pod.facts, false}});
  } else {
    pod_events_.push_back({now_, PodGone{pod.facts.pod.uid}});
  }
}

void SimulatedCluster::TellPod() {
  if (pod_events_.empty()) return;
  Event event = std::move(pod_events_.front());
  pod_events_.pop_front();
  Tell(std::move(event.what));
}

void SimulatedCluster::TellNode(Node& node, Dice& dice) {
  Event event;
  if (node.NextNews(dice, event)) Tell(std::move(event.what));
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
    pod.facts.pod = Drawn(
        dice.Roll(), [&] { return scheduler::admission::AnyPod(node.facts, "", SmallNodes()); });
    shapes_.push_back(pod.facts.pod);
  }
  pod.facts.pod.uid = pod.facts.pod.name = uid;
  pod.facts.pod.namespace_name = "ns";
  pod.facts.created = now_;
  return pods_[uid] = std::move(pod);
}

// ---- Kubelets

void SimulatedCluster::Admit(Node& node, Dice& dice) {
  if (node.bound.empty()) return;
  const auto at =
      dice.Once(3) ? static_cast<std::size_t>(dice.Below(static_cast<int>(node.bound.size()))) : 0;
  Pod& pod = pods_.at(node.bound[at]);
  node.bound.erase(node.bound.begin() + static_cast<std::ptrdiff_t>(at));
  const Deed admission = node.AdmissionOf(pod.facts.pod, dice);
  const SimulatedKubelet before = node.kubelet;
  const NaiveVerdict verdict = node.kubelet.Do(admission);
  if (!verdict.reason.empty()) {
    Refuse(pod, admission, verdict.reason);
    if (pod.in_api && dice.Once(2)) Tell(PodRejected{pod.facts.pod.uid, verdict.reason});
  } else {
    Count("admitted");
    pod.admitted = true;
    pod.facts.started = now_;
  }
  node.deeds.push_back(admission);
}

void SimulatedCluster::Refuse(Pod& pod, const Deed& admission, const std::string& reason) {
  const Node& node = NodeOf(pod);
  pod.released = true;
  if (pod.foreign) {
    Count("refused: bound by others");
  } else if (!pod.promise) {
    Count("refused: bound by us with nothing promised");
  } else if (IsKept(*pod.promise, node, admission)) {
    Count("refused: behind what nobody could know");
  } else {
    wrong_ = fmt::format("{} refuses {} with {}, though it was to be admitted\n{}", node.name,
                         pod.facts.pod.uid, reason, Picture(node));
  }
  if (!pod.in_api) return;
  pod.facts.phase = Phase::kFailed;
  pod.facts.reason = reason;
  QueuePod(pod);
}

void SimulatedCluster::Start(Dice& dice) {
  Pod* pod = AnyPodThat(dice, [](const Pod& one) {
    return one.admitted && !one.released && one.in_api && one.facts.phase == Phase::kPending;
  });
  if (pod != nullptr) StartPod(*pod);
}

void SimulatedCluster::StartPod(Pod& pod) {
  NodeOf(pod).Do(Happened(Deed::Kind::kStart, pod.facts.pod));
  pod.facts.phase = Phase::kRunning;
  QueuePod(pod);
}

// A pod that ends by itself lets go of what it had before the API knows.
void SimulatedCluster::End(Dice& dice) {
  Pod* pod = AnyPodThat(dice, [](const Pod& one) {
    return one.admitted && !one.released && one.in_api && one.facts.phase == Phase::kRunning;
  });
  if (pod == nullptr) return;
  LetGo(*pod);
  pod->facts.phase = Phase::kSucceeded;
  QueuePod(*pod);
}

void SimulatedCluster::Delete(Dice& dice) {
  Pod* pod = AnyPodThat(
      dice, [](const Pod& one) { return one.in_api && !one.facts.terminating && one.bound; });
  if (pod == nullptr) return;
  pod->facts.terminating = true;
  QueuePod(*pod);
}

void SimulatedCluster::LetGo(Pod& pod) {
  Node& node = NodeOf(pod);
  std::erase(node.bound, pod.facts.pod.uid);
  if (pod.admitted && !pod.released) node.Do(Happened(Deed::Kind::kEnd, pod.facts.pod));
  pod.released = true;
}

void SimulatedCluster::ReleaseOne(Dice& dice) {
  Pod* pod = AnyPodThat(dice, [](const Pod& one) {
    return one.bound && !one.released && (one.facts.terminating || !one.in_api);
  });
  if (pod != nullptr) LetGo(*pod);
}

void SimulatedCluster::Vanish(Dice& dice) {
  Pod* pod = AnyPodThat(dice, [](const Pod& one) { return one.in_api && one.released; });
  if (pod == nullptr) return;
  pod->in_api = false;
  QueuePod(*pod);
}

void SimulatedCluster::Force(Dice& dice) {
  Pod* pod = AnyPodThat(dice, [](const Pod& one) { return one.in_api && one.bound; });
  if (pod == nullptr) return;
  pod->in_api = false;
  pod->forced_at = now_;
  QueuePod(*pod);
}

void SimulatedCluster::ChangeHealth(Dice& dice) {
  Node& node = AnyNodeOf(dice);
  if (node.facts.devices.empty()) return;
  auto& device = node.facts.devices[static_cast<std::size_t>(
      dice.Below(static_cast<int>(node.facts.devices.size())))];
  device.healthy = !device.healthy;
  node.Do({.kind = Deed::Kind::kHealth, .pod = {}, .order = {}, .ill = Node::IllOf(node.facts)});
}

void SimulatedCluster::RestartKubelet(Dice& dice) {
  Node& node = AnyNodeOf(dice);
  Count("kubelet restarts");
  node.facts.kubelet.started_at = now_ + std::chrono::milliseconds(1);
  node.Do(Happened(Deed::Kind::kRestart));
  if (node.agent_works && dice.Once(2)) node.PublishThatNothingIsKnown(now_);
}

void SimulatedCluster::Recreate(Dice& dice) {
  Node& node = AnyNodeOf(dice);
  Count("nodes recreated");
  ++recreated_;
  for (auto& [uid, pod] : pods_) {
    if (!pod.bound || pod.facts.pod.node_name != node.name) continue;
    pod.released = true;
    if (!pod.in_api) continue;
    pod.in_api = false;
    QueuePod(pod);
  }
  placement::NodePlacement facts =
      Drawn(dice.Roll(), [] { return scheduler::admission::AnyNode(SmallNodes()); });
  facts.node_name = node.name;
  facts.boot_id = fmt::format("{}-boot-{}", node.name, recreated_);
  facts.kubelet.started_at = now_ + std::chrono::milliseconds(2);
  node.uid = fmt::format("{}-{}", node.name, recreated_);
  node.BecomeAnother(std::move(facts), now_, dice);
  Look(node);
}

// ---- Agents and watches

placement::NodePlacement SimulatedCluster::Observation(const Node& node) const {
  std::set<std::string> listed;
  for (const std::string& uid : node.bound) {
    if (pods_.at(uid).in_api && uid.back() % 2 == 0) listed.insert(uid);
  }
  return node.Observation(listed, now_);
}

void SimulatedCluster::Look(Node& node) {
  if (node.agent_works) node.Publish(Observation(node), now_);
}

void SimulatedCluster::Renew(Node& node) {
  if (!node.has_agent || !node.agent_works || now_ < node.renew_at) return;
  node.renewed = now_;
  node.renew_at = now_ + kRenewTime;
  Tell(AgentAlive{node.name, node.renewed});
}

// One that starts publishes what it sees, and some seconds later it renews its Lease.
void SimulatedCluster::FlipAgent(Dice& dice) {
  if (!run_.agents_fail) return;
  Node& node = AnyNodeOf(dice);
  node.agent_works = !node.agent_works;
  node.renew_at = now_ + kFirstRenewal;
  Look(node);
}

void SimulatedCluster::RestartScheduler() {
  Count("scheduler restarts");
  ledger_ = std::make_unique<Ledger>();
  if (events_ != nullptr) events_->clear();
  told_.clear();
  heard_of_.clear();
  rejected_.clear();
  for (auto& [uid, flight] : in_flight_) flight.leased = nullptr;
  ListAll();
}

void SimulatedCluster::BreakWatches() {
  Count("gaps in the watches");
  for (const auto& node : nodes_) {
    if (node->has_agent) Tell(AgentAlive{node->name, node->renewed});
  }
  ListPods();
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
