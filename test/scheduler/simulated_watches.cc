#include <utility>

#include "test/scheduler/simulated_cluster.h"

// What the ledger is told: by watches that are late and break, and by agents that look at times.
namespace test {
namespace {

using scheduler::ledger::AgentAlive;
using scheduler::ledger::Event;
using scheduler::ledger::Ledger;
using scheduler::ledger::PodBound;
using scheduler::ledger::PodChanged;
using scheduler::ledger::PodFacts;
using scheduler::ledger::PodGone;
using scheduler::ledger::PodRejected;

// An agent that starts renews its Lease so long after it published.
constexpr std::chrono::seconds kFirstRenewal{5};

}  // namespace

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

// ---- Agents

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

}  // namespace test
