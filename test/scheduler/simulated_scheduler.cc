#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "scheduler/ledger/predict.h"
#include "test/scheduler/simulated_cluster.h"

// The scheduler beside the ledger: filter, prioritize and bind as an extender does, and what a yes
// promises.
namespace test {
namespace {

using scheduler::ledger::Certainty;
using scheduler::ledger::Confidence;
using scheduler::ledger::LeaseEnded;
using scheduler::ledger::LeaseTaken;
using scheduler::ledger::NodeView;
using scheduler::ledger::NodeViewPtr;
using scheduler::ledger::Phase;
using scheduler::ledger::PodBound;
using scheduler::ledger::Prediction;
using scheduler::ledger::Snapshot;

}  // namespace

void SimulatedCluster::Schedule(Dice& dice) {
  const Pod* pod = AnyPodThat(dice, [&](const Pod& one) {
    return one.in_api && !one.bound && !in_flight_.contains(one.facts.pod.uid);
  });
  if (pod == nullptr) return;
  const std::string& uid = pod->facts.pod.uid;
  Tell(LeaseEnded{uid});
  const auto request = scheduler::admission::MakeRequest(pod->facts.pod);
  std::vector<std::string> yes;
  const Snapshot snapshot = ledger_->Take();
  for (const NodeViewPtr& view : snapshot.nodes()) {
    const Prediction prediction = Predict(*view, request, uid);
    Count(fmt::format("predicted {}", ToString(prediction.certainty)));
    Count(fmt::format("because {}", ToString(prediction.because)));
    if (prediction.certainty == Certainty::kYes) yes.push_back(view->name);
    if (wrong_.empty()) wrong_ = CheckPrediction(*view, pod->facts.pod, prediction, dice);
  }
  if (yes.empty()) return;
  const auto first = static_cast<std::size_t>(dice.Below(static_cast<int>(yes.size())));
  std::swap(yes.front(), yes[first]);
  if (yes.size() > scheduler::ledger::kMostLeases) yes.resize(scheduler::ledger::kMostLeases);
  const base::Time until = now_ + scheduler::ledger::kLeaseTime;
  Tell(LeaseTaken{pod->facts, yes, until});
  const Snapshot leased = ledger_->Take();
  const auto view = std::ranges::find(leased.nodes(), yes.front(), &NodeView::name);
  in_flight_[uid] = {yes.front(), *view, until};
}

void SimulatedCluster::Bind(Dice& dice) {
  if (in_flight_.empty()) return;
  auto next = in_flight_.begin();
  std::advance(next, dice.Below(static_cast<int>(in_flight_.size())));
  const std::string uid = next->first;
  const Flight flight = std::move(next->second);
  in_flight_.erase(next);
  Pod& pod = pods_.at(uid);
  Node& node = NodeNamed(flight.node);
  const Snapshot snapshot = ledger_->Take();
  const NodeView* view = snapshot.Find(flight.node);
  if (!pod.in_api || view == nullptr) return Tell(LeaseEnded{uid});
  const Prediction prediction =
      Predict(*view, scheduler::admission::MakeRequest(pod.facts.pod), uid);
  if (prediction.certainty != Certainty::kYes) {
    wrong_ = CheckLease(uid, flight, *view);
    Count("leases that led to no binding");
    return Tell(LeaseEnded{uid});
  }
  Count(prediction.confidence == Confidence::kObserved ? "bound by us"
                                                       : "bound by us without an agent at work");
  if (prediction.confidence == Confidence::kObserved) {
    pod.promise = PromiseOf(node);
    if (pod.promise) ShareTheUnknown(node, pod.promise->unknown);
  }
  PutOn(node, pod);
  Tell(PodBound{pod.facts});
  QueuePod(pod);
}

void SimulatedCluster::BindForeign(Dice& dice) {
  Pod& pod = NewPod(dice);
  pod.foreign = true;
  Count("bound by others");
  PutOn(AnyNodeOf(dice), pod);
  QueuePod(pod);
}

void SimulatedCluster::PutOn(Node& node, Pod& pod) {
  pod.bound = true;
  pod.facts.pod.node_name = node.name;
  node.bound.push_back(pod.facts.pod.uid);
}

// The node as far as the ledger knows it. Nothing if it knows another machine of this name, or if
// pods that it does not know may have led others to CPUs of odd cores.
std::optional<Promise> SimulatedCluster::PromiseOf(const Node& node) const {
  if (node.IsTakenForAnother()) return std::nullopt;
  Promise promise{.kubelet = node.kubelet, .deeds = node.deeds.size(), .unknown = {}, .known = {}};
  for (const auto& [uid, pod] : pods_) {
    if (!pod.bound || pod.facts.pod.node_name != node.name) continue;
    if (IsKnown(node, uid)) {
      promise.known.insert(uid);
    } else {
      promise.unknown.insert(uid);
      promise.kubelet.Forget(uid);
    }
  }
  if (!promise.unknown.empty() && !node.HasCoresAlike()) return std::nullopt;
  promise.kubelet.Do({.kind = Deed::Kind::kHealth, .pod = {}, .order = {}, .ill = node.told_ill});
  if (node.told_start == node.facts.kubelet.started_at) return promise;
  for (const auto& [uid, pod] : pods_) {
    const bool runs = pod.admitted && pod.facts.phase == Phase::kRunning;
    if (runs) promise.kubelet.Do(Happened(Deed::Kind::kStart, pod.facts.pod));
  }
  return promise;
}

// A ledger that was restarted may not know pods that it knew when it bound others, since the API
// has forgotten them: what it does now may be at their expense, and at the expense of those.
void SimulatedCluster::ShareTheUnknown(const Node& node, const std::set<std::string>& unknown) {
  for (const std::string& uid : unknown) pods_.at(uid).promise.reset();
  for (const std::string& bound : node.bound) {
    std::optional<Promise>& promise = pods_.at(bound).promise;
    if (!promise) continue;
    for (const std::string& uid : unknown) {
      promise->unknown.insert(uid);
      promise->kubelet.Forget(uid);
    }
  }
}

// The ledger was told of the pod, or an observation showed it.
bool SimulatedCluster::IsKnown(const Node& node, const std::string& uid) const {
  return heard_of_.contains(uid) ||
         (node.told_boot == node.facts.boot_id && node.told_held.contains(uid));
}

// Whether the pod would have been admitted if only that had happened what the ledger could know or
// did itself.
bool SimulatedCluster::IsKept(const Promise& promise, const Node& node,
                              const Deed& admission) const {
  SimulatedKubelet kubelet = promise.kubelet;
  for (std::size_t i = promise.deeds; i < node.deeds.size(); ++i) {
    const Deed& deed = node.deeds[i];
    if (deed.kind == Deed::Kind::kHealth || deed.kind == Deed::Kind::kRestart) continue;
    const std::string& uid = deed.pod.uid;
    const bool came_later = !pods_.at(uid).promise && !promise.known.contains(uid);
    if (came_later || promise.unknown.contains(uid)) continue;
    kubelet.Do(deed);
  }
  return kubelet.Do(admission).reason.empty();
}

}  // namespace test
