#include "scheduler/ledger/predict.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <utility>
#include <vector>

#include "scheduler/admission/admit.h"
#include "scheduler/ledger/landing.h"

namespace scheduler::ledger {
namespace {

using admission::NodeState;
using admission::Pool;
using admission::Request;

// So many admissions are tried at most for one answer, a few milliseconds.
constexpr int kMaxLandings = 400;

// Pods of one shape: which of them comes first makes no difference.
struct Group {
  Lander lander;
  const Request* request;
  int count = 1;
};

// How many pods of each group have been admitted.
using Counts = std::vector<int>;

// All ways in which waiting pods may be admitted, from one state of the node on.
class Orders {
 public:
  explicit Orders(std::vector<Group> groups) : groups_(std::move(groups)) {}

  // What may be free once all are admitted. `last`, the pod in question, is the last group; its
  // refusals, and those of others while it is there, are noted. False if the bound is met.
  bool Try(const std::vector<Pool>& from) {
    reached_[Counts(groups_.size(), 0)] = from;
    // Admitting one more makes counts that are greater, so each is complete when it is visited.
    while (!reached_.empty()) {
      const auto [counts, pools] = *reached_.begin();
      reached_.erase(reached_.begin());
      end_ = pools;
      for (std::size_t group = 0; group < groups_.size(); ++group) {
        if (counts[group] == groups_[group].count) continue;
        if (!Admit(group, counts, pools)) return false;
      }
    }
    return true;
  }

  const std::vector<Pool>& end() const { return end_; }
  bool last_may_be_refused() const { return tally_.back().refused + tally_.back().doubtful > 0; }
  bool last_is_refused() const { return tally_.back().refused == tally_.back().asked; }
  bool last_only_doubtful() const { return tally_.back().refused == 0; }
  // A pod that would not be refused otherwise may be so because of the last.
  bool last_may_refuse_others() const {
    return std::ranges::any_of(tally_, [](const Tally& tally) {
      return tally.refused_beside_last && !tally.refused_without_last;
    });
  }

 private:
  struct Tally {
    int asked = 0;
    int refused = 0;
    int doubtful = 0;  // might be refused, after others have left
    bool refused_without_last = false;
    bool refused_beside_last = false;
  };

  bool Admit(std::size_t group, Counts counts, const std::vector<Pool>& pools) {
    const bool beside_last = counts.back() > 0 && group + 1 < groups_.size();
    ++counts[group];
    for (const Pool& pool : pools) {
      if (++landings_ > kMaxLandings) return false;
      Landing landing = groups_[group].lander.From(pool);
      Note(landing, beside_last, tally_[group]);
      if (landing.after.empty()) landing.after.push_back(pool);
      Enter(counts, std::move(landing.after));
    }
    return true;
  }

  static void Note(const Landing& landing, bool beside_last, Tally& tally) {
    ++tally.asked;
    if (landing.refused) ++tally.refused;
    if (!landing.refused && landing.may_be_refused) ++tally.doubtful;
    if (!landing.may_be_refused) return;
    (beside_last ? tally.refused_beside_last : tally.refused_without_last) = true;
  }

  void Enter(const Counts& counts, std::vector<Pool> pools) {
    std::vector<Pool>& known = reached_[counts];
    for (Pool& pool : pools) {
      if (std::ranges::find(known, pool) == known.end()) known.push_back(std::move(pool));
    }
  }

