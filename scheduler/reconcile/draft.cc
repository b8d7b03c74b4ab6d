#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "scheduler/reconcile/account.h"
#include "scheduler/reconcile/holdings.h"

namespace scheduler::reconcile {

using admission::Holding;
using admission::NodeState;
using ledger::DivergenceKind;
using ledger::Standing;
using ledger::Waiting;

// Puts one node's accounts together: what is held for certain, then who waits.
class Account::Draft {
 public:
  Draft(Account& account, base::Time now)
      : account_(account), now_(now), live_(account.AgentLives(now)) {}

  std::shared_ptr<ledger::NodeView> Finish() {
    auto view = std::make_shared<ledger::NodeView>();
    view->name = account_.name_;
    view->confidence = account_.ConfidenceAt(now_);
    if (account_.HasObservation()) {
      base_ = account_.observed_->state;
      FromObservation();
    } else if (account_.coarse_) {
      FromTopology();
    } else {
      ForgetWhoIsDeleted();
    }
    AddLeases();
    view->base = base_;
    view->expected = base_ == nullptr ? nullptr : Expect();
    view->waiting = std::move(waiting_);
    AddNotes(*view);
    return view;
  }

 private:
  struct InOrder {
    const std::string* uid;
    Entry* entry;
  };

  // ---- With an agent's observation

  void FromObservation() {
    for (auto entry = account_.entries_.begin(); entry != account_.entries_.end();) {
      const bool over = entry->second.ended ? SettleEnded(entry->first, entry->second)
                                            : SettleAlive(entry->first, entry->second);
      entry = over ? account_.entries_.erase(entry) : std::next(entry);
    }
    SettleStrangers();
    SortAndPlace();
  }

  // Of a pod that is deleted, terminal or refused. True if the entry is of no more use.
  bool SettleEnded(const std::string& uid, Entry& entry) {
    const std::string key = account_.KeyOf(uid, entry);
    const bool held = !key.empty();
    // A force-deleted or terminal pod keeps what the kubelet says that it holds. What a refused one
    // had got is given back before the next admission.
    if (held && live_ && !entry.refused) return false;
    if (held) Remove(key);
    if (!live_) return entry.deleted && IsLongOver(entry);
    if (!held && MayStillCome(entry)) {
      if (Wants(entry)) bound_.push_back({&uid, &entry});
      return false;
    }
    return entry.deleted && !held;
  }

  // Ended before any observation had it: the kubelet may just be admitting it.
  bool MayStillCome(const Entry& entry) const {
    return !entry.refused && !entry.seen && !account_.HasLookedSince(*entry.ended_at);
  }

  // Of a pod that the API has: seen, missing, or yet to be admitted.
  bool SettleAlive(const std::string& uid, Entry& entry) {
    const std::string key = account_.KeyOf(uid, entry);
    const bool listed = account_.IsListed(uid, entry);
    static const std::vector<Holding> kNothing;
    const std::vector<Holding>& held = key.empty() ? kNothing : Held(key);
    if (listed && (IsComplete(*base_->machine, entry.shape->request, held) || MustBeAll(entry))) {
      See(entry, held);
      return false;
    }
    if (!key.empty()) Remove(key);  // the kubelet was still admitting it
    if (!Wants(entry)) return false;
    if (entry.missing_since && entry.last_machine == base_->machine) {
      Miss(uid, entry);
    } else {
      (entry.running ? admitted_ : bound_).push_back({&uid, &entry});
    }
    return false;
  }

  // A running pod that is seen to hold less than it must may have been seen before it was admitted.
  bool MustBeAll(const Entry& entry) const {
    return entry.running && account_.HasLookedSince(*entry.running_since);
  }

  // The observation has all of it: what was predicted is compared once, and forgotten.
  void See(Entry& entry, const std::vector<Holding>& held) {
    const base::NumaMask nodes = base_->machine->ToIds(NodesOf(*base_->machine, held));
    if (!entry.seen && entry.predicted && *entry.predicted != nodes) {
      account_.Diverged(DivergenceKind::kOtherNumaNode, now_, entry.name,
                        fmt::format("it is on NUMA nodes {}, and was expected on {}",
                                    nodes.ToString(), entry.predicted->ToString()));
    }
    entry.seen = true;
    entry.promised.reset();
    entry.predicted.reset();
    entry.last_held.clear();
  }

