#include "scheduler/ledger/predict.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <initializer_list>
#include <map>
#include <utility>
#include <vector>

#include "scheduler/admission/admit.h"
#include "scheduler/admission/wants.h"
#include "scheduler/ledger/landing.h"

namespace scheduler::ledger {
namespace {

using admission::NodeState;
using admission::Pool;
using admission::Request;

// So many admissions are tried at most for one answer, a few milliseconds.
constexpr int kMaxLandings = 400;

// When pods are admitted, seen from now.
enum class When {
  kBefore,   // they run
  kAnyTime,  // they are bound: perhaps before those that run, perhaps never
  kLater,    // they are not bound yet
};

When WhenIs(Standing standing) {
  if (standing == Standing::kAdmitted) return When::kBefore;
  return standing == Standing::kLeased ? When::kLater : When::kAnyTime;
}

// Pods of one shape and standing: which of them comes first makes no difference.
struct Group {
  Lander lander;
  const Request* request;
  When when;
  int count = 1;
};

// How many pods of each group have been admitted.
using Counts = std::vector<int>;

// All ways in which waiting pods may be admitted, from one state of the node on.
class Orders {
 public:
  using Land = Landing (Lander::*)(const Pool&) const;
  explicit Orders(std::vector<Group> groups, Land land = &Lander::From)
      : groups_(std::move(groups)), land_(land) {}

  // What may be free once all are admitted. `last`, the pod in question, is the last group; its
  // refusals, and those of others while it is there, are noted. False if there is more than can be
  // followed, or no order in which all those could be admitted that run.
  bool Try(const std::vector<Pool>& from) {
    reached_[Counts(groups_.size(), 0)] = from;
    // Admitting one more makes counts that are greater, so each is complete when it is visited.
    while (!reached_.empty()) {
      const auto [counts, pools] = *reached_.begin();
      reached_.erase(reached_.begin());
      bool all = true;
      for (std::size_t group = 0; group < groups_.size(); ++group) {
        if (counts[group] == groups_[group].count) continue;
        all = false;
        if (groups_[group].when == When::kLater && !AllRun(counts)) continue;
        if (!Admit(group, counts, pools)) return false;
      }
      if (all) end_ = pools;
    }
    return !end_.empty();
  }

  const std::vector<Pool>& end() const { return end_; }
  // What may go wrong for the last pod, or because of it for one that would not be refused
  // otherwise; kFits if nothing may.
  Because AgainstLast() const {
    if (tally_.back().refused) return Because::kPodsWait;
    if (tally_.back().doubtful) return Because::kRoomMayMislead;
    const bool refuses_others = std::ranges::any_of(tally_, [](const Tally& tally) {
      return tally.refused_beside_last && !tally.refused_without_last;
    });
    return refuses_others ? Because::kWouldRefuseOthers : Because::kFits;
  }

 private:
  struct Tally {
    bool refused = false;
    bool doubtful = false;  // might be, after others have left
    bool refused_without_last = false;
    bool refused_beside_last = false;
  };

  bool AllRun(const Counts& counts) const {
    for (std::size_t group = 0; group < groups_.size(); ++group) {
      const bool runs = groups_[group].when == When::kBefore;
      if (runs && counts[group] < groups_[group].count) return false;
    }
    return true;
  }

  // An order in which a pod is refused that runs is not how it was.
  bool Admit(std::size_t group, Counts counts, const std::vector<Pool>& pools) {
    const bool runs = groups_[group].when == When::kBefore;
    const bool beside_last = counts.back() > 0 && group + 1 < groups_.size();
    ++counts[group];
    for (const Pool& pool : pools) {
      if (++landings_ > kMaxLandings) return false;
      Landing landing = (groups_[group].lander.*land_)(pool);
      if (!landing.complete) return false;
      if (!runs) Note(landing, beside_last, tally_[group]);
      if (MayStay(landing) && !runs) landing.after.push_back(pool);
      if (landing.after.empty()) continue;
      Enter(counts, std::move(landing.after));
    }
    return true;
  }

  // Whether the pod may be refused, so that what was free stays so. Where everybody lands as it is
  // now, one choice of devices may refuse it and another may not; otherwise, that it never comes is
  // among the orders anyway.
  bool MayStay(const Landing& landing) const {
    return land_ == &Lander::FromAsItIs ? landing.may_be_refused : landing.refused;
  }

