#include "test/scheduler/cluster.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <memory>
#include <sstream>
#include <utility>

#include "base/text.h"
#include "placement/encode.h"
#include "scheduler/ledger/predict.h"
#include "scheduler/reconcile/observed.h"
#include "test/scheduler/any_node.h"
#include "test/scheduler/cluster_check.h"

namespace test {
namespace {

using reference::Ids;
using reference::NaiveContainer;
using reference::NaiveKubelet;
using reference::NaiveVerdict;
using scheduler::admission::AnyNodeOptions;
using scheduler::ledger::AgentAlive;
using scheduler::ledger::Certainty;
using scheduler::ledger::Event;
using scheduler::ledger::Ledger;
using scheduler::ledger::NodeView;
using scheduler::ledger::Phase;
using scheduler::ledger::PodFacts;
using scheduler::ledger::Snapshot;

constexpr std::array kActionNames = {
    "create",  "schedule", "bind",      "admit", "start",    "end",       "delete",
    "release", "vanish",   "force",     "look",  "tell-pod", "tell-node", "foreign",
    "health",  "kubelet",  "scheduler", "gap",   "recreate", "agent",     "wait"};
static_assert(kActionNames.size() == kActions);

constexpr std::chrono::milliseconds kLeaseTime{2000};
constexpr std::chrono::milliseconds kReleaseTime{2000};  // a kubelet lets go of pods within
constexpr std::chrono::seconds kRenewTime{30};
constexpr std::chrono::milliseconds kLookAtMost{4000};  // what an agent has to tell is told within

// Rapidcheck's generators, outside of a property.
template <class Draw>
auto Drawn(std::uint64_t seed, Draw draw) {
  return rc::gen::exec(draw)(rc::Random(seed), rc::kNominalSize).value();
}

AnyNodeOptions SmallNodes() { return {.most_numa_nodes = 3, .pods_of_one_container = false}; }

// A pod and what becomes of it.
struct Pod {
  PodFacts facts;
  bool in_api = true;
  bool bound = false;
  bool foreign = false;
  bool excused = false;  // something happened that the ledger could not know when it was bound
  bool admitted = false;
  bool released = false;
  base::Time forced_at;  // of one that the API forgot while it was there
};

struct Node {
  Node(std::string node_name, placement::NodePlacement described)
      : name(std::move(node_name)), facts(std::move(described)), kubelet(facts, {}) {}

  std::string name;
  std::string uid;
  placement::NodePlacement facts;  // the machine and the kubelet's settings, without pods
  NaiveKubelet kubelet;
  std::vector<std::string> bound;  // pods that it has not admitted yet
  std::set<std::string> ended;     // pods whose leftovers the next admission collects
  bool agent_works = true;
  base::Time renewed;
  base::Time told;                     // all that there was to tell
  std::deque<Event> untold;            // of the node's objects
  placement::NodePlacement published;  // the newest in the API
  bool health_untold = false;
  std::string told_uid;             // the newest that the ledger knows of
  std::string told_boot;            // of the observation that it has
  std::set<std::string> told_held;  // the pods that hold something in it
};

}  // namespace

std::uint64_t Dice::Roll() {  // splitmix64
  state_ += 0x9e3779b97f4a7c15ULL;
  std::uint64_t mixed = state_;
  mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9ULL;
  mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebULL;
  return mixed ^ (mixed >> 31);
}

namespace {

class Cluster {
 public:
  Cluster(const Interleaving& run, Tally* tally, std::vector<Event>* events)
      : run_(run), tally_(tally), events_(events), dice_(run.seed) {
    const int count = 1 + dice_.Below(3);
    for (int i = 0; i < count; ++i) AddNode(fmt::format("n{}", i));
    ledger_ = std::make_unique<Ledger>();
    ListAll();
  }

  std::string Run() {
    for (std::size_t i = 0; i < run_.steps.size() && wrong_.empty(); ++i) {
      Do(run_.steps[i]);
      if (wrong_.empty()) wrong_ = Check();
      if (!wrong_.empty()) {
        wrong_ = fmt::format("after step {} ({}): {}", i + 1,
                             kActionNames[static_cast<std::size_t>(run_.steps[i].action)], wrong_);
      }
    }
    if (wrong_.empty()) {
      BeQuiet();
      wrong_ = CheckQuiet();
      if (!wrong_.empty()) wrong_ = "when all is quiet: " + wrong_;
    }
    return wrong_;
  }