  // A terminating pod is freed on the node before the API tells: that is no divergence.
  void Miss(const std::string& uid, Entry& entry) {
    HoldAgain(uid, entry.last_held, Own());
    waiting_.push_back({uid, Standing::kMissing, entry.shape, NodesNow(uid)});
    const bool lost = !entry.terminating && account_.HasLookedSince(*entry.missing_since);
    if (!lost || entry.missing_counted) return;
    entry.missing_counted = true;
    account_.Diverged(DivergenceKind::kMissingPod, now_, entry.name,
                      "the kubelet does not list it any more, and the API still has it");
  }

  // Who holds something and is no entry. Without an agent at work the API's word is the last.
  void SettleStrangers() {
    std::map<std::string, Stranger> still;
    for (const std::string& key : Strangers()) {
      if (!live_) {
        Remove(key);
        continue;
      }
      const auto known = account_.strangers_.find(key);
      Stranger& stranger = still[key];
      stranger = known == account_.strangers_.end() ? Stranger{now_} : known->second;
      if (stranger.counted || !account_.HasLookedSince(stranger.since)) continue;
      stranger.counted = true;
      account_.Diverged(DivergenceKind::kUnknownPod, now_, key,
                        "the kubelet holds something for it, and the API does not have it");
    }
    account_.strangers_ = std::move(still);
  }

  // Those of the observation that no entry claims, by UID or, if the agent could not tell it, by
  // name.
  std::vector<std::string> Strangers() const {
    std::vector<std::string> strangers;
    for (const auto& pod : account_.observed_->state->pods) {
      const std::string& key = pod.first;
      if (account_.entries_.contains(key)) continue;
      const bool named = key.find('/') != std::string::npos &&
                         std::ranges::any_of(account_.entries_, [&](const auto& entry) {
                           return entry.second.name == key;
                         });
      if (!named) strangers.push_back(key);
    }
    return strangers;
  }

  // ---- Without an agent: the machine is NodeResourceTopology's, the pods are the API's

  void FromTopology() {
    const NodeState& told = account_.coarse_->state;
    NodeState empty = admission::EmptyState({told.machine, told.device_ids});
    // An ill device is taken out of what is allocatable: counts do not tell of it otherwise.
    for (std::size_t i = 0; i < empty.pool.devices.size(); ++i) {
      empty.pool.devices[i].healthy = told.pool.devices[i].healthy;
    }
    base_ = std::make_shared<const NodeState>(std::move(empty));
    ForgetWhoIsDeleted();
    for (auto& [uid, entry] : account_.entries_) {
      if (entry.ended || !Wants(entry)) continue;
      (entry.running ? admitted_ : bound_).push_back({&uid, &entry});
    }
    SortAndPlace();
    BelieveWhereTheSumsAgree(told);
  }

  // Which pods NodeResourceTopology counts it does not say, and it may be a minute late. If as much
  // is taken as our pods take together, it counts these, and says where they are; otherwise they
  // are charged by prediction. Never both: that would charge them twice.
  void BelieveWhereTheSumsAgree(const NodeState& told) {
    const std::vector<std::int64_t> sums = Sums(told.pool);
    const bool of_admitted = sums == Sums(base_->pool);
    if (!of_admitted && (waiting_.empty() || sums != Sums(Expect()->pool))) return;
    base_ = std::make_shared<const NodeState>(told);
    if (!of_admitted) waiting_.clear();
  }

  // ---- Both

  void ForgetWhoIsDeleted() {
    std::erase_if(account_.entries_, [this](const auto& entry) {
      return entry.second.deleted && IsLongOver(entry.second);
    });
  }

  // An agent may come (back) in a moment, and the kubelet may then still be admitting the pod.
  bool IsLongOver(const Entry& entry) const {
    const base::Time over = *entry.ended_at + kLookTime;
    if (now_ < over) account_.ComeBackAt(over);
    return now_ >= over;
  }

