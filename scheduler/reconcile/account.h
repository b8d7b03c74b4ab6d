#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "scheduler/admission/coarse.h"
#include "scheduler/ledger/event.h"
#include "scheduler/ledger/view.h"
#include "scheduler/reconcile/observed.h"

namespace scheduler::reconcile {

// How often something diverged, by DivergenceKind.
using Divergences = std::array<std::int64_t, ledger::kDivergenceKinds>;

// A rejection that we had not expected, with the node as it was when the pod was bound: Predict of
// `view` and `shape` says yes again.
struct WrongYes {
  base::Time at;
  std::string node;
  std::string uid;
  std::string pod;  // "namespace/name"
  std::string reason;
  ledger::ShapePtr shape;
  ledger::NodeViewPtr view;
};

// Such a pod is not sent there again for so long, if nothing changes on the node before.
inline constexpr std::chrono::minutes kBlockTime{5};
// An agent that renewed its Lease so long after something happened has looked since, and what it
// saw is here: it looks every second or two, and publishes only what has changed.
inline constexpr std::chrono::seconds kLookTime{10};

// All that is known of one node and its pods, and what follows from it. What a view says depends on
// what is known now and not on the order in which it came, so that after a restart the API alone
// rebuilds it; the exceptions help only as long as they are remembered: blocks, and where a pod was
// before the agent lost sight of it.
//
// An entry, by pod UID, goes through these standings (ledger/view.h), of which one is charged:
//
//     leased ──> bound ──> admitted ──> observed ──> gone
//                  │           │         │    ↑        ↑ a newer observation lacks it, or without
//                  └───────────┴─────────┘  missing    │ a live agent: the API does
//                    complete in an observation
class Account {
 public:
  Account(std::string name, admission::Machines& machines)
      : name_(std::move(name)), machines_(machines) {}

  void NodeIs(const ledger::NodeChanged& node, base::Time now);
  void NodeIsGone() { node_.reset(); }
  void TopologyIs(const placement::NodeResourceTopology& nrt);
  void TopologyIsGone();
  void PlacementIs(const placement::NodePlacement& placement, base::Time now);
  void PlacementIsGone() { observed_.reset(); }
  void AgentIsAlive(base::Time renewed, base::Time now);

  enum class Binder { kUs, kListed, kWatched };  // who told us of the binding
  void PodIs(const ledger::PodFacts& facts, const ledger::ShapePtr& shape, Binder binder,
             base::Time now);
  void PodIsGone(const std::string& uid, base::Time now);
  void PodIsRefused(const std::string& uid, const std::string& reason, base::Time now);
  void Lease(const std::string& uid, const ledger::ShapePtr& shape);
  void EndLease(const std::string& uid) { leases_.erase(uid); }

  // What follows from all that, at this time. Entries and blocks that have had their time end here;
  // leases are ended by whoever took them.
  ledger::NodeViewPtr View(base::Time now);
  // When the view changes though nothing is told; nothing: never.
  std::optional<base::Time> due() const { return due_; }

  // Whether there is such a node, and not just pods that name it.
  bool is_there() const { return node_ || observed_ || nrt_; }
  // A sign of life may be told before the node is, and is not told again until the next one.
  bool KnowsNothing(base::Time now) const {
    return !is_there() && entries_.empty() && leases_.empty() && AgentIsSilent(now);
  }
  // What has come up since the last call.
  Divergences TakeDivergences() { return std::exchange(counts_, {}); }
  std::vector<WrongYes> TakeWrongAnswers() { return std::exchange(wrong_, {}); }

 private:
  struct Entry {
    std::string name;  // "namespace/name"
    ledger::ShapePtr shape;
    bool running = false;
    bool terminating = false;
    bool ended = false;    // terminal, deleted or refused
    bool deleted = false;  // the API does not have it any more
    bool refused = false;
    bool seen = false;                        // some observation was complete
    std::optional<base::Time> running_since;  // when we were told
    std::optional<base::Time> ended_at;
    std::optional<base::Time> created;
    std::optional<base::Time> started;
    std::optional<base::NumaMask> predicted;
    ledger::NodeViewPtr promised;  // the view that said yes when it was bound
    // Of a pod that the agent has lost sight of: what it held, on which machine, and since when.
    std::vector<admission::Holding> last_held;
    std::shared_ptr<const admission::Machine> last_machine;
    std::optional<base::Time> missing_since;
    bool missing_counted = false;
  };
  struct BlockEntry {
    ledger::Block block;
    // The node as it was in the first view after it; nullptr before.
    std::shared_ptr<const admission::Machine> machine;
    admission::Pool pool;
  };
  struct Stranger {  // the kubelet holds something for a pod that the API does not have
    base::Time since;
    bool counted = false;
  };
  class Draft;  // a view in the making

  bool HasObservation() const;
  bool AgentLives(base::Time now) const;
  bool AgentIsSilent(base::Time now) const {
    return !agent_alive_ || now - *agent_alive_ >= ledger::kAgentSilent;
  }
  bool HasLookedSince(base::Time at) const;
  ledger::Confidence ConfidenceAt(base::Time now);
  void Enter(const ledger::PodFacts& facts, const ledger::Shape& shape, Binder binder,
             base::Time now, Entry& entry);
  void End(const ledger::PodFacts& facts, Binder binder, base::Time now, Entry& entry);
  void ReadTopology();
  void CompareKubelets(const Observed& before, const Observed& after, base::Time now);
  void RememberWhereTheyWere(const Observed& after, base::Time now);
  void Refuse(const std::string& uid, Entry& entry, const std::string& reason, base::Time now);
  void Diverged(ledger::DivergenceKind kind, base::Time now, const std::string& pod,
                std::string message);
  void EndBlocks(const admission::NodeState* base, base::Time now);
  void ComeBackAt(base::Time at) { due_ = due_ ? std::min(*due_, at) : at; }
  // The key under which the observation has the pod's holdings; "" if it has none.
  std::string KeyOf(const std::string& uid, const Entry& entry) const;
  bool IsListed(const std::string& uid, const Entry& entry) const;

  std::string name_;
  admission::Machines& machines_;
  std::optional<ledger::NodeChanged> node_;
  std::string node_uid_;  // the latest; "" if there was none
  std::optional<Observed> observed_;
  std::optional<placement::NodeResourceTopology> nrt_;
  std::optional<admission::CoarseState> coarse_;
  std::string unreadable_;                 // why NodePlacement or NodeResourceTopology is not used
  std::optional<base::Time> agent_alive_;  // when we were told that its Lease was renewed
  std::optional<base::Time> renewed_;
  std::map<std::string, Entry> entries_;            // by UID
  std::map<std::string, ledger::ShapePtr> leases_;  // by the pod's UID
  std::map<std::string, Stranger> strangers_;
  std::vector<BlockEntry> blocks_;
  std::vector<ledger::Divergence> latest_;
  Divergences counts_{};
  std::vector<WrongYes> wrong_;
  ledger::NodeViewPtr view_;
  std::optional<base::Time> due_;
};

}  // namespace scheduler::reconcile