 private:
  void AddNode(const std::string& name) {
    placement::NodePlacement facts = Drawn(dice_.Roll(), [] { return AnyNode(SmallNodes()); });
    facts.node_name = name;
    facts.boot_id = name + "-boot-0";
    facts.kubelet.started_at = now_;
    Node& node = *nodes_.emplace_back(std::make_unique<Node>(name, std::move(facts)));
    node.uid = name + "-0";
    node.renewed = node.told = now_;
    node.published = Observation(node);
  }

  // ---- What is told to the ledger

  template <class What>
  void Tell(What what) {
    Event event{now_, std::move(what)};
    Note(event);
    if (events_ != nullptr) events_->push_back(event);
    ledger_->Apply(event);
  }
  void TellEvent(Event event) {
    event.at = now_;
    Note(event);
    if (events_ != nullptr) events_->push_back(event);
    ledger_->Apply(event);
  }

  // Keeps up with what the ledger knows.
  void Note(const Event& event) {
    if (const auto* node = std::get_if<scheduler::ledger::NodeChanged>(&event.what)) {
      NodeNamed(node->node).told_uid = node->uid;
    } else if (const auto* seen = std::get_if<scheduler::ledger::PlacementChanged>(&event.what)) {
      Node& of = NodeNamed(seen->placement.node_name);
      of.told_boot = seen->placement.boot_id;
      of.told_held.clear();
      for (const placement::PlacedPod& pod : seen->placement.pods) of.told_held.insert(pod.uid);
    } else if (const auto* changed = std::get_if<scheduler::ledger::PodChanged>(&event.what)) {
      told_[changed->pod.pod.uid] = changed->pod;
      heard_of_.insert(changed->pod.pod.uid);
    } else if (const auto* bound = std::get_if<scheduler::ledger::PodBound>(&event.what)) {
      told_[bound->pod.pod.uid] = bound->pod;
      heard_of_.insert(bound->pod.pod.uid);
    } else if (const auto* gone = std::get_if<scheduler::ledger::PodGone>(&event.what)) {
      told_.erase(gone->uid);
    }
  }

  void ListAll() {
    for (const auto& node : nodes_) {
      node->untold.clear();
      node->health_untold = node->health_untold && UnhealthyDiffers(*node);
      Tell(scheduler::ledger::NodeChanged{node->name, node->uid, node->facts.boot_id, {}});
      Tell(scheduler::ledger::PlacementChanged{node->published});
      if (now_ - node->renewed < scheduler::ledger::kAgentStale) Tell(AgentAlive{node->name});
    }
    ListPods();
  }

  void ListPods() {
    pod_events_.clear();
    const std::map<std::string, PodFacts> told = told_;
    for (const auto& [uid, facts] : told) {
      if (!pods_.at(uid).in_api) Tell(scheduler::ledger::PodGone{uid});
    }
    for (const auto& [uid, pod] : pods_) {
      if (pod.in_api && pod.bound) Tell(scheduler::ledger::PodChanged{pod.facts, true});
    }
  }

  void QueuePod(const Pod& pod) {
    if (pod.in_api) {
      pod_events_.push_back({now_, scheduler::ledger::PodChanged{pod.facts, false}});
    } else {
      pod_events_.push_back({now_, scheduler::ledger::PodGone{pod.facts.pod.uid}});
    }
  }

  void TellPod() {
    if (pod_events_.empty()) return;
    Event event = std::move(pod_events_.front());
    pod_events_.pop_front();
    TellEvent(std::move(event));
  }

  void TellNode(Node& node) {
    if (node.untold.empty()) return;
    Event event = std::move(node.untold.front());
    node.untold.pop_front();
    TellEvent(std::move(event));
    if (node.untold.empty()) node.health_untold = UnhealthyDiffers(node);
  }

  static bool UnhealthyDiffers(const Node& node) {
    return node.published.devices != node.facts.devices;
  }

  // ---- Pods

  Node& NodeNamed(const std::string& name) const {
    return **std::ranges::find(nodes_, name, [](const auto& node) { return node->name; });
  }
  Node& AnyNodeOf(Dice& dice) {
    return *nodes_[static_cast<std::size_t>(dice.Below(static_cast<int>(nodes_.size())))];
  }

