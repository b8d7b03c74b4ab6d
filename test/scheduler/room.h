#pragma once

#include <map>
#include <string>
#include <vector>

#include "scheduler/ledger/ledger.h"
#include "scheduler/ledger/predict.h"
#include "test/scheduler/scene.h"

namespace scheduler::ledger {

// One node "n" with its kubelet, its agent and the ledger that is told of it, for tests of a line
// or two each. Nothing is told unless a test says so; the kubelet is a Scene.
class Room {
 public:
  explicit Room(const admission::NodeSpec& spec = {}) : Room(admission::NodeOf(spec)) {}
  explicit Room(placement::NodePlacement node);

  // ---- What happens in the cluster and is told at once. Pods are in the words of scene.h.
  void Bind(const std::string& uid, const std::string& words);           // by us
  void BindElsewhere(const std::string& uid, const std::string& words);  // by somebody else
  void Lease(const std::string& uid, const std::string& words);
  void Runs(const std::string& uid);
  void Terminates(const std::string& uid);
  void Succeeds(const std::string& uid);
  void Fails(const std::string& uid, const std::string& reason);
  void Vanishes(const std::string& uid);  // the API has it no more
  void Observe();                         // the agent looks, publishes, and renews its Lease
  void Renew();                           // its Lease alone
  void Wait(std::chrono::milliseconds time);
  void Apply(decltype(Event::what) what) { ledger.Apply({now, std::move(what)}); }

  // ---- What happens on the node, unknown to the ledger
  // The kubelet admits a bound pod: its words, as Scene::Add's.
  std::string Admit(const std::string& uid) { return kubelet.Add(pods.at(uid).pod); }
  void Release(const std::string& uid) { kubelet.Remove(uid); }

  // ---- What the ledger says
  std::string Ask(const std::string& words) const;  // "Yes", "No Refused", "Depends PodsWait"
  // Where a pod is charged: "Observed on 0", "Bound on 1", "Bound nowhere"; "" if it is not.
  std::string Charged(const std::string& uid) const;
  std::string FreeCpus() const;  // of the NUMA nodes: "16 8"
  std::string FreeGpus() const;
  std::int64_t Count(DivergenceKind kind) const {
    return ledger.divergences()[static_cast<std::size_t>(kind)];
  }
  const NodeView& view() const { return *snapshot().Find("n"); }
  const Snapshot& snapshot() const { return last_ = ledger.Take(); }
  placement::NodePlacement Published() const;

  base::Time now{std::chrono::hours(24 * 365 * 50)};
  placement::NodePlacement facts;  // what is published beside the accounts
  admission::Scene kubelet;
  std::map<std::string, PodFacts> pods;
  Ledger ledger;

 private:
  void Add(const std::string& uid, const std::string& words);
  std::string PerNode(int (*count)(const admission::NodeState&, int)) const;
  mutable Snapshot last_;
};

}  // namespace scheduler::ledger
