#include "scheduler/ledger/ledger.h"

#include <algorithm>
#include <array>
#include <utility>
#include <variant>

namespace scheduler::ledger {
namespace {

constexpr std::size_t kKeptWrongAnswers = 32;

const std::string& NameOf(const NodeViewPtr& view) { return view->name; }

}  // namespace

const char* KindOf(const Event& event) {
  static constexpr std::array kNames = {
      "NodeChanged",   "NodeGone",   "TopologyChanged", "TopologyGone", "PlacementChanged",
      "PlacementGone", "AgentAlive", "PodBound",        "PodChanged",   "PodGone",
      "PodRejected",   "LeaseTaken", "LeaseEnded",      "TimePassed"};
  static_assert(kNames.size() == std::variant_size_v<decltype(Event::what)>);
  return kNames[event.what.index()];
}

void Ledger::Apply(const Event& event) {
  now_ = std::max(now_, event.at);
  LetTimePass();
  std::visit([this](const auto& what) { On(what); }, event.what);
  Refresh();
}

// Leases, blocks and the word of silent agents end before anything else happens.
void Ledger::LetTimePass() {
  while (!lease_ends_.empty() && lease_ends_.begin()->first <= now_) {
    EndLease(std::string(lease_ends_.begin()->second), "");
  }
  for (auto next = due_.begin(); next != due_.end() && next->first <= now_; ++next) {
    touched_.insert(next->second);
  }
  Refresh();
}

void Ledger::On(const NodeChanged& event) { Touch(event.node).NodeIs(event, now_); }
void Ledger::On(const NodeGone& event) { Touch(event.node).NodeIsGone(); }
void Ledger::On(const TopologyChanged& event) { Touch(event.nrt.name).TopologyIs(event.nrt); }
void Ledger::On(const TopologyGone& event) { Touch(event.node).TopologyIsGone(); }
void Ledger::On(const PlacementChanged& event) {
  Touch(event.placement.node_name).PlacementIs(event.placement, now_);
}
void Ledger::On(const PlacementGone& event) { Touch(event.node).PlacementIsGone(); }
void Ledger::On(const AgentAlive& event) { Touch(event.node).AgentIsAlive(event.renewed, now_); }
void Ledger::On(const PodBound& event) { PodIs(event.pod, Account::Binder::kUs); }
void Ledger::On(const PodChanged& event) {
  PodIs(event.pod, event.listed ? Account::Binder::kListed : Account::Binder::kWatched);
}

// A pod without a UID is no object of the API server.
void Ledger::PodIs(const PodFacts& facts, Account::Binder binder) {
  const std::string& uid = facts.pod.uid;
  const std::string& node = facts.pod.node_name;
  if (node.empty() || uid.empty()) return;
  EndLease(uid, node);
  node_of_[uid] = node;
  Touch(node).PodIs(facts, shapes_.Share(facts.pod), binder, now_);
}

void Ledger::On(const PodGone& event) {
  EndLease(event.uid, "");
  const auto node = node_of_.find(event.uid);
  if (node == node_of_.end()) return;
  Touch(node->second).PodIsGone(event.uid, now_);
  node_of_.erase(node);
}

void Ledger::On(const PodRejected& event) {
  const auto node = node_of_.find(event.uid);
  if (node != node_of_.end()) Touch(node->second).PodIsRefused(event.uid, event.reason, now_);
}

void Ledger::On(const LeaseTaken& event) {
  const std::string& uid = event.pod.pod.uid;
  EndLease(uid, "");
  if (node_of_.contains(uid)) return;  // it is bound and charged already
  const ShapePtr shape = shapes_.Share(event.pod.pod);
  for (const std::string& node : event.nodes) Touch(node).Lease(uid, shape);
  leases_[uid] = {event.nodes, event.until};
  lease_ends_.insert({event.until, uid});
}

void Ledger::On(const LeaseEnded& event) { EndLease(event.uid, ""); }

void Ledger::On(const TimePassed&) {}

// On the node that the pod is bound to the account ends it itself: it tells by it that the pod is
// ours.
void Ledger::EndLease(const std::string& uid, const std::string& but_on) {
  const auto lease = leases_.find(uid);
  if (lease == leases_.end()) return;
  for (const std::string& node : lease->second.nodes) {
    if (node != but_on) Touch(node).EndLease(uid);
  }
  lease_ends_.erase({lease->second.until, uid});
  leases_.erase(lease);
}

reconcile::Account& Ledger::Touch(const std::string& node) {
  touched_.insert(node);
  return accounts_.try_emplace(node, node, machines_).first->second;
}

// Builds the views of touched nodes anew. An account that knows nothing any more ends.
void Ledger::Refresh() {
  for (const std::string& node : std::exchange(touched_, {})) {
    const auto account = accounts_.find(node);
    if (account == accounts_.end()) continue;
    Publish(node, account->second);
    if (account->second.KnowsNothing(now_)) accounts_.erase(account);
  }
}

void Ledger::Publish(const std::string& node, Account& account) {
  NodeViewPtr view = account.View(now_);
  account.is_there() ? PutView(std::move(view)) : DropView(node);
  ComeBack(node, account.due());
  const reconcile::Divergences more = account.TakeDivergences();
  for (std::size_t kind = 0; kind < more.size(); ++kind) divergences_[kind] += more[kind];
  for (reconcile::WrongYes& wrong : account.TakeWrongAnswers()) {
    if (wrong_answers_.size() == kKeptWrongAnswers) wrong_answers_.erase(wrong_answers_.begin());
    wrong_answers_.push_back(std::move(wrong));
  }
}

// A node that changes by itself at some time is looked at then: an agent falls silent, a block
// ends.
void Ledger::ComeBack(const std::string& node, std::optional<base::Time> at) {
  const auto before = due_of_.find(node);
  if (before != due_of_.end()) {
    due_.erase({before->second, node});
    due_of_.erase(before);
  }
  if (!at) return;
  due_of_[node] = *at;
  due_.insert({*at, node});
}

// A list that a snapshot still holds is copied, not written to.
Snapshot::Views& Ledger::OwnViews() {
  if (views_.use_count() > 1) views_ = std::make_shared<Snapshot::Views>(*views_);
  return *views_;
}

void Ledger::PutView(NodeViewPtr view) {
  Snapshot::Views& views = OwnViews();
  const auto place = std::ranges::lower_bound(views, view->name, {}, NameOf);
  if (place != views.end() && (*place)->name == view->name) {
    *place = std::move(view);
  } else {
    views.insert(place, std::move(view));
  }
}

void Ledger::DropView(const std::string& node) {
  if (Take().Find(node) == nullptr) return;
  Snapshot::Views& views = OwnViews();
  views.erase(std::ranges::lower_bound(views, node, {}, NameOf));
}

}  // namespace scheduler::ledger
