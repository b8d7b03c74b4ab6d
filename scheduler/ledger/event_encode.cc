#include <fmt/format.h>

#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/quantity.h"
#include "placement/encode.h"
#include "placement/json_writer.h"
#include "scheduler/ledger/event_json.h"

// Events as lines of the log.
namespace scheduler::ledger {
namespace {

using placement::JsonWriter;

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

}  // namespace scheduler::ledger
