#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "test/scheduler/simulated_cluster.h"

// What happens on the nodes of the simulated cluster: admissions, pods that come to their end,
// devices that fall ill, kubelets that restart, machines that are replaced.
namespace test {

using reference::NaiveVerdict;
using scheduler::ledger::Phase;
using scheduler::ledger::PodRejected;

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
  placement::NodePlacement facts = AnyMachine(dice);
  facts.node_name = node.name;
  facts.boot_id = fmt::format("{}-boot-{}", node.name, recreated_);
  facts.kubelet.started_at = now_ + std::chrono::milliseconds(2);
  node.uid = fmt::format("{}-{}", node.name, recreated_);
  node.BecomeAnother(std::move(facts), now_, dice);
  Look(node);
}

}  // namespace test
