#include "scheduler/ledger/event_json.h"

#include <fmt/format.h>
#include <rapidjson/document.h>
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "base/quantity.h"
#include "base/status_macros.h"
#include "kube/read_pod.h"
#include "placement/decode.h"
#include "placement/encode.h"
#include "placement/json_writer.h"

namespace scheduler::ledger {
namespace {

using placement::JsonWriter;
using Json = rapidjson::Value;

// ---- Writing

void Text(JsonWriter& to, const char* key, const std::string& text) {
  if (text.empty()) return;
  to.Key(key);
  to.String(text);
}

void Time(JsonWriter& to, const char* key, const std::optional<base::Time>& time) {
  if (time) Text(to, key, base::FormatTime(*time));
}

void Amounts(JsonWriter& to, const char* key, const kube::Resources& amounts) {
  to.Key(key);
  to.BeginMap();
  for (const auto& [name, amount] : amounts) {
    to.Key(name);
    to.String(name == kube::kCpu ? fmt::format("{}m", amount) : fmt::format("{}", amount));
  }
  to.EndMap();
}

void Containers(JsonWriter& to, const char* key, const std::vector<kube::Container>& containers) {
  if (containers.empty()) return;
  to.Key(key);
  to.BeginList();
  for (const kube::Container& container : containers) {
    to.BeginMap();
    Text(to, "name", container.name);
    if (container.sidecar) Text(to, "restartPolicy", "Always");
    to.Key("resources");
    to.BeginMap();
    Amounts(to, "requests", container.requests);
    Amounts(to, "limits", container.limits);
    to.EndMap();
    to.EndMap();
  }
  to.EndList();
}

void Metadata(JsonWriter& to, const PodFacts& facts) {
  to.Key("metadata");
  to.BeginMap();
  Text(to, "name", facts.pod.name);
  Text(to, "namespace", facts.pod.namespace_name);
  Text(to, "uid", facts.pod.uid);
  Time(to, "creationTimestamp", facts.created);
  // When it began to be deleted is nothing that anybody looks at.
  if (facts.terminating) Time(to, "deletionTimestamp", facts.created.value_or(base::Time()));
  to.EndMap();
}

void Spec(JsonWriter& to, const kube::Pod& pod) {
  to.Key("spec");
  to.BeginMap();
  Text(to, "nodeName", pod.node_name);
  Containers(to, "initContainers", pod.init_containers);
  Containers(to, "containers", pod.containers);
  if (!pod.overhead.empty()) Amounts(to, "overhead", pod.overhead);
  if (pod.pod_requests || pod.pod_limits) {
    to.Key("resources");
    to.BeginMap();
    if (pod.pod_requests) Amounts(to, "requests", *pod.pod_requests);
    if (pod.pod_limits) Amounts(to, "limits", *pod.pod_limits);
    to.EndMap();
  }
  to.EndMap();
}

std::string ToJson(const PodFacts& facts) {
  const std::unique_ptr<JsonWriter> to = placement::NewJsonWriter(false);
  to->BeginMap();
  Text(*to, "kind", "Pod");
  Text(*to, "apiVersion", "v1");
  Metadata(*to, facts);
  Spec(*to, facts.pod);
  to->Key("status");
  to->BeginMap();
  Text(*to, "phase", ToString(facts.phase));
  Text(*to, "reason", facts.reason);
  Text(*to, "qosClass", ToString(facts.pod.qos));
  Time(*to, "startTime", facts.started);
  to->EndMap();
  to->EndMap();
  return to->text();
}

std::string ToJson(const NodeChanged& node) {
  const std::unique_ptr<JsonWriter> to = placement::NewJsonWriter(false);
  to->BeginMap();
  Text(*to, "kind", "Node");
  Text(*to, "apiVersion", "v1");
  to->Key("metadata");
  to->BeginMap();
  Text(*to, "name", node.node);
  Text(*to, "uid", node.uid);
  to->EndMap();
  to->Key("status");
  to->BeginMap();
  if (node.facts.allocatable) Amounts(*to, "allocatable", *node.facts.allocatable);
  to->Key("nodeInfo");
  to->BeginMap();
  Text(*to, "bootID", node.boot_id);
  Text(*to, "kubeletVersion", node.facts.kubelet_version);
  to->EndMap();
  to->EndMap();
  to->EndMap();
  return to->text();
}

// The members of an event besides time and kind: plain ones in `to`, or the whole object, returned.
std::string Members(const NodeChanged& event, JsonWriter&) { return ToJson(event); }
std::string Members(const TopologyChanged& event, JsonWriter&) {
  return placement::ToJson(event.nrt);
}
std::string Members(const PlacementChanged& event, JsonWriter&) {
  return placement::ToJson(event.placement);
}
std::string Members(const PodBound& event, JsonWriter&) { return ToJson(event.pod); }
std::string Members(const PodChanged& event, JsonWriter& to) {
  to.Key("listed");
  to.Bool(event.listed);
  return ToJson(event.pod);
}
std::string Members(const PodGone& event, JsonWriter& to) {
  Text(to, "uid", event.uid);
  return "";
}
std::string Members(const PodRejected& event, JsonWriter& to) {
  Text(to, "uid", event.uid);
  Text(to, "reason", event.reason);
  return "";
}
std::string Members(const LeaseTaken& event, JsonWriter& to) {
  Time(to, "until", event.until);
  to.Key("nodes");
  to.BeginList();
  for (const std::string& node : event.nodes) to.String(node);
  to.EndList();
  return ToJson(event.pod);
}
std::string Members(const LeaseEnded& event, JsonWriter& to) {
  Text(to, "uid", event.uid);
  return "";
}
std::string Members(const AgentAlive& event, JsonWriter& to) {
  Text(to, "node", event.node);
  Time(to, "renewed", event.renewed);
  return "";
}
std::string Members(const TimePassed&, JsonWriter&) { return ""; }
template <class OfNode>
std::string Members(const OfNode& event, JsonWriter& to) {
  Text(to, "node", event.node);
  return "";
}

// ---- Reading

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

std::string ToJson(const Event& event) {
  const std::unique_ptr<JsonWriter> to = placement::NewJsonWriter(false);
  to->BeginMap();
  Time(*to, "at", event.at);
  Text(*to, "kind", KindOf(event));
  const std::string object =
      std::visit([&](const auto& what) { return Members(what, *to); }, event.what);
  to->EndMap();
  std::string line = to->text();
  while (line.ends_with('\n')) line.pop_back();
  if (object.empty()) return line;
  line.pop_back();
  return fmt::format("{},\"object\":{}}}", line, object.substr(0, object.find_last_of('}') + 1));
}

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
