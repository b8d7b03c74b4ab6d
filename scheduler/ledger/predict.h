#pragma once

#include <string>

#include "scheduler/admission/request.h"
#include "scheduler/admission/verdict.h"
#include "scheduler/ledger/view.h"

namespace scheduler::ledger {

enum class Certainty {
  kYes,      // whatever the pods that wait on the node do, and whatever leaves it
  kDepends,  // on where they land, or on what leaves meanwhile
  kNo,       // not after them, wherever they land, as long as nothing leaves
  kUnknown,  // nobody can tell: the pod may be tried
};

enum class Because {
  kFits,
  kRefused,            // see Prediction::outcome
  kRefusedRecently,    // a pod of this shape was, and the node is as it was then
  kPodsWait,           // pods were sent here whose places are not seen yet
  kWouldRefuseOthers,  // it fits, but a pod that was sent here before might no longer
  kRoomMayMislead,     // room that becomes free meanwhile may lead its containers apart
  kDevicesDecide,      // which devices one container gets decides about the next
  kNoData,
  kNoAnswer,  // the kubelet is not as it is described, see Outcome::limit
};

// Whether a node would take a pod. A plain value.
struct Prediction {
  Certainty certainty = Certainty::kUnknown;
  Because because = Because::kNoData;
  admission::Outcome outcome;  // the answer as the node is now, waiting pods left aside
  Confidence confidence = Confidence::kNone;
  admission::Grade grade = admission::Grade::kCoarse;
  bool operator==(const Prediction&) const = default;
};

// Asks a node for a pod. `uid` is the pod's own: what it has leased itself does not count.
//
// Waiting pods may be admitted in any order, before or after this one, or never, and land where
// landing.h says; those that run were admitted before it, and perhaps after others that are bound.
// The answer is yes if neither this pod nor one of them can be refused on the way.
// The orders are tried one by one up to a bound; beyond it every pod counts with its worst case on
// each NUMA node, so that more is kDepends. Pure.
Prediction Predict(const NodeView& node, const admission::Request& request,
                   const std::string& uid = "");

// "Yes", "Depends", …; "Fits", "Refused", …: stable codes.
const char* ToString(Certainty certainty);
const char* ToString(Because because);

// One sentence without a full stop, the same on all nodes: how far the node is known included.
std::string Sentence(const Prediction& prediction);

}  // namespace scheduler::ledger
