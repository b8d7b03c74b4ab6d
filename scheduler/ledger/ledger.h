#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "scheduler/ledger/event.h"
#include "scheduler/ledger/pod.h"
#include "scheduler/ledger/view.h"
#include "scheduler/reconcile/account.h"

namespace scheduler::ledger {

// The accounts of all nodes: what is taken on each NUMA node, by what agents observed and by what
// we predict. Apply is the only way in and Take the only way out; equal events give equal
// snapshots, whatever else happens. One thread writes; snapshots may be read by any.
class Ledger {
 public:
  void Apply(const Event& event);

  // All nodes as of the last event. A pointer is copied; the next event that changes a node copies
  // the list of nodes once.
  Snapshot Take() const { return Snapshot(views_, now_); }

  const reconcile::Divergences& divergences() const { return divergences_; }
  // The latest rejections that were not predicted, oldest first, with what was known: for replay.
  const std::vector<reconcile::WrongYes>& wrong_answers() const { return wrong_answers_; }

 private:
  using Account = reconcile::Account;

  void On(const NodeChanged& event);
  void On(const NodeGone& event);
  void On(const TopologyChanged& event);
  void On(const TopologyGone& event);
  void On(const PlacementChanged& event);
  void On(const PlacementGone& event);
  void On(const AgentAlive& event);
  void On(const PodBound& event);
  void On(const PodChanged& event);
  void On(const PodGone& event);
  void On(const PodRejected& event);
  void On(const LeaseTaken& event);
  void On(const LeaseEnded& event);
  void On(const TimePassed& event);

  void PodIs(const PodFacts& pod, Account::Binder binder);
  void EndLease(const std::string& uid, const std::string& but_on);
  Account& Touch(const std::string& node);
  void LetTimePass();
  void Refresh();
  void Publish(const std::string& node, Account& account);
  void ComeBack(const std::string& node, std::optional<base::Time> at);
  void PutView(NodeViewPtr view);
  void DropView(const std::string& node);
  Snapshot::Views& OwnViews();

  base::Time now_;
  Shapes shapes_;
  admission::Machines machines_;
  std::map<std::string, Account> accounts_;               // by node
  std::unordered_map<std::string, std::string> node_of_;  // of bound pods, by UID; never walked
  struct Lease {
    std::vector<std::string> nodes;
    base::Time until;
  };
  std::map<std::string, Lease> leases_;                      // by the pod's UID
  std::set<std::pair<base::Time, std::string>> lease_ends_;  // the same by time
  std::set<std::pair<base::Time, std::string>> due_;         // when which node changes by itself
  std::map<std::string, base::Time> due_of_;                 // the same, by node
  std::set<std::string> touched_;                            // nodes to be looked at anew
  std::shared_ptr<Snapshot::Views> views_ = std::make_shared<Snapshot::Views>();
  reconcile::Divergences divergences_{};
  std::vector<reconcile::WrongYes> wrong_answers_;
};

}  // namespace scheduler::ledger
