#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "kube/pod.h"
#include "placement/node_placement.h"
#include "placement/node_resource_topology.h"
#include "scheduler/ledger/event.h"
#include "test/reference/naive_admit.h"
#include "test/scheduler/interleaving.h"

// The nodes of the simulated cluster: their kubelets, and who publishes what of them.
namespace test {

// So often an agent renews its Lease.
inline constexpr std::chrono::seconds kRenewTime{30};

// A machine of up to three NUMA nodes, and a pod that may or may not fit it.
placement::NodePlacement AnyMachine(Dice& dice);
kube::Pod AnyPodFor(const placement::NodePlacement& machine, Dice& dice);

// One thing that a kubelet does, written down so that it can be done again.
struct Deed {
  enum class Kind { kAdmit, kStart, kEnd, kHealth, kRestart };
  Kind kind = Kind::kAdmit;
  kube::Pod pod;                                     // of the first three
  scheduler::admission::DeviceOrder order;           // kAdmit: as the device plugins choose
  std::map<std::string, std::set<std::string>> ill;  // kHealth: the devices, by resource
};

Deed Happened(Deed::Kind kind, kube::Pod pod = {});

// The naive kubelet, which keeps what ended pods held until its next admission.
class SimulatedKubelet {
 public:
  explicit SimulatedKubelet(const placement::NodePlacement& machine) : naive_(machine, {}) {}

  // The answer to an admission; of anything else an empty one.
  reference::NaiveVerdict Do(const Deed& deed);
  // As its next admission finds it.
  reference::NaiveKubelet Clean() const;
  // As if the pod had never come.
  void Forget(const std::string& uid);
  bool Holds(const std::string& uid) const { return naive_.pods().contains(uid); }

 private:
  reference::NaiveVerdict Admit(const kube::Pod& pod,
                                const scheduler::admission::DeviceOrder& order);

  reference::NaiveKubelet naive_;
  std::set<std::string> ended_;  // pods whose leftovers the next admission collects
};

// A node as the ledger knew it when a pod was bound there on a yes, without what it could not know:
// pods that it had not been told of, and news of devices and of the kubelet that were on their way.
struct Promise {
  SimulatedKubelet kubelet;
  std::size_t deeds = 0;          // how many of the node's deeds had been done
  std::set<std::string> unknown;  // pods that were there, and not told
  std::set<std::string> known;    // pods that were told
};

struct SimulatedNode {
  SimulatedNode(const std::string& node_name, placement::NodePlacement described)
      : name(node_name), facts(std::move(described)), kubelet(facts) {}

  reference::NaiveVerdict Do(Deed deed);
  // The pod comes, and the device plugins choose at random.
  Deed AdmissionOf(const kube::Pod& pod, Dice& dice) const;
  // Another machine takes the node's name.
  void BecomeAnother(placement::NodePlacement machine, base::Time now, Dice& dice);
  // What a perfect observer would publish now; `listed`: the pods that the kubelet lists besides
  // those that hold something.
  placement::NodePlacement Observation(const std::set<std::string>& listed, base::Time now) const;
  // The devices that are ill, by resource; resources without one have an empty set.
  static std::map<std::string, std::set<std::string>> IllOf(const placement::NodePlacement& node);

  // Publishes, if it is news: the NodePlacement, if there is an agent, and NodeResourceTopology.
  void Publish(placement::NodePlacement observed, base::Time now);
  // The kubelet has started and does not tell of its pods yet: the last observation stays.
  void PublishThatNothingIsKnown(base::Time now);
  // Objects of the API: nothing else is told to who lists them.
  std::vector<decltype(scheduler::ledger::Event::what)> Objects() const;
  // Node, NodePlacement and NodeResourceTopology are watched one by one: each may be late.
  bool HasNews() const;
  bool NextNews(Dice& dice, scheduler::ledger::Event& event);
  // What the ledger is told of the node.
  void Note(const scheduler::ledger::Event& event);

  // With cores of unequal size it matters which CPUs of a NUMA node a pod has got.
  bool HasCoresAlike() const;
  // The ledger describes another machine than the one that is there.
  bool IsTakenForAnother() const { return told_uid != uid && told_boot != facts.boot_id; }

  std::string name;
  std::string uid;
  placement::NodePlacement facts;  // the machine and the kubelet's settings, without pods
  SimulatedKubelet kubelet;
  std::vector<Deed> deeds;         // of this machine's kubelet
  std::vector<std::string> bound;  // pods that it has not admitted yet
  bool has_agent = true;           // else an exporter publishes NodeResourceTopology alone
  bool agent_works = true;
  base::Time renewed;  // the Lease
  base::Time renew_at;
  base::Time looked;                   // all that there was to tell has been told
  placement::NodePlacement published;  // the newest in the API, if there is an agent
  placement::NodeResourceTopology topology;
  enum Watch { kNodes, kPlacements, kTopologies };
  std::array<std::deque<scheduler::ledger::Event>, 3> untold;

  // What the ledger has been told.
  std::string told_uid;
  std::string told_boot;
  std::set<std::string> told_held;  // pods that hold something in the observation
  std::map<std::string, std::set<std::string>> told_ill;
  std::optional<base::Time> told_start;  // of the kubelet
};

}  // namespace test