  // The pods for which `which` holds, in the order of their UIDs; one of them, or none.
  template <class Which>
  Pod* AnyPodThat(Dice& dice, Which which) {
    std::vector<Pod*> found;
    for (auto& [uid, pod] : pods_) {
      if (which(pod)) found.push_back(&pod);
    }
    if (found.empty()) return nullptr;
    return found[static_cast<std::size_t>(dice.Below(static_cast<int>(found.size())))];
  }

  Pod& NewPod(Dice& dice) {
    const std::string uid = fmt::format("p{:02}", pods_.size());
    const Node& node = AnyNodeOf(dice);
    Pod pod;
    if (!shapes_.empty() && dice.Once(2)) {
      pod.facts.pod =
          shapes_[static_cast<std::size_t>(dice.Below(static_cast<int>(shapes_.size())))];
    } else {
      pod.facts.pod = Drawn(dice.Roll(), [&] { return AnyPod(node.facts, "", SmallNodes()); });
      shapes_.push_back(pod.facts.pod);
    }
    pod.facts.pod.uid = uid;
    pod.facts.pod.name = uid;
    pod.facts.pod.namespace_name = "ns";
    pod.facts.created = now_;
    return pods_[uid] = pod;
  }

  void Schedule(Dice& dice) {
    Pod* pod = AnyPodThat(dice, [&](const Pod& one) {
      return one.in_api && !one.bound && !in_flight_.contains(one.facts.pod.uid);
    });
    if (pod == nullptr) return;
    const std::string& uid = pod->facts.pod.uid;
    Tell(scheduler::ledger::LeaseEnded{uid});
    const auto request = scheduler::admission::MakeRequest(pod->facts.pod);
    std::vector<std::string> yes;
    const Snapshot snapshot = ledger_->Take();
    for (const auto& view : snapshot.nodes()) {
      const auto prediction = Predict(*view, request, uid);
      Count(fmt::format("predicted {}", ToString(prediction.certainty)));
      Count(fmt::format("because {}", ToString(prediction.because)));
      if (prediction.certainty == Certainty::kYes) yes.push_back(view->name);
    }
    if (yes.empty()) return;
    const auto first = static_cast<std::size_t>(dice.Below(static_cast<int>(yes.size())));
    std::swap(yes.front(), yes[first]);
    if (yes.size() > 3) yes.resize(3);
    in_flight_[uid] = yes.front();
    Tell(scheduler::ledger::LeaseTaken{pod->facts, yes, now_ + kLeaseTime});
  }

  void Bind(Dice& dice) {
    if (in_flight_.empty()) return;
    auto flight = in_flight_.begin();
    std::advance(flight, dice.Below(static_cast<int>(in_flight_.size())));
    const auto [uid, node_name] = *flight;
    in_flight_.erase(flight);
    Pod& pod = pods_.at(uid);
    Node& node = NodeNamed(node_name);
    const Snapshot snapshot = ledger_->Take();
    const NodeView* view = snapshot.Find(node_name);
    const auto request = scheduler::admission::MakeRequest(pod.facts.pod);
    if (!pod.in_api || view == nullptr ||
        Predict(*view, request, uid).certainty != Certainty::kYes) {
      Tell(scheduler::ledger::LeaseEnded{uid});
      return;
    }
    Count("bound by us");
    PutOn(node, pod);
    pod.excused = !node.agent_works || node.health_untold || HasUnheardOf(node);
    Tell(scheduler::ledger::PodBound{pod.facts});
    QueuePod(pod);
  }

  // Whether the kubelet may still admit or hold a pod that this ledger has never been told of:
  // bound by somebody else a moment ago, or forgotten by the API while we were away.
  bool HasUnheardOf(const Node& node) const {
    if (node.told_uid != node.uid && node.told_boot != node.facts.boot_id) return true;
    return std::ranges::any_of(pods_, [&](const auto& entry) {
      const Pod& pod = entry.second;
      return pod.bound && !pod.released && pod.facts.pod.node_name == node.name &&
             !IsKnown(node, entry.first);
    });
  }

  bool IsKnown(const Node& node, const std::string& uid) const {
    return heard_of_.contains(uid) ||
           (node.told_boot == node.facts.boot_id && node.told_held.contains(uid));
  }

