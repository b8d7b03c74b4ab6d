#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "placement/node_placement.h"
#include "placement/node_resource_topology.h"
#include "scheduler/admission/coarse.h"
#include "scheduler/ledger/pod.h"

// All that the ledger is ever told, as plain values. Objects of the API server are told as they are
// now, so one that is told again changes nothing; after a gap in a watch everything is told anew
// and what is no longer there is told to be gone.
namespace scheduler::ledger {

// A Node was added or has changed.
struct NodeChanged {
  std::string node;
  std::string uid;      // another one: it was deleted and created anew
  std::string boot_id;  // status.nodeInfo.bootID
  admission::NodeFacts facts;
};
struct NodeGone {
  std::string node;
};

struct TopologyChanged {
  placement::NodeResourceTopology nrt;
};
struct TopologyGone {
  std::string node;
};

struct PlacementChanged {
  placement::NodePlacement placement;
};
struct PlacementGone {
  std::string node;
};

// The agent's Lease. One that is told again, renewed at the same time as before, is no sign of
// life.
struct AgentAlive {
  std::string node;
  base::Time renewed;  // by the agent's clock
};

// We have bound the pod ourselves: the API server has accepted the binding.
struct PodBound {
  PodFacts pod;
};
// A pod was added or has changed. Pods without a node are ignored.
struct PodChanged {
  PodFacts pod;
  bool listed = false;  // it was there when the watch began: who bound it is not known
};
struct PodGone {
  std::string uid;
};
// The kubelet refused the pod. Its Event says so seconds before the pod's status may.
struct PodRejected {
  std::string uid;
  std::string reason;
};

// The pod was filtered and may be bound to one of these nodes, until then or until it is bound.
inline constexpr std::size_t kMostLeases = 3;  // on the nodes with the best score
inline constexpr std::chrono::seconds kLeaseTime{2};
struct LeaseTaken {
  PodFacts pod;
  std::vector<std::string> nodes;
  base::Time until;
};
struct LeaseEnded {
  std::string uid;
};

// Nothing happened, for so long.
struct TimePassed {};

struct Event {
  base::Time at;  // never before the event before it
  std::variant<NodeChanged, NodeGone, TopologyChanged, TopologyGone, PlacementChanged,
               PlacementGone, AgentAlive, PodBound, PodChanged, PodGone, PodRejected, LeaseTaken,
               LeaseEnded, TimePassed>
      what;
};

// "NodeChanged", "PodBound", …: the name of an event's kind.
const char* KindOf(const Event& event);

}  // namespace scheduler::ledger
