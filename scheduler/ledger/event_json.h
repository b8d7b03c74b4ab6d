#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "scheduler/ledger/event.h"

// The event log: one JSON object a line, in which the objects of the API server are as it serves
// them, reduced to what the ledger reads. docs/ledger.md describes it.
namespace scheduler::ledger {

// One line, without its end.
std::string ToJson(const Event& event);

// Reads such a line, also from another release: members that are not known here are ignored.
// InvalidArgument names the member that is missing or cannot be, and for a kind of event that is
// not known, the kind.
absl::StatusOr<Event> ParseEvent(const std::string& line);

// A v1 Pod as kube::ParsePod reads it, and what is known of it besides. `phase` is Pending if the
// object has none. Errors as kube::ParsePod's.
absl::StatusOr<PodFacts> ParsePodFacts(const std::string& json);

// A v1 Node.
absl::StatusOr<NodeChanged> ParseNode(const std::string& json);

}  // namespace scheduler::ledger