  void PutOn(Node& node, Pod& pod) {
    pod.bound = true;
    pod.facts.pod.node_name = node.name;
    node.bound.push_back(pod.facts.pod.uid);
  }

  void BindForeign(Dice& dice) {
    Pod& pod = NewPod(dice);
    Node& node = AnyNodeOf(dice);
    pod.foreign = true;
    Count("bound by others");
    PutOn(node, pod);
    Excuse(node);
    QueuePod(pod);
  }

  // Something happened on the node that the ledger cannot know yet.
  void Excuse(const Node& node) {
    for (const std::string& uid : node.bound) pods_.at(uid).excused = true;
  }

  // ---- Kubelets

  void Admit(Dice& dice) {
    Node& node = AnyNodeOf(dice);
    if (node.bound.empty()) return;
    const auto at = dice.Once(3)
                        ? static_cast<std::size_t>(dice.Below(static_cast<int>(node.bound.size())))
                        : 0;
    const std::string uid = node.bound[at];
    node.bound.erase(node.bound.begin() + static_cast<std::ptrdiff_t>(at));
    Pod& pod = pods_.at(uid);
    if (!pod.in_api && pod.released) return;
    for (const std::string& ended : node.ended) node.kubelet.Remove(ended);
    node.ended.clear();
    node.kubelet.Prefer(AnyOrder(node, dice));
    const NaiveKubelet before = node.kubelet;
    const NaiveVerdict verdict = node.kubelet.Add(pod.facts.pod);
    if (verdict.cannot) node.kubelet = before;
    if (verdict.cannot || !verdict.reason.empty()) return Refuse(pod, verdict);
    Count("admitted");
    pod.admitted = true;
    pod.facts.started = now_;
  }

  static scheduler::admission::DeviceOrder AnyOrder(const Node& node, Dice& dice) {
    scheduler::admission::DeviceOrder order;
    for (const placement::PlacedDevice& device : node.facts.devices) {
      std::vector<std::string>& ids = order[device.resource];
      const auto place = dice.Below(static_cast<int>(ids.size()) + 1);
      ids.insert(ids.begin() + place, device.id);
    }
    return order;
  }

  void Refuse(Pod& pod, const NaiveVerdict& verdict) {
    pod.released = true;
    Count(pod.foreign   ? "foreign pods refused"
          : pod.excused ? "refused behind what nobody could know"
                        : "refused");
    if (!pod.foreign && !pod.excused) {
      wrong_ = fmt::format("{} refuses {} with {}, though it was to be admitted\n{}",
                           pod.facts.pod.node_name, pod.facts.pod.uid,
                           verdict.cannot ? "a crash" : verdict.reason,
                           Picture(NodeNamed(pod.facts.pod.node_name)));
    }
    if (!pod.in_api) return;
    pod.facts.phase = Phase::kFailed;
    pod.facts.reason = verdict.cannot ? "UnexpectedAdmissionError" : verdict.reason;
    QueuePod(pod);
  }

  // For people who look at a failure, as comments.
  std::string Picture(const Node& node) const {
    std::string text = fmt::format("#   {}", placement::ToJson(Observation(node)));
    for (const auto& [uid, other] : pods_) {
      if (other.facts.pod.node_name != node.name) continue;
      text += fmt::format("#   {}{}:", uid,
                          other.released   ? " (gone)"
                          : other.admitted ? " (admitted)"
                                           : "");
      for (const auto* list : {&other.facts.pod.init_containers, &other.facts.pod.containers}) {
        for (const kube::Container& container : *list) {
          text += fmt::format(" {}{} {};", container.sidecar ? "sidecar " : "", container.name,
                              container.limits);
        }
      }
      text += '\n';
    }
    return text;
  }

  bool Runs(const Pod& pod) const { return pod.admitted && !pod.released; }

  void Start(Dice& dice) {
    Pod* pod = AnyPodThat(dice, [&](const Pod& one) {
      return Runs(one) && one.in_api && one.facts.phase == Phase::kPending;
    });
    if (pod == nullptr) return;
    NodeNamed(pod->facts.pod.node_name).kubelet.Start(pod->facts.pod);
    pod->facts.phase = Phase::kRunning;
    QueuePod(*pod);
  }

