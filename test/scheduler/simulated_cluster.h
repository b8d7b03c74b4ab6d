#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "kube/pod.h"
#include "scheduler/ledger/ledger.h"
#include "scheduler/ledger/predict.h"
#include "test/scheduler/cluster.h"
#include "test/scheduler/interleaving.h"
#include "test/scheduler/simulated_node.h"

namespace test {

// A pod and what becomes of it.
struct SimulatedPod {
  scheduler::ledger::PodFacts facts;
  bool in_api = true;
  bool bound = false;
  bool foreign = false;
  bool admitted = false;
  bool released = false;
  base::Time forced_at;  // of one that the API forgot while it was there
  // Of one that we bound: nothing if nobody could promise that it is admitted, since no agent was
  // at work, another machine had taken the node's name, or the API forgot the pod.
  std::optional<Promise> promise;
};

// The cluster and the scheduler that owns the ledger. Each step happens as the dice say, if it can.
class SimulatedCluster {
 public:
  // `tally` and `events` may be null.
  SimulatedCluster(const Interleaving& run, Tally* tally,
                   std::vector<scheduler::ledger::Event>* events);

  void Do(const Step& step);
  // Agents work, kubelets admit what is bound, all is told, and some time passes.
  void BeQuiet();
  // What holds at every moment, and what holds once all is quiet; "" if it does.
  std::string Check() const;
  std::string CheckQuiet() const;
  // What a step found wrong that later steps could not see; "" if nothing.
  const std::string& wrong() const { return wrong_; }

 private:
  using Node = SimulatedNode;
  using Pod = SimulatedPod;
  using What = decltype(scheduler::ledger::Event::what);
  // A pod that is to be bound, and the node's accounts when it took its lease there.
  struct Flight {
    std::string node;
    scheduler::ledger::NodeViewPtr leased;
    base::Time until;
  };

  void AddNode(const std::string& name, Dice& dice);
  void Tell(What what);
  void Note(const scheduler::ledger::Event& event);
  void ListAll();
  void ListPods();
  void QueuePod(const Pod& pod);
  void TellPod();
  void TellNode(Node& node, Dice& dice);

  Node& NodeNamed(const std::string& name) const;
  Node& NodeOf(const Pod& pod) const { return NodeNamed(pod.facts.pod.node_name); }
  Node& AnyNodeOf(Dice& dice);
  Pod* AnyPodThat(Dice& dice, const std::function<bool(const Pod&)>& which);
  Pod& NewPod(Dice& dice);

  void Schedule(Dice& dice);
  void Bind(Dice& dice);
  void BindForeign(Dice& dice);
  void PutOn(Node& node, Pod& pod);
  std::optional<Promise> PromiseOf(const Node& node) const;
  void ShareTheUnknown(const Node& node, const std::set<std::string>& unknown);
  bool IsKnown(const Node& node, const std::string& uid) const;
  bool IsKept(const Promise& promise, const Node& node, const Deed& admission) const;

  void Admit(Node& node, Dice& dice);
  void Refuse(Pod& pod, const Deed& admission, const std::string& reason);
  void Start(Dice& dice);
  void StartPod(Pod& pod);
  void End(Dice& dice);
  void Delete(Dice& dice);
  void LetGo(Pod& pod);
  void ReleaseOne(Dice& dice);
  void Vanish(Dice& dice);
  void Force(Dice& dice);
  void ChangeHealth(Dice& dice);
  void RestartKubelet(Dice& dice);
  void Recreate(Dice& dice);

  placement::NodePlacement Observation(const Node& node) const;
  void Look(Node& node);
  void Renew(Node& node);
  void FlipAgent(Dice& dice);
  void RestartScheduler();
  void BreakWatches();
  void Wait(std::chrono::milliseconds time);
  void WaitShortly(std::chrono::milliseconds time);

  std::string CheckLease(const std::string& uid, const Flight& flight,
                         const scheduler::ledger::NodeView& now) const;
  std::string CheckPrediction(const scheduler::ledger::NodeView& view, const kube::Pod& pod,
                              const scheduler::ledger::Prediction& prediction, Dice dice) const;
  std::string AnswerAmong(const std::set<std::string>& uids, const Node& node,
                          SimulatedKubelet kubelet, const kube::Pod& pod, bool some,
                          Dice& dice) const;
  bool IsInStep(const Node& node, const scheduler::ledger::NodeView& view) const;
  std::string CheckChargedOnce(const scheduler::ledger::Snapshot& snapshot) const;
  std::string CheckNothingLost(const scheduler::ledger::Snapshot& snapshot) const;
  std::string Picture(const Node& node) const;
  void Count(const std::string& what);

  const Interleaving& run_;
  Tally* tally_;
  std::vector<scheduler::ledger::Event>* events_;
  base::Time now_{std::chrono::hours(24 * 365 * 50)};
  std::vector<std::unique_ptr<Node>> nodes_;
  std::map<std::string, Pod> pods_;  // by UID
  std::vector<kube::Pod> shapes_;
  std::map<std::string, Flight> in_flight_;
  std::deque<scheduler::ledger::Event> pod_events_;
  // What the ledger has last been told of each pod, and the pods that it has ever been told of.
  std::map<std::string, scheduler::ledger::PodFacts> told_;
  std::set<std::string> heard_of_;
  std::set<std::string> rejected_;  // and those whose rejection an Event told of
  std::unique_ptr<scheduler::ledger::Ledger> ledger_;
  std::string wrong_;
  int recreated_ = 0;
};

}  // namespace test