  // Pods that run unseen are facts: with an agent at work only their place is open for a moment,
  // without one nobody will ever tell, and they count as held where we predict them.
  void SortAndPlace() {
    const auto order = [](const InOrder& pod) {
      constexpr base::Time kLast = base::Time::max();
      return std::tuple(pod.entry->started.value_or(kLast), pod.entry->created.value_or(kLast),
                        *pod.uid);
    };
    std::ranges::sort(admitted_, {}, order);
    std::ranges::sort(bound_, {}, order);
    for (const InOrder& pod : admitted_) {
      if (live_) {
        waiting_.push_back({*pod.uid, Standing::kAdmitted, pod.entry->shape, {}});
      } else {
        Place(*pod.uid, *pod.entry->shape, true, Own());
        pod.entry->predicted = NodesNow(*pod.uid);
      }
    }
    for (const InOrder& pod : bound_) {
      waiting_.push_back({*pod.uid, Standing::kBound, pod.entry->shape, {}});
    }
  }

  // A pod that runs holds what it wants, even if we would have refused it.
  static void Place(const std::string& uid, const ledger::Shape& shape, bool runs,
                    NodeState& state) {
    if (!HoldAsPredicted(uid, shape, runs, state) && runs) HoldAnywhere(uid, shape, state);
  }

  void AddLeases() {
    for (const auto& [uid, shape] : account_.leases_) {
      if (base_ == nullptr || !WantsSomething(*base_->machine, shape->request)) continue;
      waiting_.push_back({uid, Standing::kLeased, shape, {}});
    }
  }

  // Lets the kubelet's algorithm place those who wait, one after another.
  std::shared_ptr<const NodeState> Expect() {
    std::shared_ptr<NodeState> expected;
    for (Waiting& pod : waiting_) {
      if (pod.standing == Standing::kMissing) continue;
      if (expected == nullptr) expected = std::make_shared<NodeState>(*base_);
      Place(pod.uid, *pod.shape, pod.standing == Standing::kAdmitted, *expected);
      const auto held = expected->pods.find(pod.uid);
      if (held == expected->pods.end()) continue;
      pod.numa_nodes = base_->machine->ToIds(NodesOf(*base_->machine, held->second));
      const auto entry = account_.entries_.find(pod.uid);
      if (entry != account_.entries_.end()) entry->second.predicted = pod.numa_nodes;
    }
    if (expected == nullptr) return base_;
    return expected;
  }

  void AddNotes(ledger::NodeView& view) const {
    const bool observed = account_.HasObservation();
    if (observed) {
      view.notes = account_.observed_->gaps;
      view.roughly = account_.observed_->roughly;
    } else if (account_.coarse_) {
      view.notes = account_.coarse_->assumptions;
      view.roughly.all = true;
    }
    if (!observed && !account_.unreadable_.empty()) {
      view.notes.push_back({"ObjectNotUsed", view.name, account_.unreadable_});
    }
    std::ranges::sort(view.notes);
    view.divergences = account_.latest_;
  }

  bool Wants(const Entry& entry) const {
    return WantsSomething(*base_->machine, entry.shape->request);
  }
  const std::vector<Holding>& Held(const std::string& key) const {
    return account_.observed_->state->pods.at(key);
  }
  base::NumaMask NodesNow(const std::string& uid) const {
    return base_->machine->ToIds(NodesOf(*base_->machine, base_->pods.at(uid)));
  }
  void Remove(const std::string& key) { admission::Remove(Own(), key); }

  // The base, to be written to: the observation's own state is not.
  NodeState& Own() {
    if (own_ == nullptr) {
      own_ = std::make_shared<NodeState>(*base_);
      base_ = own_;
    }
    return *own_;
  }

  Account& account_;
  base::Time now_;
  bool live_;
  std::shared_ptr<const NodeState> base_;
  std::shared_ptr<NodeState> own_;  // base_, once it is written to
  std::vector<InOrder> admitted_;
  std::vector<InOrder> bound_;
  std::vector<Waiting> waiting_;
};

ledger::NodeViewPtr Account::View(base::Time now) {
  due_.reset();
  const std::shared_ptr<ledger::NodeView> view = Draft(*this, now).Finish();
  EndBlocks(view->base.get(), now);
  for (const BlockEntry& entry : blocks_) view->blocks.push_back(entry.block);
  view_ = view;
  return view_;
}

}  // namespace scheduler::reconcile