  // A pod that ends by itself lets go of what it had before the API knows.
  void End(Dice& dice) {
    Pod* pod = AnyPodThat(dice, [&](const Pod& one) {
      return Runs(one) && one.in_api && one.facts.phase == Phase::kRunning;
    });
    if (pod == nullptr) return;
    LetGo(*pod);
    pod->facts.phase = Phase::kSucceeded;
    QueuePod(*pod);
  }

  void Delete(Dice& dice) {
    Pod* pod = AnyPodThat(
        dice, [](const Pod& one) { return one.in_api && !one.facts.terminating && one.bound; });
    if (pod == nullptr) return;
    pod->facts.terminating = true;
    QueuePod(*pod);
  }

  void LetGo(Pod& pod) {
    Node& node = NodeNamed(pod.facts.pod.node_name);
    std::erase(node.bound, pod.facts.pod.uid);
    if (pod.admitted && !pod.released) node.ended.insert(pod.facts.pod.uid);
    pod.released = true;
  }

  void ReleaseOne(Dice& dice) {
    Pod* pod = AnyPodThat(dice, [](const Pod& one) {
      return one.bound && !one.released && (one.facts.terminating || !one.in_api);
    });
    if (pod != nullptr) LetGo(*pod);
  }

  void Vanish(Dice& dice) {
    Pod* pod = AnyPodThat(dice, [](const Pod& one) { return one.in_api && one.released; });
    if (pod == nullptr) return;
    pod->in_api = false;
    QueuePod(*pod);
  }

  void Force(Dice& dice) {
    Pod* pod = AnyPodThat(dice, [](const Pod& one) { return one.in_api && one.bound; });
    if (pod == nullptr) return;
    pod->in_api = false;
    pod->forced_at = now_;
    QueuePod(*pod);
  }

  // ---- Agents

  placement::NodePlacement Observation(const Node& node) const {
    NaiveKubelet clean = node.kubelet;
    for (const std::string& ended : node.ended) clean.Remove(ended);
    placement::NodePlacement observed = Published(node.facts, clean);
    observed.observed_at = now_;
    for (const auto& [uid, containers] : clean.pods()) observed.known_pods.push_back(uid);
    for (const std::string& uid : node.bound) {
      if (pods_.at(uid).in_api && uid.back() % 2 == 0) observed.known_pods.push_back(uid);
    }
    std::ranges::sort(observed.known_pods);
    return observed;
  }

  void Look(Node& node) {
    if (!node.agent_works) return;
    placement::NodePlacement observed = Observation(node);
    observed.revision = node.published.revision;
    observed.observed_at = node.published.observed_at;
    if (observed == node.published) return;
    observed.observed_at = now_;
    ++observed.revision;
    node.published = observed;
    node.untold.push_back({now_, scheduler::ledger::PlacementChanged{std::move(observed)}});
  }

  void Renew(Node& node) {
    if (!node.agent_works || now_ - node.renewed < kRenewTime) return;
    node.renewed = now_;
    Tell(AgentAlive{node.name});
  }

  void ChangeHealth(Dice& dice) {
    Node& node = AnyNodeOf(dice);
    if (node.facts.devices.empty()) return;
    auto& device = node.facts.devices[static_cast<std::size_t>(
        dice.Below(static_cast<int>(node.facts.devices.size())))];
    device.healthy = !device.healthy;
    std::set<std::string> ill;
    for (const placement::PlacedDevice& other : node.facts.devices) {
      if (other.resource == device.resource && !other.healthy) ill.insert(other.id);
    }
    node.kubelet.SetUnhealthy(device.resource, ill);
    node.health_untold = true;
    Excuse(node);
  }

  void RestartKubelet(Dice& dice) {
    Node& node = AnyNodeOf(dice);
    node.facts.kubelet.started_at = now_ + std::chrono::milliseconds(1);
    Count("kubelet restarts");
  }

  void RestartScheduler() {
    Count("scheduler restarts");
    ledger_ = std::make_unique<Ledger>();
    if (events_ != nullptr) events_->clear();
    told_.clear();
    heard_of_.clear();
    ListAll();
  }

