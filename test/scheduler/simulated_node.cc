#include "test/scheduler/simulated_node.h"

#include <algorithm>
#include <utility>

#include "scheduler/admission/state.h"
#include "test/scheduler/any_node.h"
#include "test/scheduler/cluster_check.h"
#include "test/scheduler/nrt_of.h"

namespace test {
namespace {

using scheduler::admission::AnyNodeOptions;

AnyNodeOptions SmallNodes() { return {.most_numa_nodes = 3, .pods_of_one_container = false}; }

// What a generator of rapidcheck draws, outside of a property.
template <class Draw>
auto Drawn(Dice& dice, Draw draw) {
  return rc::gen::exec(draw)(rc::Random(dice.Roll()), rc::kNominalSize).value();
}

}  // namespace

using reference::NaiveKubelet;
using reference::NaiveVerdict;
using scheduler::ledger::Event;
using scheduler::ledger::NodeChanged;
using scheduler::ledger::NodeGone;
using scheduler::ledger::PlacementChanged;
using scheduler::ledger::PlacementGone;
using scheduler::ledger::TopologyChanged;
using scheduler::ledger::TopologyGone;

placement::NodePlacement AnyMachine(Dice& dice) {
  return Drawn(dice, [] { return scheduler::admission::AnyNode(SmallNodes()); });
}

kube::Pod AnyPodFor(const placement::NodePlacement& machine, Dice& dice) {
  return Drawn(dice, [&] { return scheduler::admission::AnyPod(machine, "", SmallNodes()); });
}

Deed Happened(Deed::Kind kind, kube::Pod pod) {
  return {.kind = kind, .pod = std::move(pod), .order = {}, .ill = {}};
}

NaiveVerdict SimulatedKubelet::Do(const Deed& deed) {
  switch (deed.kind) {
    case Deed::Kind::kAdmit:
      return Admit(deed.pod, deed.order);
    case Deed::Kind::kStart:
      naive_.Start(deed.pod);
      break;
    case Deed::Kind::kEnd:
      ended_.insert(deed.pod.uid);
      break;
    case Deed::Kind::kHealth:
      for (const auto& [resource, ill] : deed.ill) naive_.SetUnhealthy(resource, ill);
      break;
    case Deed::Kind::kRestart:
      naive_.Restart();
      break;
  }
  return {};
}

NaiveVerdict SimulatedKubelet::Admit(const kube::Pod& pod,
                                     const scheduler::admission::DeviceOrder& order) {
  naive_ = Clean();
  ended_.clear();
  naive_.Prefer(order);
  const NaiveKubelet before = naive_;
  NaiveVerdict verdict = naive_.Add(pod);
  if (verdict.cannot) {
    naive_ = before;
    verdict.reason = "UnexpectedAdmissionError";  // it hangs or crashes
  }
  return verdict;
}

NaiveKubelet SimulatedKubelet::Clean() const {
  NaiveKubelet clean = naive_;
  for (const std::string& uid : ended_) clean.Remove(uid);
  return clean;
}

void SimulatedKubelet::Forget(const std::string& uid) {
  naive_.Remove(uid);
  ended_.erase(uid);
}

NaiveVerdict SimulatedNode::Do(Deed deed) {
  NaiveVerdict verdict = kubelet.Do(deed);
  deeds.push_back(std::move(deed));
  return verdict;
}

Deed SimulatedNode::AdmissionOf(const kube::Pod& pod, Dice& dice) const {
  Deed deed = Happened(Deed::Kind::kAdmit, pod);
  for (const placement::PlacedDevice& device : facts.devices) {
    std::vector<std::string>& ids = deed.order[device.resource];
    const auto place = dice.Below(static_cast<int>(ids.size()) + 1);
    ids.insert(ids.begin() + place, device.id);
  }
  return deed;
}

// Objects of the old one go, if whoever watches them sees that before it sees the new one's.
void SimulatedNode::BecomeAnother(placement::NodePlacement machine, base::Time now, Dice& dice) {
  facts = std::move(machine);
  kubelet = SimulatedKubelet(facts);
  deeds.clear();
  bound.clear();
  published = {};
  topology = {};
  if (dice.Once(2)) untold[kNodes].push_back({now, NodeGone{name}});
  if (dice.Once(2) && has_agent) untold[kPlacements].push_back({now, PlacementGone{name}});
  if (dice.Once(2)) untold[kTopologies].push_back({now, TopologyGone{name}});
  untold[kNodes].push_back({now, NodeChanged{name, uid, facts.boot_id, {}}});
}

placement::NodePlacement SimulatedNode::Observation(const std::set<std::string>& listed,
                                                    base::Time now) const {
  const NaiveKubelet clean = kubelet.Clean();
  placement::NodePlacement observed = Published(facts, clean);
  observed.observed_at = now;
  std::set<std::string> known = listed;
  for (const auto& pod : clean.pods()) known.insert(pod.first);
  observed.known_pods.assign(known.begin(), known.end());
  return observed;
}

std::map<std::string, std::set<std::string>> SimulatedNode::IllOf(
    const placement::NodePlacement& node) {
  std::map<std::string, std::set<std::string>> ill;
  for (const placement::PlacedDevice& device : node.devices) {
    std::set<std::string>& of_resource = ill[device.resource];
    if (!device.healthy) of_resource.insert(device.id);
  }
  return ill;
}

void SimulatedNode::Publish(placement::NodePlacement observed, base::Time now) {
  const auto state = scheduler::admission::StateFrom(observed);
  if (state.ok()) {
    placement::NodeResourceTopology nrt = scheduler::admission::NrtOf(facts, *state);
    nrt.name = name;
    if (!(nrt == topology)) {
      topology = nrt;
      untold[kTopologies].push_back({now, TopologyChanged{std::move(nrt)}});
    }
  }
  if (!has_agent) return;
  observed.revision = published.revision;
  observed.observed_at = published.observed_at;
  if (observed == published) return;
  observed.observed_at = now;
  ++observed.revision;
  published = observed;
  untold[kPlacements].push_back({now, PlacementChanged{std::move(observed)}});
}

void SimulatedNode::PublishThatNothingIsKnown(base::Time now) {
  if (!has_agent || !published.conditions.empty()) return;
  published.conditions = {{"Settled", "False", "KubeletStarting", ""}};
  untold[kPlacements].push_back({now, PlacementChanged{published}});
}

std::vector<decltype(Event::what)> SimulatedNode::Objects() const {
  std::vector<decltype(Event::what)> objects = {NodeChanged{name, uid, facts.boot_id, {}}};
  if (!topology.zones.empty()) objects.push_back(TopologyChanged{topology});
  if (has_agent && published.observed_at) objects.push_back(PlacementChanged{published});
  return objects;
}

bool SimulatedNode::HasCoresAlike() const {
  std::set<int> sizes;
  for (const placement::NumaNodePlacement& numa : facts.numa_nodes) {
    for (const placement::CoreGroup& group : numa.core_groups) {
      for (const base::CpuSet& core : group.cores) sizes.insert(core.size());
    }
  }
  return sizes.size() <= 1;
}

bool SimulatedNode::HasNews() const {
  return std::ranges::any_of(untold, [](const auto& events) { return !events.empty(); });
}

bool SimulatedNode::NextNews(Dice& dice, Event& event) {
  if (!HasNews()) return false;
  auto watch = static_cast<std::size_t>(dice.Below(static_cast<int>(untold.size())));
  while (untold[watch].empty()) watch = (watch + 1) % untold.size();
  event = std::move(untold[watch].front());
  untold[watch].pop_front();
  return true;
}

void SimulatedNode::Note(const Event& event) {
  if (const auto* node = std::get_if<NodeChanged>(&event.what); node && node->node == name) {
    told_uid = node->uid;
  } else if (const auto* gone = std::get_if<NodeGone>(&event.what); gone && gone->node == name) {
    told_uid.clear();
  } else if (const auto* end = std::get_if<PlacementGone>(&event.what); end && end->node == name) {
    told_boot.clear();
    told_held.clear();
  } else if (const auto* seen = std::get_if<PlacementChanged>(&event.what);
             seen && seen->placement.node_name == name) {
    told_boot = seen->placement.boot_id;
    told_held.clear();
    for (const placement::PlacedPod& pod : seen->placement.pods) told_held.insert(pod.uid);
    told_ill = IllOf(seen->placement);
    told_start = seen->placement.kubelet.started_at;
  }
}

}  // namespace test
