#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/cpu_set.h"
#include "base/diagnostic.h"
#include "scheduler/admission/state.h"
#include "scheduler/ledger/pod.h"

namespace scheduler::ledger {

// How well a node is known, from the best.
enum class Confidence {
  kObserved,   // an agent is at work
  kStale,      // its agent has not been heard of for kAgentStale
  kSilent,     // nor for kAgentSilent: pods that came since are where we predict them
  kPredicted,  // no agent: NodeResourceTopology and predictions
  kNone,       // no data
};
// The agent renews its Lease every 30 s.
inline constexpr std::chrono::seconds kAgentStale{90};
inline constexpr std::chrono::seconds kAgentSilent{600};

// How a pod stands in a node's accounts. What is higher up is charged instead of what is below.
enum class Standing {
  kObserved,  // where the agent saw it
  kMissing,   // where the agent saw it earlier; by the API it is still there
  kAdmitted,  // it runs, unseen so far: where the kubelet's own algorithm puts it
  kBound,     // the kubelet may not have admitted it yet
  kLeased,    // a lease: it may be bound here
};

// A pod that is charged by prediction.
struct Waiting {
  std::string uid;
  Standing standing = Standing::kBound;
  ShapePtr shape;
  base::NumaMask numa_nodes;  // where it is expected; empty: it holds nothing or will be refused
  bool operator==(const Waiting&) const = default;
};

// A pod of this shape was refused here: none is sent until the node's accounts change.
struct Block {
  ShapePtr shape;
  base::Time until;
  std::string reason;
  bool operator==(const Block&) const = default;
};

enum class DivergenceKind {
  kOtherNumaNode,  // the pod is on other NUMA nodes than predicted
  kForeignPod,     // bound by another scheduler, by hand, or a static pod
  kUnknownPod,     // the kubelet holds something for a pod that the API does not have
  kMissingPod,     // observed once, not any more, and the API still has it
  kCapacityChanged,
  kKubeletRestarted,
  kConfigurationChanged,
  kNodeRecreated,
  kRefusedAfterYes,  // the kubelet refused a pod that it was predicted to admit
};
inline constexpr std::size_t kDivergenceKinds = 9;

// Which pods the node is known for only roughly: its objects lack something, or there are counts
// alone.
struct Roughly {
  bool all = false;
  bool cpus = false;     // those that want CPUs of their own
  bool memory = false;   // those that want memory of a NUMA node
  bool several = false;  // those of which several containers want something
  bool operator==(const Roughly&) const = default;
};

// Something that the prediction did not expect.
struct Divergence {
  DivergenceKind kind = DivergenceKind::kOtherNumaNode;
  base::Time at;
  std::string pod;      // "namespace/name"; "" if it is the node
  std::string message;  // one sentence without a full stop
  bool operator==(const Divergence&) const = default;
};

// One node's accounts at one moment. Immutable: whoever holds on to one that has not been replaced
// holds on to all answers that rest on it.
struct NodeView {
  std::string name;
  Confidence confidence = Confidence::kNone;
  // What is known to be held: observed, missing and, without a live agent, running pods. nullptr:
  // no data.
  std::shared_ptr<const admission::NodeState> base;
  // That and the waiting pods, where the kubelet's own algorithm puts them one after another. The
  // same object as `base` if none waits.
  std::shared_ptr<const admission::NodeState> expected;
  std::vector<Waiting> waiting;  // in the order in which they are expected to be admitted
  std::vector<Block> blocks;
  Roughly roughly;
  base::Diagnostics notes;              // what the grade or the confidence suffers from; sorted
  std::vector<Divergence> divergences;  // the latest ones, oldest first
};
using NodeViewPtr = std::shared_ptr<const NodeView>;

// All nodes at one moment: immutable, and a pointer to copy. Safe to read from any thread.
class Snapshot {
 public:
  using Views = std::vector<NodeViewPtr>;
  Snapshot() : views_(std::make_shared<Views>()) {}
  Snapshot(std::shared_ptr<const Views> views, base::Time at) : views_(std::move(views)), at_(at) {}

  const Views& nodes() const { return *views_; }        // sorted by name
  const NodeView* Find(const std::string& name) const;  // nullptr if there is none
  base::Time at() const { return at_; }                 // of the last event

 private:
  std::shared_ptr<const Views> views_;
  base::Time at_;
};

// "Observed", "Stale", …; "OtherNumaNode", …: stable codes.
const char* ToString(Confidence confidence);
const char* ToString(Standing standing);
const char* ToString(DivergenceKind kind);

}  // namespace scheduler::ledger