  void Recreate(Dice& dice) {
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
    node.facts = Drawn(dice.Roll(), [] { return AnyNode(SmallNodes()); });  // another machine
    node.facts.node_name = node.name;
    node.health_untold = false;
    node.uid = fmt::format("{}-{}", node.name, recreated_);
    node.facts.boot_id = fmt::format("{}-boot-{}", node.name, recreated_);
    node.facts.kubelet.started_at = now_ + std::chrono::milliseconds(2);
    node.kubelet = NaiveKubelet(node.facts, {});
    node.bound.clear();
    node.ended.clear();
    node.untold.push_back(
        {now_, scheduler::ledger::NodeChanged{node.name, node.uid, node.facts.boot_id, {}}});
    Look(node);
    // The watches of Nodes and of placements are two: either may be faster.
    const std::size_t size = node.untold.size();
    const bool looked =
        std::holds_alternative<scheduler::ledger::PlacementChanged>(node.untold.back().what);
    if (looked && dice.Once(2)) std::swap(node.untold[size - 1], node.untold[size - 2]);
  }

  void FlipAgent(Dice& dice) {
    if (!run_.agents_fail) return;
    Node& node = AnyNodeOf(dice);
    node.agent_works = !node.agent_works;
    node.renewed -= kRenewTime;
    Renew(node);
  }

  // An agent that works has told what happened long before reconcile::kLookTime.
  void Wait(std::chrono::milliseconds time) {
    for (; time > kLookAtMost; time -= kLookAtMost) WaitShortly(kLookAtMost);
    WaitShortly(time);
  }
  void WaitShortly(std::chrono::milliseconds time) {
    now_ += time;
    for (const auto& node : nodes_) {
      if (!node->agent_works || now_ - node->told < kLookAtMost) continue;
      Look(*node);
      while (!node->untold.empty()) TellNode(*node);
      node->told = now_;
    }
    for (auto& [uid, pod] : pods_) {
      if (pod.bound && !pod.in_api && !pod.released && now_ - pod.forced_at >= kReleaseTime) {
        LetGo(pod);
      }
    }
    for (const auto& node : nodes_) Renew(*node);
    Tell(scheduler::ledger::TimePassed{});
  }

  void Do(const Step& step) {
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
        return Admit(dice);
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
      case Action::kTellNode:
        return TellNode(AnyNodeOf(dice));
      case Action::kForeign:
        return BindForeign(dice);
      case Action::kHealth:
        return ChangeHealth(dice);
      case Action::kKubelet:
        return RestartKubelet(dice);
      case Action::kScheduler:
        return RestartScheduler();
      case Action::kGap:
        Count("gaps in the watch");
        return ListPods();
      case Action::kRecreate:
        return Recreate(dice);
      case Action::kAgent:
        return FlipAgent(dice);
      case Action::kWait:
        return Wait(std::chrono::milliseconds(dice.Once(8) ? dice.Below(60000) : dice.Below(3000)));
    }
  }

  // ---- Invariants

  std::string Check() const {
    const Snapshot snapshot = ledger_->Take();
    for (const auto& view : snapshot.nodes()) {
      const std::string wrong = CheckAccounts(*view);
      if (!wrong.empty()) return wrong;
    }
    for (const auto& [uid, facts] : told_) {
      const NodeView* view = snapshot.Find(facts.pod.node_name);
      if (view != nullptr && !facts.terminal() && !IsCharged(*view, facts)) {
        return fmt::format("{} is charged nowhere on {}", uid, view->name);
      }
    }
    return CheckNothingLost(snapshot);
  }

  // With an agent at work, whatever a kubelet holds or may still admit is charged, from the moment
  // on that the ledger has heard of the pod.
  std::string CheckNothingLost(const Snapshot& snapshot) const {
    for (const auto& [uid, pod] : pods_) {
      if (!pod.bound || pod.released) continue;
      if (!IsKnown(NodeNamed(pod.facts.pod.node_name), uid)) continue;
      const NodeView* view = snapshot.Find(pod.facts.pod.node_name);
      if (view == nullptr || view->confidence != scheduler::ledger::Confidence::kObserved) continue;
      if (!IsCharged(*view, pod.facts)) {
        return fmt::format("{} is on {} and charged nowhere", uid, view->name);
      }
    }
    return "";
  }