  std::vector<Group> groups_;
  std::vector<Tally> tally_ = std::vector<Tally>(groups_.size());
  std::map<Counts, std::vector<Pool>> reached_;
  std::vector<Pool> end_;
  int landings_ = 0;
};

// What a list of waiting pods is, as groups; pods that want nothing here are none.
std::vector<Group> GroupsOf(const NodeView& node, const std::string& uid, bool admitted) {
  std::vector<Group> groups;
  for (const Waiting& pod : node.waiting) {
    if (pod.uid == uid || (pod.standing == Standing::kAdmitted) != admitted) continue;
    const Request* request = &pod.shape->request;
    const auto known = std::ranges::find(groups, request, &Group::request);
    if (known != groups.end()) {
      ++known->count;
      continue;
    }
    Lander lander(*node.base, *request);
    if (!lander.wants_nothing()) groups.push_back({std::move(lander), request});
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
Because WithWorstCases(const NodeView& node, const Pool& from, const std::vector<Group>& groups) {
  const Group& last = groups.back();
  if (last.lander.From(WorstOf(groups, from, &last)).may_be_refused) return Because::kPodsWait;
  for (const Group& group : groups) {
    if (&group == &last) continue;
    const NodeState now = With(*node.base, from);
    const bool lost_anyway = Answer(now, *group.request).rejected();
    const Landing landing = group.lander.From(WorstOf(groups, from, &group));
    if (landing.may_be_refused && !lost_anyway) return Because::kWouldRefuseOthers;
  }
  return Because::kFits;
}

// The states of the node with the pods that run unseen; one worst case if there are too many.
std::vector<Pool> WithAdmitted(const NodeView& node, const std::string& uid) {
  std::vector<Group> groups = GroupsOf(node, uid, true);
  const Pool& base = node.base->pool;
  if (groups.empty()) return {base};
  Orders orders(groups);
  if (orders.Try({base})) return orders.end();
  return {WorstOf(groups, base)};
}

void Settle(const NodeView& node, const Request& request, const std::string& uid,
            Prediction& prediction) {
  const auto say = [&](Certainty certainty, Because because) {
    prediction.certainty = certainty;
    prediction.because = because;
  };
  const std::vector<Pool> from = WithAdmitted(node, uid);
  std::vector<Group> groups = GroupsOf(node, uid, false);
  groups.push_back({Lander(*node.base, request), &request});
  Orders orders(groups);
  if (!orders.Try(from)) {
    Because because = Because::kFits;
    for (const Pool& pool : from) {
      because = std::max(because, WithWorstCases(node, pool, groups));
    }
    return say(because == Because::kFits ? Certainty::kYes : Certainty::kDepends, because);
  }
  if (orders.last_is_refused()) return say(Certainty::kNo, Because::kPodsWait);
  if (orders.last_may_be_refused()) {
    return say(Certainty::kDepends,
               orders.last_only_doubtful() ? Because::kRoomMayMislead : Because::kPodsWait);
  }
  if (orders.last_may_refuse_others()) {
    return say(Certainty::kDepends, Because::kWouldRefuseOthers);
  }
  say(Certainty::kYes, Because::kFits);
}

const Block* FindBlock(const NodeView& node, const Request& request) {
  const auto found = std::ranges::find_if(
      node.blocks, [&](const Block& block) { return block.shape->request == request; });
  return found == node.blocks.end() ? nullptr : &*found;
}

bool OthersWait(const NodeView& node, const std::string& uid) {
  return std::ranges::any_of(node.waiting, [&](const Waiting& pod) { return pod.uid != uid; });
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
  prediction.grade = node.base->machine->grade;
  prediction.outcome = Answer(*node.base, request);
  if (prediction.outcome.rejected()) return say(Certainty::kNo, Because::kRefused);
  if (!prediction.outcome.admitted()) return say(Certainty::kUnknown, Because::kNoAnswer);
  if (!node.blocks.empty() && FindBlock(node, request) != nullptr) {
    return say(Certainty::kNo, Because::kRefusedRecently);
  }
  if (!OthersWait(node, uid) && IsAnsweredAtOnce(*node.base->machine, request)) {
    return say(Certainty::kYes, Because::kFits);
  }
  Settle(node, request, uid, prediction);
  return prediction;
}

const char* ToString(Certainty certainty) {
  static constexpr std::array kNames = {"Yes", "Depends", "No", "Unknown"};
  return kNames[static_cast<std::size_t>(certainty)];
}

const char* ToString(Because because) {
  static constexpr std::array kNames = {"Fits",     "Refused",           "RefusedRecently",
                                        "PodsWait", "WouldRefuseOthers", "RoomMayMislead",
                                        "NoData",   "NoAnswer"};
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