  static void Note(const Landing& landing, bool beside_last, Tally& tally) {
    if (!landing.may_be_refused) return;
    (landing.refused ? tally.refused : tally.doubtful) = true;
    (beside_last ? tally.refused_beside_last : tally.refused_without_last) = true;
  }

  void Enter(const Counts& counts, std::vector<Pool> pools) {
    std::vector<Pool>& known = reached_[counts];
    for (Pool& pool : pools) {
      if (std::ranges::find(known, pool) == known.end()) known.push_back(std::move(pool));
    }
  }

  std::vector<Group> groups_;
  Land land_;
  std::vector<Tally> tally_ = std::vector<Tally>(groups_.size());
  std::map<Counts, std::vector<Pool>> reached_;
  std::vector<Pool> end_;
  int landings_ = 0;
};

// The waiting pods of these standings as groups; pods that want nothing here are none, and missing
// ones are part of what is known to be held.
std::vector<Group> GroupsOf(const NodeView& node, const std::string& uid,
                            std::initializer_list<Standing> standings) {
  std::vector<Group> groups;
  for (const Waiting& pod : node.waiting) {
    if (pod.uid == uid || std::ranges::find(standings, pod.standing) == standings.end()) continue;
    const Request* request = &pod.shape->request;
    const When when = WhenIs(pod.standing);
    const auto known = std::ranges::find_if(
        groups, [&](const Group& group) { return group.request == request && group.when == when; });
    if (known != groups.end()) {
      ++known->count;
      continue;
    }
    Lander lander(*node.base, *request);
    if (!lander.wants_nothing()) groups.push_back({std::move(lander), request, when});
  }
  return groups;
}

NodeState With(const NodeState& node, Pool pool) {
  return {
      .machine = node.machine, .device_ids = node.device_ids, .pool = std::move(pool), .pods = {}};
}

Pool WorstOf(const std::vector<Group>& groups, Pool pool, const Group* but = nullptr) {
  for (const Group& group : groups) {
    const int count = &group == but ? group.count - 1 : group.count;
    for (int i = 0; i < count; ++i) pool = group.lander.Worst(std::move(pool));
  }
  return pool;
}

// Beyond the bound: all others have their worst case, which is a yes for nobody more often than it
// must be.
Because WithWorstCases(const NodeView& node, const std::vector<Group>& groups) {
  const Pool& from = node.base->pool;
  const Group& last = groups.back();
  if (last.lander.From(WorstOf(groups, from, &last)).may_be_refused) return Because::kPodsWait;
  for (const Group& group : groups) {
    if (&group == &last || group.when == When::kBefore) continue;
    const NodeState now = With(*node.base, from);
    const bool lost_anyway = Answer(now, *group.request).rejected();
    const Landing landing = group.lander.From(WorstOf(groups, from, &group));
    if (landing.may_be_refused && !lost_anyway) return Because::kWouldRefuseOthers;
  }
  return Because::kFits;
}

bool OthersWait(const NodeView& node, const std::string& uid) {
  return std::ranges::any_of(node.waiting, [&](const Waiting& pod) { return pod.uid != uid; });
}

// Whether the pod would be refused after all that were bound here, whatever their order and
// whatever devices are chosen, as long as nothing leaves. What is refused now may not be then: pods
// that come before it may leave room on a NUMA node alone that suits it.
bool IsRefusedAfterAll(const NodeView& node, const Request& request, const std::string& uid) {
  const Lander lander(*node.base, request);
  Orders orders(GroupsOf(node, uid, {Standing::kAdmitted, Standing::kBound}), &Lander::FromAsItIs);
  if (!orders.Try({node.base->pool})) return false;
  return std::ranges::all_of(orders.end(),
                             [&](const Pool& pool) { return lander.FromAsItIs(pool).refused; });
}

// Nobody waits, and no choice of devices for one container decides about the next.
bool IsSettled(const NodeView& node, const Request& request, const std::string& uid) {
  return !OthersWait(node, uid) && !SeveralWantSomething(request);
}

// Whether some choice of devices refuses the pod even if nothing else happens.
bool DoDevicesDecide(const NodeView& node, const Request& request) {
  const Landing landing = Lander(*node.base, request).FromAsItIs(node.base->pool);
  return landing.may_be_refused || !landing.complete;
}

// What stands in the way of a yes; kFits if nothing does.
Because InTheWay(const NodeView& node, const Request& request, const std::string& uid) {
  std::vector<Group> groups =
      GroupsOf(node, uid, {Standing::kAdmitted, Standing::kBound, Standing::kLeased});
  groups.push_back({Lander(*node.base, request), &request, When::kLater});
  Orders orders(groups);
  if (orders.Try({node.base->pool})) return orders.AgainstLast();
  return WithWorstCases(node, groups);
}

const Block* FindBlock(const NodeView& node, const Request& request) {
  const auto found = std::ranges::find_if(
      node.blocks, [&](const Block& block) { return block.shape->request == request; });
  return found == node.blocks.end() ? nullptr : &*found;
}

// Coarse only if what is known roughly matters to this pod.
admission::Grade GradeOf(const NodeView& node, const Request& request) {
  const admission::Machine& machine = *node.base->machine;
  const Roughly& roughly = node.roughly;
  const admission::Wants wants(machine, request.pod,
                               admission::ManagesPod(machine.settings, request));
  const bool coarse = roughly.all || (roughly.cpus && wants.cpus > 0) ||
                      (roughly.memory && !wants.memory.empty()) ||
                      (roughly.several && SeveralWantSomething(request));
  return coarse ? admission::Grade::kCoarse : admission::Grade::kExact;
}

}  // namespace

Prediction Predict(const NodeView& node, const Request& request, const std::string& uid) {
  Prediction prediction{.certainty = Certainty::kUnknown,
                        .because = Because::kNoData,
                        .outcome = {},
                        .confidence = node.confidence,
                        .grade = admission::Grade::kCoarse};
  if (node.base == nullptr) return prediction;
  const auto say = [&](Certainty certainty, Because because) {
    prediction.certainty = certainty;
    prediction.because = because;
    return prediction;
  };
  prediction.grade = GradeOf(node, request);
  prediction.outcome = Answer(*node.base, request);
  if (prediction.outcome.rejected()) {
    const bool certain = prediction.outcome.reason == admission::Reason::kKubeletCannot ||
                         IsSettled(node, request, uid) || IsRefusedAfterAll(node, request, uid);
    if (certain) return say(Certainty::kNo, Because::kRefused);
    return say(Certainty::kDepends,
               OthersWait(node, uid) ? Because::kPodsWait : Because::kDevicesDecide);
  }
  if (!prediction.outcome.admitted()) return say(Certainty::kUnknown, Because::kNoAnswer);
  if (!node.blocks.empty() && FindBlock(node, request) != nullptr) {
    return say(Certainty::kNo, Because::kRefusedRecently);
  }
  if (!OthersWait(node, uid) && IsAnsweredAtOnce(*node.base->machine, request)) {
    return say(Certainty::kYes, Because::kFits);
  }
  const Because because = InTheWay(node, request, uid);
  if (because == Because::kFits) return say(Certainty::kYes, because);
  if (IsRefusedAfterAll(node, request, uid)) return say(Certainty::kNo, Because::kPodsWait);
  const bool misled = because == Because::kRoomMayMislead;
  return say(Certainty::kDepends,
             misled && DoDevicesDecide(node, request) ? Because::kDevicesDecide : because);
}

const char* ToString(Certainty certainty) {
  static constexpr std::array kNames = {"Yes", "Depends", "No", "Unknown"};
  return kNames[static_cast<std::size_t>(certainty)];
}

const char* ToString(Because because) {
  static constexpr std::array kNames = {
      "Fits",           "Refused",       "RefusedRecently", "PodsWait", "WouldRefuseOthers",
      "RoomMayMislead", "DevicesDecide", "NoData",          "NoAnswer"};
  return kNames[static_cast<std::size_t>(because)];
}

std::string Sentence(const Prediction& prediction) {
  static constexpr std::array kWhy = {
      "the kubelet would admit the pod",
      "the kubelet would refuse the pod",
      "the kubelet refused such a pod a short time ago, and nothing has changed since",
      "it depends on where pods land that were sent here a moment ago",
      "the pod might take the place of one that was sent here a moment ago",
      "a pod that ends meanwhile might lead its containers to NUMA nodes where they do not fit",
      "it depends on which devices the device plugin chooses",
      "nothing is known of this node's NUMA nodes",
      "the kubelet cannot be as it is described",
  };
  static constexpr std::array kHowFar = {
      "",
      "; its agent has been silent for more than 90 seconds",
      "; its agent has been silent for more than 10 minutes",
      "; it has no agent: known by counts per NUMA node, and by prediction",
      "",
  };
  return fmt::format("{}{}", kWhy[static_cast<std::size_t>(prediction.because)],
                     kHowFar[static_cast<std::size_t>(prediction.confidence)]);
}

}  // namespace scheduler::ledger