  void BeQuiet() {
    in_flight_.clear();
    for (const auto& node : nodes_) {
      node->agent_works = true;
      while (!node->bound.empty()) Admit(run_.seed);
    }
    for (const auto& [uid, pod] : pods_) {
      if (!pod.bound) Tell(scheduler::ledger::LeaseEnded{uid});
    }
    for (auto& [uid, pod] : pods_) {
      if (Runs(pod) && (pod.facts.terminating || !pod.in_api)) LetGo(pod);
      if (pod.in_api && pod.bound && pod.released && pod.facts.phase != Phase::kFailed) {
        pod.in_api = false;
        QueuePod(pod);
      }
    }
    while (!pod_events_.empty()) TellPod();
    for (const auto& node : nodes_) {
      Look(*node);
      while (!node->untold.empty()) TellNode(*node);
    }
    for (int i = 0; i < 4; ++i) Wait(std::chrono::seconds(31));
  }
  // With the dice of the run, once nothing else is rolled.
  void Admit(std::uint64_t seed) {
    Dice dice(seed + static_cast<std::uint64_t>(quiet_++));
    Admit(dice);
  }

  std::string CheckQuiet() const {
    const Snapshot snapshot = ledger_->Take();
    for (const auto& node : nodes_) {
      const NodeView* view = snapshot.Find(node->name);
      if (view == nullptr) return node->name + " is not known";
      const std::string wrong = CheckTruth(*view, Observation(*node));
      if (!wrong.empty()) return wrong + "\n" + Picture(*node);
    }
    return "";
  }

  void Count(const std::string& what) {
    if (tally_ != nullptr) ++tally_->counts[what];
  }

  const Interleaving& run_;
  Tally* tally_;
  std::vector<Event>* events_;
  Dice dice_;
  base::Time now_{std::chrono::hours(24 * 365 * 50)};
  std::vector<std::unique_ptr<Node>> nodes_;
  std::map<std::string, Pod> pods_;
  std::vector<kube::Pod> shapes_;
  std::map<std::string, std::string> in_flight_;  // pods to be bound, and where
  std::deque<Event> pod_events_;
  std::map<std::string, PodFacts> told_;  // what the ledger has last been told of each pod
  std::set<std::string> heard_of_;        // the pods that it has ever been told of
  std::unique_ptr<Ledger> ledger_;
  std::string wrong_;
  int recreated_ = 0;
  int quiet_ = 0;
};

Action AnyAction(Dice& dice) {
  // How often, by Action.
  static constexpr std::array kWeights = {10, 14, 14, 14, 8, 3, 3, 5, 4, 2, 12,
                                          16, 14, 2,  1,  1, 1, 1, 1, 2, 5};
  static_assert(kWeights.size() == kActions);
  int sum = 0;
  for (const int weight : kWeights) sum += weight;
  int at = dice.Below(sum);
  std::size_t action = 0;
  while (at >= kWeights[action]) at -= kWeights[action++];
  return static_cast<Action>(action);
}

}  // namespace

Interleaving AnyInterleaving(std::uint64_t seed) {
  Dice dice(~seed);
  Interleaving run{.seed = seed, .agents_fail = dice.Once(4), .steps = {}};
  const int steps = 20 + dice.Below(100);
  for (int i = 0; i < steps; ++i) {
    const Action action = AnyAction(dice);
    run.steps.push_back({action, dice.Roll()});
  }
  return run;
}

std::string Run(const Interleaving& run, Tally* tally, std::vector<Event>* events) {
  return Cluster(run, tally, events).Run();
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

std::string ToText(const Interleaving& run) {
  std::string text = fmt::format("seed {}{}\n", run.seed, run.agents_fail ? " agents-fail" : "");
  for (const Step& step : run.steps) {
    text += fmt::format("{} {}\n", kActionNames[static_cast<std::size_t>(step.action)], step.dice);
  }
  return text;
}

std::optional<Interleaving> ParseInterleaving(const std::string& text) {
  std::istringstream lines(text);
  Interleaving run;
  bool has_seed = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line.starts_with('#')) continue;
    std::istringstream words(line);
    std::string word;
    std::uint64_t number = 0;
    if (!(words >> word >> number)) return std::nullopt;
    if (word == "seed") {
      std::string more;
      run.seed = number;
      run.agents_fail = static_cast<bool>(words >> more);
      has_seed = true;
      continue;
    }
    const auto name = std::ranges::find(kActionNames, word);
    if (name == kActionNames.end()) return std::nullopt;
    run.steps.push_back({static_cast<Action>(name - kActionNames.begin()), number});
  }
  if (!has_seed) return std::nullopt;
  return run;
}

}  // namespace test
