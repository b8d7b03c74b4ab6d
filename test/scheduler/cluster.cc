#include "test/scheduler/cluster.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <utility>

#include "placement/encode.h"
#include "scheduler/admission/request.h"
#include "test/scheduler/cluster_check.h"
#include "test/scheduler/simulated_cluster.h"

// What must hold of the ledger's accounts beside a simulated cluster.
namespace test {
namespace {

std::string InWords(const kube::Pod& pod) {
  std::string words;
  for (const auto* list : {&pod.init_containers, &pod.containers}) {
    for (const kube::Container& container : *list) {
      words += fmt::format("{}{} {}; ", container.sidecar ? "sidecar " : "", container.name,
                           container.limits);
    }
  }
  return words;
}

}  // namespace

using scheduler::ledger::Because;
using scheduler::ledger::Certainty;
using scheduler::ledger::Confidence;
using scheduler::ledger::Event;
using scheduler::ledger::NodeView;
using scheduler::ledger::NodeViewPtr;
using scheduler::ledger::Prediction;
using scheduler::ledger::Snapshot;
using scheduler::ledger::Standing;
using scheduler::ledger::Waiting;

std::string SimulatedCluster::Check() const {
  const Snapshot snapshot = ledger_->Take();
  for (const NodeViewPtr& view : snapshot.nodes()) {
    if (std::string wrong = CheckAccounts(*view); !wrong.empty()) return wrong;
  }
  for (const auto& [uid, facts] : told_) {
    const NodeView* view = snapshot.Find(facts.pod.node_name);
    if (view == nullptr || view->confidence == Confidence::kPredicted) continue;
    if (facts.terminal() || rejected_.contains(uid)) continue;
    if (!IsCharged(*view, facts))
      return fmt::format("{} is charged nowhere on {}", uid, view->name);
  }
  for (const auto& node : nodes_) {
    const NodeView* view = snapshot.Find(node->name);
    if (view == nullptr || view->confidence != Confidence::kPredicted) continue;
    if (std::string wrong = CheckSums(*view, told_); !wrong.empty()) return wrong;
  }
  const std::string twice = CheckChargedOnce(snapshot);
  return twice.empty() ? CheckNothingLost(snapshot) : twice;
}

std::string SimulatedCluster::CheckChargedOnce(const Snapshot& snapshot) const {
  for (const NodeViewPtr& view : snapshot.nodes()) {
    for (const Waiting& pod : view->waiting) {
      const auto told = told_.find(pod.uid);
      if (told == told_.end() || told->second.pod.node_name == view->name) continue;
      return fmt::format("{} is charged on {} too", pod.uid, view->name);
    }
  }
  return "";
}

// With an agent at work, whatever a kubelet holds or may still admit is charged, from the moment
// on that the ledger has heard of the pod.
std::string SimulatedCluster::CheckNothingLost(const Snapshot& snapshot) const {
  for (const auto& [uid, pod] : pods_) {
    if (!pod.bound || pod.released || !IsKnown(NodeOf(pod), uid)) continue;
    const NodeView* view = snapshot.Find(pod.facts.pod.node_name);
    if (view == nullptr || view->confidence != Confidence::kObserved) continue;
    if (!IsCharged(*view, pod.facts)) {
      return fmt::format("{} is on {} and charged nowhere", uid, view->name);
    }
  }
  return "";
}

std::string SimulatedCluster::CheckQuiet() const {
  const Snapshot snapshot = ledger_->Take();
  for (const auto& node : nodes_) {
    const NodeView* view = snapshot.Find(node->name);
    if (view == nullptr) return node->name + " is not known";
    const std::string wrong = node->has_agent ? CheckTruth(*view, Observation(*node))
                                              : CheckCounts(*view, node->topology, node->facts);
    if (!wrong.empty()) return wrong + "\n" + Picture(*node);
  }
  return "";
}

// ---- What a prediction promises

// A pod that took its lease on a yes may be bound there as long as nothing but our own bindings
// happens: others are asked with its lease in mind.
std::string SimulatedCluster::CheckLease(const std::string& uid, const Flight& flight,
                                         const NodeView& now) const {
  if (flight.leased == nullptr || now_ >= flight.until) return "";
  const NodeView& then = *flight.leased;
  const bool same = then.confidence == Confidence::kObserved && now.confidence == then.confidence &&
                    now.blocks.empty() && now.base->machine == then.base->machine &&
                    now.base->pool == then.base->pool;
  if (!same || now.waiting.size() > 4) return "";  // of more, not all orders are tried
  for (const Waiting& pod : then.waiting) {
    const auto still = std::ranges::find(now.waiting, pod.uid, &Waiting::uid);
    if (still == now.waiting.end()) return "";
    const bool bound = pod.standing == Standing::kLeased && still->standing == Standing::kBound;
    if (still->standing != pod.standing && !bound) return "";
  }
  for (const Waiting& pod : now.waiting) {
    if (pods_.at(pod.uid).foreign) return "";
  }
  return fmt::format("{} was given away though {} had a lease there", now.name, uid);
}

// Whether the ledger knows all that there is to know of the node, and only pods that the kubelet
// has yet to admit, and leases, wait.
bool SimulatedCluster::IsInStep(const Node& node, const NodeView& view) const {
  if (!node.has_agent || !node.agent_works || node.HasNews()) return false;
  if (view.confidence != Confidence::kObserved) return false;
  for (const auto& [uid, pod] : pods_) {
    if (!pod.bound || pod.facts.pod.node_name != node.name) continue;
    const auto told = told_.find(uid);
    if (pod.in_api ? told == told_.end() || !(told->second == pod.facts) : told != told_.end()) {
      return false;
    }
    if (!pod.in_api && !pod.released) return false;
  }
  const bool bound_alone = std::ranges::all_of(view.waiting, [&](const Waiting& pod) {
    if (pod.standing == Standing::kLeased) return true;
    return pod.standing == Standing::kBound && std::ranges::count(node.bound, pod.uid) == 1;
  });
  placement::NodePlacement observed = Observation(node);
  observed.revision = node.published.revision;
  observed.observed_at = node.published.observed_at;
  return bound_alone && observed == node.published;
}

// A yes holds at once, wherever the pods are that the ledger knows of, and whichever of those that
// the kubelet has not admitted yet go first. A no holds if the ledger knows all, after them.
std::string SimulatedCluster::CheckPrediction(const NodeView& view, const kube::Pod& pod,
                                              const Prediction& prediction, Dice dice) const {
  const Node& node = NodeNamed(view.name);
  if (view.confidence != Confidence::kObserved) return "";
  if (prediction.certainty == Certainty::kYes) {
    const std::optional<Promise> promise = PromiseOf(node);
    if (!promise) return "";
    const std::string reason = AnswerAmong(promise->known, node, promise->kubelet, pod, true, dice);
    if (reason.empty()) return "";
    return fmt::format("{} refuses a pod with {}, though the answer was yes\n#   {}\n{}", node.name,
                       reason, InWords(pod), Picture(node));
  }
  const bool no =
      prediction.certainty == Certainty::kNo && prediction.because != Because::kRefusedRecently;
  if (!no || !IsInStep(node, view)) return "";
  const std::set<std::string> bound(node.bound.begin(), node.bound.end());
  if (!AnswerAmong(bound, node, node.kubelet, pod, false, dice).empty()) return "";
  return fmt::format("{} admits a pod, though the answer was no\n#   {}\n{}", node.name,
                     InWords(pod), Picture(node));
}

// The kubelet's answer to the pod, "" if it is admitted, after some or all of these that are bound
// to its node.
std::string SimulatedCluster::AnswerAmong(const std::set<std::string>& uids, const Node& node,
                                          SimulatedKubelet kubelet, const kube::Pod& pod, bool some,
                                          Dice& dice) const {
  std::vector<const kube::Pod*> pods;
  for (const std::string& uid : node.bound) {
    if (!uids.contains(uid) || (some && dice.Once(2))) continue;
    const auto place = dice.Below(static_cast<int>(pods.size()) + 1);
    pods.insert(pods.begin() + place, &pods_.at(uid).facts.pod);
  }
  for (const kube::Pod* before : pods) kubelet.Do(node.AdmissionOf(*before, dice));
  return kubelet.Do(node.AdmissionOf(pod, dice)).reason;
}

// For people who look at a failure, as comments.
std::string SimulatedCluster::Picture(const Node& node) const {
  std::string text = fmt::format("#   {}", placement::ToJson(Observation(node)));
  for (const auto& [uid, other] : pods_) {
    if (other.facts.pod.node_name != node.name) continue;
    text += fmt::format("#   {}{}: {}\n", uid,
                        other.released   ? " (gone)"
                        : other.admitted ? " (admitted)"
                                         : "",
                        InWords(other.facts.pod));
  }
  return text;
}

// ---- Runs

std::string Run(const Interleaving& run, Tally* tally, std::vector<Event>* events) {
  SimulatedCluster cluster(run, tally, events);
  for (std::size_t i = 0; i < run.steps.size(); ++i) {
    cluster.Do(run.steps[i]);
    const std::string wrong = cluster.wrong().empty() ? cluster.Check() : cluster.wrong();
    if (wrong.empty()) continue;
    return fmt::format("after step {} ({}): {}", i + 1, ToString(run.steps[i].action), wrong);
  }
  cluster.BeQuiet();
  const std::string wrong = cluster.wrong().empty() ? cluster.CheckQuiet() : cluster.wrong();
  return wrong.empty() ? "" : "when all is quiet: " + wrong;
}

Interleaving Shrink(Interleaving run) {
  for (std::size_t length = run.steps.size() / 2; length > 0; length /= 2) {
    for (std::size_t at = 0; at + length <= run.steps.size();) {
      Interleaving shorter = run;
      const auto from = shorter.steps.begin() + static_cast<std::ptrdiff_t>(at);
      shorter.steps.erase(from, from + static_cast<std::ptrdiff_t>(length));
      if (test::Run(shorter).empty()) {
        at += length;
      } else {
        run = std::move(shorter);
      }
    }
  }
  return run;
}

}  // namespace test
