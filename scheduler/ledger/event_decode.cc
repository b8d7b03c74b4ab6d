#include <fmt/format.h>
#include <rapidjson/document.h>
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "base/quantity.h"
#include "base/status_macros.h"
#include "kube/read_pod.h"
#include "placement/decode.h"
#include "scheduler/ledger/event_json.h"

// Lines of the log, and objects of the API server, as events.
namespace scheduler::ledger {
namespace {

using Json = rapidjson::Value;

absl::Status Wrong(const std::string& field, const std::string& why) {
  return absl::InvalidArgumentError(fmt::format("{}: {}", field, why));
}

absl::Status Parse(const std::string& text, rapidjson::Document& document) {
  document.Parse<rapidjson::kParseIterativeFlag>(text.data(), text.size());
  if (document.HasParseError() || !document.IsObject()) {
    return absl::InvalidArgumentError(
        fmt::format("no JSON object, at byte {}", document.GetErrorOffset()));
  }
  return absl::OkStatus();
}

const Json* Find(const Json& object, const char* name) {
  if (!object.IsObject()) return nullptr;
  const auto member = object.FindMember(name);
  return member == object.MemberEnd() || member->value.IsNull() ? nullptr : &member->value;
}

// A member of members, nullptr if there is none.
const Json* Find(const Json& object, const char* outer, const char* inner) {
  const Json* member = Find(object, outer);
  return member == nullptr ? nullptr : Find(*member, inner);
}

// "" if there is none.
absl::StatusOr<std::string> TextOf(const Json* json, const std::string& field) {
  if (json == nullptr) return std::string();
  if (!json->IsString()) return Wrong(field, "is no text");
  return std::string(json->GetString(), json->GetStringLength());
}

absl::StatusOr<std::string> NeedText(const Json& object, const char* name) {
  ASSIGN_OR_RETURN(std::string text, TextOf(Find(object, name), name));
  if (text.empty()) return Wrong(name, "is missing");
  return text;
}

absl::StatusOr<std::optional<base::Time>> TimeOf(const Json* json, const std::string& field) {
  ASSIGN_OR_RETURN(const std::string text, TextOf(json, field));
  if (text.empty()) return std::nullopt;
  const absl::StatusOr<base::Time> time = base::ParseTime(text);
  if (!time.ok()) return Wrong(field, std::string(time.status().message()));
  return *time;
}

std::string TextOf(const Json& json) {
  rapidjson::StringBuffer buffer;
  rapidjson::Writer<rapidjson::StringBuffer> writer(buffer);
  json.Accept(writer);
  return {buffer.GetString(), buffer.GetSize()};
}

absl::StatusOr<std::string> ObjectOf(const Json& event) {
  const Json* object = Find(event, "object");
  if (object == nullptr) return Wrong("object", "is missing");
  return TextOf(*object);
}

absl::StatusOr<Phase> PhaseOf(const Json& pod) {
  ASSIGN_OR_RETURN(const std::string text, TextOf(Find(pod, "status", "phase"), "status.phase"));
  for (const Phase phase : {Phase::kRunning, Phase::kSucceeded, Phase::kFailed}) {
    if (text == ToString(phase)) return phase;
  }
  return Phase::kPending;
}

absl::StatusOr<PodFacts> ReadPodFacts(const Json& json, const std::string& text) {
  PodFacts facts;
  ASSIGN_OR_RETURN(facts.pod, kube::ParsePod(text));
  ASSIGN_OR_RETURN(facts.phase, PhaseOf(json));
  ASSIGN_OR_RETURN(facts.reason, TextOf(Find(json, "status", "reason"), "status.reason"));
  facts.terminating = Find(json, "metadata", "deletionTimestamp") != nullptr;
  ASSIGN_OR_RETURN(facts.created, TimeOf(Find(json, "metadata", "creationTimestamp"),
                                         "metadata.creationTimestamp"));
  ASSIGN_OR_RETURN(facts.started, TimeOf(Find(json, "status", "startTime"), "status.startTime"));
  return facts;
}

absl::StatusOr<kube::Resources> AmountsOf(const Json& json, const std::string& field) {
  kube::Resources amounts;
  if (!json.IsObject()) return Wrong(field, "is no object");
  for (const auto& [key, value] : json.GetObject()) {
    const std::string name(key.GetString(), key.GetStringLength());
    ASSIGN_OR_RETURN(const std::string text, TextOf(&value, field + "." + name));
    const auto amount =
        name == kube::kCpu ? base::ParseMilliQuantity(text) : base::ParseQuantity(text);
    if (!amount.ok()) return Wrong(field + "." + name, std::string(amount.status().message()));
    amounts[name] = *amount;
  }
  return amounts;
}

absl::StatusOr<NodeChanged> ReadNode(const Json& json) {
  NodeChanged node;
  ASSIGN_OR_RETURN(node.node, TextOf(Find(json, "metadata", "name"), "metadata.name"));
  if (node.node.empty()) return Wrong("metadata.name", "is missing");
  ASSIGN_OR_RETURN(node.uid, TextOf(Find(json, "metadata", "uid"), "metadata.uid"));
  const Json* allocatable = Find(json, "status", "allocatable");
  if (allocatable != nullptr) {
    ASSIGN_OR_RETURN(node.facts.allocatable, AmountsOf(*allocatable, "status.allocatable"));
  }
  const Json* info = Find(json, "status", "nodeInfo");
  if (info == nullptr) return node;
  ASSIGN_OR_RETURN(node.boot_id, TextOf(Find(*info, "bootID"), "status.nodeInfo.bootID"));
  ASSIGN_OR_RETURN(node.facts.kubelet_version,
                   TextOf(Find(*info, "kubeletVersion"), "status.nodeInfo.kubeletVersion"));
  return node;
}

absl::StatusOr<std::vector<std::string>> NodesOf(const Json& event) {
  std::vector<std::string> nodes;
  const Json* list = Find(event, "nodes");
  if (list == nullptr || !list->IsArray()) return Wrong("nodes", "is no list");
  for (const Json& element : list->GetArray()) {
    ASSIGN_OR_RETURN(std::string node, TextOf(&element, "nodes"));
    nodes.push_back(std::move(node));
  }
  return nodes;
}

// ---- One reader for each kind of event

template <class OfNode>
absl::Status Read(const Json& json, OfNode& event) {
  ASSIGN_OR_RETURN(event.node, NeedText(json, "node"));
  return absl::OkStatus();
}
absl::Status Read(const Json& json, NodeChanged& event) {
  const Json* object = Find(json, "object");
  if (object == nullptr) return Wrong("object", "is missing");
  ASSIGN_OR_RETURN(event, ReadNode(*object));
  return absl::OkStatus();
}
absl::Status Read(const Json& json, TopologyChanged& event) {
  ASSIGN_OR_RETURN(const std::string object, ObjectOf(json));
  ASSIGN_OR_RETURN(event.nrt, placement::ParseNodeResourceTopology(object));
  return absl::OkStatus();
}
absl::Status Read(const Json& json, PlacementChanged& event) {
  ASSIGN_OR_RETURN(const std::string object, ObjectOf(json));
  ASSIGN_OR_RETURN(event.placement, placement::ParseNodePlacement(object));
  return absl::OkStatus();
}
absl::Status ReadPod(const Json& json, PodFacts& pod) {
  ASSIGN_OR_RETURN(const std::string object, ObjectOf(json));
  ASSIGN_OR_RETURN(pod, ReadPodFacts(*Find(json, "object"), object));
  return absl::OkStatus();
}
absl::Status Read(const Json& json, AgentAlive& event) {
  ASSIGN_OR_RETURN(event.node, NeedText(json, "node"));
  ASSIGN_OR_RETURN(const std::optional<base::Time> renewed,
                   TimeOf(Find(json, "renewed"), "renewed"));
  if (!renewed) return Wrong("renewed", "is missing");
  event.renewed = *renewed;
  return absl::OkStatus();
}
absl::Status Read(const Json& json, PodBound& event) { return ReadPod(json, event.pod); }
absl::Status Read(const Json& json, PodChanged& event) {
  const Json* listed = Find(json, "listed");
  event.listed = listed != nullptr && listed->IsTrue();
  return ReadPod(json, event.pod);
}
absl::Status Read(const Json& json, PodGone& event) {
  ASSIGN_OR_RETURN(event.uid, NeedText(json, "uid"));
  return absl::OkStatus();
}
absl::Status Read(const Json& json, PodRejected& event) {
  ASSIGN_OR_RETURN(event.uid, NeedText(json, "uid"));
  ASSIGN_OR_RETURN(event.reason, NeedText(json, "reason"));
  return absl::OkStatus();
}
absl::Status Read(const Json& json, LeaseTaken& event) {
  ASSIGN_OR_RETURN(event.nodes, NodesOf(json));
  ASSIGN_OR_RETURN(const std::optional<base::Time> until, TimeOf(Find(json, "until"), "until"));
  if (!until) return Wrong("until", "is missing");
  event.until = *until;
  return ReadPod(json, event.pod);
}
absl::Status Read(const Json& json, LeaseEnded& event) {
  ASSIGN_OR_RETURN(event.uid, NeedText(json, "uid"));
  return absl::OkStatus();
}
absl::Status Read(const Json&, TimePassed&) { return absl::OkStatus(); }

// Fills in the event's alternative of this name.
template <std::size_t kind = 0>
absl::Status ReadKind(const std::string& name, const Json& json, Event& event) {
  if constexpr (kind == std::variant_size_v<decltype(Event::what)>) {
    return absl::InvalidArgumentError(fmt::format("kind: \"{:.60}\" is not known", name));
  } else {
    event.what.emplace<kind>();
    if (name == KindOf(event)) return Read(json, std::get<kind>(event.what));
    return ReadKind<kind + 1>(name, json, event);
  }
}

}  // namespace

absl::StatusOr<Event> ParseEvent(const std::string& line) {
  rapidjson::Document json;
  RETURN_IF_ERROR(Parse(line, json));
  Event event;
  ASSIGN_OR_RETURN(const std::optional<base::Time> at, TimeOf(Find(json, "at"), "at"));
  if (!at) return Wrong("at", "is missing");
  event.at = *at;
  ASSIGN_OR_RETURN(const std::string kind, NeedText(json, "kind"));
  RETURN_IF_ERROR(ReadKind(kind, json, event));
  return event;
}

absl::StatusOr<PodFacts> ParsePodFacts(const std::string& json) {
  rapidjson::Document document;
  RETURN_IF_ERROR(Parse(json, document));
  return ReadPodFacts(document, json);
}

absl::StatusOr<NodeChanged> ParseNode(const std::string& json) {
  rapidjson::Document document;
  RETURN_IF_ERROR(Parse(json, document));
  return ReadNode(document);
}

}  // namespace scheduler::ledger
