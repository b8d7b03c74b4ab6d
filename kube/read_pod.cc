#include "kube/read_pod.h"

#include <fmt/format.h>
#include <rapidjson/document.h>
#include <rapidjson/error/en.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <set>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "base/quantity.h"
#include "base/status_macros.h"
#include "base/text.h"
#include "kube/yaml.h"

namespace kube {
namespace {

using Json = rapidjson::Value;

constexpr std::size_t kMaxBytes = std::size_t{64} << 20;
constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();

// Where a value stands in its document; only written out when something is wrong with it.
struct Field {
  const Field* parent = nullptr;
  std::string_view name = {};  // "" for an element of a list
  std::size_t index = 0;

  Field Member(std::string_view member) const { return {.parent = this, .name = member}; }
  Field Element(std::size_t at) const { return {.parent = this, .index = at}; }
  std::string ToString() const {
    if (parent == nullptr) return "";
    const std::string above = parent->ToString();
    if (name.empty()) return fmt::format("{}[{}]", above, index);
    if (name.find_first_of("./") != std::string_view::npos) {
      return fmt::format("{}[{:.80}]", above, name);  // limits[nvidia.com/gpu]
    }
    return fmt::format("{}{}{:.80}", above, above.empty() ? "" : ".", name);
  }
};

absl::Status Wrong(const Field& field, std::string_view problem) {
  const std::string where = field.ToString();
  return absl::InvalidArgumentError(where.empty() ? std::string(problem)
                                                  : fmt::format("{}: {}", where, problem));
}

std::string_view TextOf(const Json& value) { return {value.GetString(), value.GetStringLength()}; }

// Absent and null are the same, as for Kubernetes.
const Json* Find(const Json& object, const char* key) {
  const auto member = object.FindMember(key);
  if (member == object.MemberEnd() || member->value.IsNull()) return nullptr;
  return &member->value;
}

absl::StatusOr<const Json*> FindObject(const Json& object, const Field& field) {
  const Json* value = Find(object, field.name.data());
  if (value != nullptr && !value->IsObject()) return Wrong(field, "is no object");
  return value;
}

absl::StatusOr<const Json*> FindList(const Json& object, const Field& field) {
  const Json* value = Find(object, field.name.data());
  if (value != nullptr && !value->IsArray()) return Wrong(field, "is no list");
  return value;
}

// "" if there is none.
absl::StatusOr<std::string> ReadText(const Json& object, const char* key, const Field& parent) {
  const Json* value = Find(object, key);
  if (value == nullptr) return std::string();
  if (!value->IsString()) return Wrong(parent.Member(key), "is no string");
  return std::string(TextOf(*value));
}

// What a quantity looks like as text. A number is as good as a string, null is none of it.
absl::StatusOr<std::string> QuantityText(const Json& value, const Field& field) {
  if (value.IsNull()) return std::string("0");
  if (value.IsString()) return std::string(base::Trim(TextOf(value)));
  if (value.IsInt64()) return fmt::format("{}", value.GetInt64());
  if (value.IsUint64()) return fmt::format("{}", value.GetUint64());
  if (value.IsDouble()) return fmt::format("{}", value.GetDouble());
  return Wrong(field, "is neither a number nor a string");
}

bool IsDevice(const std::string& resource) { return resource.find('/') != std::string::npos; }

absl::StatusOr<std::int64_t> ReadAmount(const std::string& resource, const Json& value,
                                        const Field& field) {
  ASSIGN_OR_RETURN(const std::string text, QuantityText(value, field));
  const bool cpu = resource == kCpu;
  const absl::StatusOr<std::int64_t> amount =
      cpu ? base::ParseMilliQuantity(text) : base::ParseQuantity(text);
  const bool too_large = absl::IsOutOfRange(amount.status());
  if (!amount.ok() && !too_large) return Wrong(field, std::string(amount.status().message()));
  if (text.starts_with('-') && (too_large || *amount != 0)) {
    return Wrong(field, fmt::format("{:.60} is negative", text));
  }
  if (too_large) return cpu ? kMost / 1000 * 1000 : kMost;
  if (IsDevice(resource)) {
    const absl::StatusOr<std::int64_t> milli = base::ParseMilliQuantity(text);
    if (milli.ok() && *milli % 1000 != 0) {
      return Wrong(field, fmt::format("{:.60} is no whole number", text));
    }
  }
  return *amount;
}

absl::StatusOr<Resources> ReadAmounts(const Json& object, const Field& field) {
  Resources resources;
  for (const auto& [key, value] : object.GetObject()) {
    const std::string name(TextOf(key));
    const Field own = field.Member(name);
    if (name.empty()) return Wrong(field, "has a resource without a name");
    ASSIGN_OR_RETURN(const std::int64_t amount, ReadAmount(name, value, own));
    if (!resources.emplace(name, amount).second) return Wrong(own, "appears twice");
  }
  return resources;
}

// A list of resources; nothing if the object has none of that name.
absl::StatusOr<std::optional<Resources>> FindAmounts(const Json& object, const Field& field) {
  ASSIGN_OR_RETURN(const Json* list, FindObject(object, field));
  if (list == nullptr) return std::nullopt;
  ASSIGN_OR_RETURN(Resources resources, ReadAmounts(*list, field));
  return resources;
}

absl::StatusOr<Container> ReadContainer(const Json& json, const Field& field) {
  if (!json.IsObject()) return Wrong(field, "is no object");
  Container container;
  ASSIGN_OR_RETURN(container.name, ReadText(json, "name", field));
  if (container.name.empty()) return Wrong(field, "a container without a name");
  ASSIGN_OR_RETURN(const std::string restart, ReadText(json, "restartPolicy", field));
  container.sidecar = restart == "Always";
  const Field own = field.Member("resources");
  ASSIGN_OR_RETURN(const Json* resources, FindObject(json, own));
  if (resources == nullptr) return container;
  ASSIGN_OR_RETURN(std::optional<Resources> requests,
                   FindAmounts(*resources, own.Member("requests")));
  ASSIGN_OR_RETURN(std::optional<Resources> limits, FindAmounts(*resources, own.Member("limits")));
  container.requests = std::move(requests).value_or(Resources());
  container.limits = std::move(limits).value_or(Resources());
  return container;
}

absl::StatusOr<std::vector<Container>> ReadContainers(const Json& spec, const Field& field,
                                                      std::set<std::string>& names) {
  std::vector<Container> containers;
  ASSIGN_OR_RETURN(const Json* list, FindList(spec, field));
  if (list == nullptr) return containers;
  for (const Json& element : list->GetArray()) {
    const Field own = field.Element(containers.size());
    ASSIGN_OR_RETURN(Container container, ReadContainer(element, own));
    if (!names.insert(container.name).second) {
      return Wrong(own, fmt::format("a second container named \"{:.80}\"", container.name));
    }
    containers.push_back(std::move(container));
  }
  return containers;
}

absl::Status ReadSpec(const Json& spec, const Field& field, Pod& pod) {
  ASSIGN_OR_RETURN(pod.node_name, ReadText(spec, "nodeName", field));
  std::set<std::string> names;
  ASSIGN_OR_RETURN(pod.init_containers,
                   ReadContainers(spec, field.Member("initContainers"), names));
  ASSIGN_OR_RETURN(pod.containers, ReadContainers(spec, field.Member("containers"), names));
  if (pod.containers.empty()) return Wrong(field.Member("containers"), "there is none");
  // Only an init container that restarts always is a sidecar.
  for (Container& container : pod.containers) container.sidecar = false;
  ASSIGN_OR_RETURN(std::optional<Resources> overhead, FindAmounts(spec, field.Member("overhead")));
  pod.overhead = std::move(overhead).value_or(Resources());
  const Field own = field.Member("resources");
  ASSIGN_OR_RETURN(const Json* resources, FindObject(spec, own));
  if (resources == nullptr) return absl::OkStatus();
  ASSIGN_OR_RETURN(pod.pod_requests, FindAmounts(*resources, own.Member("requests")));
  ASSIGN_OR_RETURN(pod.pod_limits, FindAmounts(*resources, own.Member("limits")));
  return absl::OkStatus();
}

// The class that an API server has given it; nothing if none has.
absl::StatusOr<std::optional<Qos>> ReadQos(const Json& json, const Field& field) {
  const Field status = field.Member("status");
  ASSIGN_OR_RETURN(const Json* object, FindObject(json, status));
  if (object == nullptr) return std::nullopt;
  ASSIGN_OR_RETURN(const std::string text, ReadText(*object, "qosClass", status));
  if (text.empty()) return std::nullopt;
  for (const Qos qos : {Qos::kBestEffort, Qos::kBurstable, Qos::kGuaranteed}) {
    if (text == ToString(qos)) return qos;
  }
  return Wrong(status.Member("qosClass"), fmt::format("\"{:.60}\" is no QoS class", text));
}

// Kind and apiVersion, if it has them, are those of a core object of this kind.
absl::Status CheckKind(const Json& json, const char* wanted, const Field& field) {
  if (!json.IsObject()) return Wrong(field, "is no object");
  ASSIGN_OR_RETURN(const std::string kind, ReadText(json, "kind", field));
  ASSIGN_OR_RETURN(const std::string version, ReadText(json, "apiVersion", field));
  if (!kind.empty() && kind != wanted) {
    return Wrong(field, fmt::format("the kind is \"{:.80}\", not {}", kind, wanted));
  }
  if (!version.empty() && version != "v1") {
    return Wrong(field, fmt::format("the apiVersion is \"{:.80}\", not v1", version));
  }
  return absl::OkStatus();
}

absl::StatusOr<Pod> ReadPod(const Json& json, const Field& field) {
  RETURN_IF_ERROR(CheckKind(json, "Pod", field));
  Pod pod;
  const Field metadata = field.Member("metadata");
  ASSIGN_OR_RETURN(const Json* meta, FindObject(json, metadata));
  if (meta != nullptr) {
    ASSIGN_OR_RETURN(pod.uid, ReadText(*meta, "uid", metadata));
    ASSIGN_OR_RETURN(pod.namespace_name, ReadText(*meta, "namespace", metadata));
    ASSIGN_OR_RETURN(pod.name, ReadText(*meta, "name", metadata));
  }
  const Field own = field.Member("spec");
  ASSIGN_OR_RETURN(const Json* spec, FindObject(json, own));
  if (spec == nullptr) return Wrong(own, "there is none");
  RETURN_IF_ERROR(ReadSpec(*spec, own, pod));
  ASSIGN_OR_RETURN(const std::optional<Qos> qos, ReadQos(json, field));
  if (!qos) ApplyDefaults(pod);
  pod.qos = qos ? *qos : ComputeQos(pod);
  return pod;
}

absl::StatusOr<std::vector<Pod>> ReadItems(const Json& json, bool of_any_kind) {
  const Field root;
  const Field field = root.Member("items");
  std::vector<Pod> pods;
  ASSIGN_OR_RETURN(const Json* list, FindList(json, field));
  if (list == nullptr) return pods;
  for (const Json& item : list->GetArray()) {
    const Field own = field.Element(pods.size());
    if (of_any_kind && item.IsObject() && Find(item, "kind") == nullptr) {
      return Wrong(own, "has no kind");
    }
    ASSIGN_OR_RETURN(Pod pod, ReadPod(item, own));
    pods.push_back(std::move(pod));
  }
  return pods;
}

absl::Status ParseJson(const std::string& text, rapidjson::Document& document) {
  if (text.size() > kMaxBytes) {
    return absl::InvalidArgumentError(fmt::format("{} bytes, too large for a pod", text.size()));
  }
  // Not kParseFullPrecisionFlag: RapidJSON 1.1 counts the leading zeros of 0 when it reads "0e-150"
  // by it. Amounts of up to 15 digits, which people write, are exact without it as well.
  constexpr unsigned kFlags =
      rapidjson::kParseIterativeFlag | rapidjson::kParseValidateEncodingFlag;
  document.Parse<kFlags>(text.data(), text.size());
  if (document.HasParseError()) {
    return absl::InvalidArgumentError(fmt::format(
        "no JSON: {} At byte {}.", rapidjson::GetParseError_En(document.GetParseError()),
        document.GetErrorOffset()));
  }
  if (!document.IsObject()) return absl::InvalidArgumentError("is no object");
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Pod> ParsePod(const std::string& json) {
  rapidjson::Document document;
  RETURN_IF_ERROR(ParseJson(json, document));
  return ReadPod(document, Field());
}

absl::StatusOr<std::string> KindOf(const std::string& json) {
  rapidjson::Document document;
  RETURN_IF_ERROR(ParseJson(json, document));
  return ReadText(document, "kind", Field());
}

absl::StatusOr<std::vector<Pod>> ParsePodObject(const std::string& json) {
  rapidjson::Document document;
  RETURN_IF_ERROR(ParseJson(json, document));
  ASSIGN_OR_RETURN(const std::string kind, ReadText(document, "kind", Field()));
  if (kind == "PodList" || kind == "List") {
    RETURN_IF_ERROR(CheckKind(document, kind.c_str(), Field()));
    return ReadItems(document, kind == "List");
  }
  if (kind.empty()) return absl::InvalidArgumentError("has no kind");
  ASSIGN_OR_RETURN(Pod pod, ReadPod(document, Field()));
  return std::vector<Pod>{std::move(pod)};
}

absl::StatusOr<std::vector<Pod>> ParsePods(const std::string& text) {
  ASSIGN_OR_RETURN(const std::vector<std::string> documents, YamlToJson(text));
  if (documents.empty()) return absl::InvalidArgumentError("there is no document in it");
  std::vector<Pod> pods;
  for (std::size_t i = 0; i < documents.size(); ++i) {
    absl::StatusOr<std::vector<Pod>> more = ParsePodObject(documents[i]);
    if (!more.ok()) {
      if (documents.size() == 1) return more.status();
      return absl::InvalidArgumentError(
          fmt::format("document {}: {}", i + 1, std::string(more.status().message())));
    }
    pods.insert(pods.end(), more->begin(), more->end());
  }
  return pods;
}

}  // namespace kube
