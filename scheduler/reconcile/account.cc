#include "scheduler/reconcile/account.h"

#include <fmt/format.h>

#include "scheduler/ledger/predict.h"

namespace scheduler::reconcile {
namespace {

using ledger::DivergenceKind;

constexpr std::size_t kKeptDivergences = 8;

// What a restart alone does not change.
placement::KubeletFacts Configuration(placement::KubeletFacts kubelet) {
  kubelet.started_at.reset();
  kubelet.config_source.clear();
  return kubelet;
}

std::string NameOf(const ledger::PodFacts& facts) {
  return facts.pod.namespace_name + "/" + facts.pod.name;
}

}  // namespace

void Account::NodeIs(const ledger::NodeChanged& node, base::Time now) {
  const bool recreated = !node_uid_.empty() && node_uid_ != node.uid;
  node_uid_ = node.uid;
  node_ = node;
  if (recreated) {
    Diverged(DivergenceKind::kNodeRecreated, now, "", "the Node was deleted and created anew");
    // Without a boot id nothing tells whether the observation is of the new machine or the old one.
    if (node.boot_id.empty()) observed_.reset();
    blocks_.clear();
    // What was seen was on the old machine. The pods stay until the API says that they are gone.
    for (auto& [uid, entry] : entries_) {
      entry.seen = false;
      entry.missing_since.reset();
    }
  }
  ReadTopology();
}

void Account::TopologyIs(const placement::NodeResourceTopology& nrt) {
  nrt_ = nrt;
  ReadTopology();
}

void Account::TopologyIsGone() {
  nrt_.reset();
  ReadTopology();
}

// How old the sign of life is follows from our clock alone: the agent's may be wrong.
void Account::AgentIsAlive(base::Time renewed, base::Time now) {
  if (renewed_ == renewed) return;
  renewed_ = renewed;
  agent_alive_ = now;
}

void Account::ReadTopology() {
  coarse_.reset();
  if (!nrt_) return;
  absl::StatusOr<admission::CoarseState> coarse =
      CoarseStateFrom(*nrt_, node_ ? node_->facts : admission::NodeFacts());
  if (!coarse.ok()) {
    unreadable_ = std::string(coarse.status().message());
    return;
  }
  coarse->state.machine = machines_.Share(coarse->state.machine);
  coarse_ = *std::move(coarse);
}

void Account::PlacementIs(const placement::NodePlacement& placement, base::Time now) {
  absl::StatusOr<Observed> observed = Observe(placement, machines_);
  if (!observed.ok()) {
    // It says nothing, which is not that nothing is held: NodeResourceTopology and the API remain.
    unreadable_ = std::string(observed.status().message());
    observed_.reset();
    return;
  }
  unreadable_.clear();
  if (observed_) {
    CompareKubelets(*observed_, *observed, now);
    RememberWhereTheyWere(*observed, now);
  }
  observed_ = *std::move(observed);
}

// Another configuration often changes what there is as well: it is told as the cause, once.
void Account::CompareKubelets(const Observed& before, const Observed& after, base::Time now) {
  if (before.kubelet.started_at != after.kubelet.started_at || before.boot_id != after.boot_id) {
    Diverged(DivergenceKind::kKubeletRestarted, now, "",
             before.boot_id != after.boot_id ? "the machine was started anew"
                                             : "the kubelet was started anew");
  }
  if (Configuration(before.kubelet) != Configuration(after.kubelet)) {
    Diverged(DivergenceKind::kConfigurationChanged, now, "",
             "the kubelet runs with another configuration");
  } else if (before.state->machine != after.state->machine) {
    Diverged(DivergenceKind::kCapacityChanged, now, "",
             "CPUs, memory or devices of the node are others than before");
  }
}

// Called while `observed_` is still the last observation that had them.
void Account::RememberWhereTheyWere(const Observed& after, base::Time now) {
  for (auto& [uid, entry] : entries_) {
    const bool listed = after.Lists(uid) || after.Lists(entry.name);
    if (listed) entry.missing_since.reset();
    if (listed || !entry.seen || entry.missing_since) continue;
    const std::string key = KeyOf(uid, entry);
    entry.last_held =
        key.empty() ? std::vector<admission::Holding>() : observed_->state->pods.at(key);
    entry.last_machine = observed_->state->machine;
    entry.missing_since = now;
  }
}

void Account::PodIs(const ledger::PodFacts& facts, const ledger::ShapePtr& shape, Binder binder,
                    base::Time now) {
  const std::string& uid = facts.pod.uid;
  const auto [place, is_new] = entries_.try_emplace(uid);
  Entry& entry = place->second;
  if (is_new) Enter(facts, *shape, binder, now, entry);
  leases_.erase(uid);
  entry.shape = shape;
  entry.running = facts.phase == ledger::Phase::kRunning;
  if (entry.running && !entry.running_since) entry.running_since = now;
  entry.terminating = facts.terminating;
  entry.created = facts.created;
  entry.started = facts.started;
  if (facts.terminal()) End(facts, binder, now, entry);
}

// What was predicted when the pod was bound, and whether it was bound through us.
void Account::Enter(const ledger::PodFacts& facts, const ledger::Shape& shape, Binder binder,
                    base::Time now, Entry& entry) {
  entry.name = NameOf(facts);
  const std::string& uid = facts.pod.uid;
  const bool ours = binder == Binder::kUs || leases_.contains(uid);
  if (ours && view_ != nullptr &&
      Predict(*view_, shape.request, uid).certainty == ledger::Certainty::kYes) {
    entry.promised = view_;
  }
  if (!ours && binder == Binder::kWatched && !facts.terminal()) {
    Diverged(DivergenceKind::kForeignPod, now, entry.name, "it was bound without us");
  }
}

void Account::End(const ledger::PodFacts& facts, Binder binder, base::Time now, Entry& entry) {
  // What was refused before we began to watch was so on a node that we did not know.
  const bool refused =
      facts.phase == ledger::Phase::kFailed && ledger::IsAdmissionRejection(facts.reason);
  if (refused && binder != Binder::kListed) Refuse(facts.pod.uid, entry, facts.reason, now);
  entry.refused = entry.refused || refused;
  entry.ended = true;
  if (!entry.ended_at) entry.ended_at = now;
}

void Account::PodIsGone(const std::string& uid, base::Time now) {
  leases_.erase(uid);
  const auto found = entries_.find(uid);
  if (found == entries_.end()) return;
  Entry& entry = found->second;
  entry.deleted = entry.ended = true;
  if (!entry.ended_at) entry.ended_at = now;
}

void Account::PodIsRefused(const std::string& uid, const std::string& reason, base::Time now) {
  const auto found = entries_.find(uid);
  if (found == entries_.end()) return;
  Refuse(uid, found->second, reason, now);
}

void Account::Refuse(const std::string& uid, Entry& entry, const std::string& reason,
                     base::Time now) {
  if (entry.refused) return;  // both the Event and the pod's status tell
  entry.refused = entry.ended = true;
  entry.ended_at = now;
  blocks_.push_back({{entry.shape, now + kBlockTime, reason}, nullptr, {}});
  if (entry.promised == nullptr) return;
  Diverged(DivergenceKind::kRefusedAfterYes, now, entry.name,
           fmt::format("refused with {}, though it was to be admitted", reason));
  wrong_.push_back({now, name_, uid, entry.name, reason, entry.shape, std::move(entry.promised)});
}

void Account::Lease(const std::string& uid, const ledger::ShapePtr& shape) {
  if (!entries_.contains(uid)) leases_[uid] = shape;  // else it is bound here and charged already
}

// The node is compared with what it was in the first view after the rejection, as the observation
// of that moment may still have shown parts of the refused pod.
void Account::EndBlocks(const admission::NodeState* base, base::Time now) {
  std::erase_if(blocks_, [&](BlockEntry& entry) {
    const bool first = base != nullptr && entry.machine == nullptr;
    if (first) {
      entry.machine = base->machine;
      entry.pool = base->pool;
    }
    const bool same = base != nullptr && entry.machine == base->machine && entry.pool == base->pool;
    return !same || entry.block.until <= now;
  });
  for (const BlockEntry& entry : blocks_) ComeBackAt(entry.block.until);
}

// Of a machine that was started anew, or of another one of this name, the two tell a moment apart.
bool Account::HasObservation() const {
  if (!observed_) return false;
  if (!node_ || node_->boot_id.empty() || observed_->boot_id.empty()) return true;
  return node_->boot_id == observed_->boot_id;
}

// An agent that says itself that it cannot ask the kubelet is as good as none.
bool Account::AgentLives(base::Time now) const {
  return HasObservation() && observed_->current && agent_alive_ &&
         now - *agent_alive_ < ledger::kAgentStale;
}

bool Account::HasLookedSince(base::Time at) const {
  return agent_alive_ && *agent_alive_ >= at + kLookTime;
}

ledger::Confidence Account::ConfidenceAt(base::Time now) {
  using ledger::Confidence;
  const bool silent = AgentIsSilent(now);
  if (!silent) ComeBackAt(*agent_alive_ + ledger::kAgentSilent);
  if (!HasObservation()) return coarse_ ? Confidence::kPredicted : Confidence::kNone;
  if (silent) return Confidence::kSilent;
  if (!AgentLives(now)) return Confidence::kStale;
  ComeBackAt(*agent_alive_ + ledger::kAgentStale);
  return Confidence::kObserved;
}

void Account::Diverged(DivergenceKind kind, base::Time now, const std::string& pod,
                       std::string message) {
  ++counts_[static_cast<std::size_t>(kind)];
  if (latest_.size() == kKeptDivergences) latest_.erase(latest_.begin());
  latest_.push_back({kind, now, pod, std::move(message)});
}

// By UID; where the agent could not tell it, of a static pod for example, by name.
std::string Account::KeyOf(const std::string& uid, const Entry& entry) const {
  if (!observed_) return "";
  const auto& pods = observed_->state->pods;
  if (pods.contains(uid)) return uid;
  return pods.contains(entry.name) ? entry.name : "";
}

bool Account::IsListed(const std::string& uid, const Entry& entry) const {
  return observed_ && (observed_->Lists(uid) || observed_->Lists(entry.name));
}

}  // namespace scheduler::reconcile
