#include "cli/scene.h"

#include <fmt/format.h>
#include <rapidjson/document.h>
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "base/status_macros.h"
#include "cli/machine.h"
#include "kube/read_pod.h"
#include "kube/yaml.h"
#include "placement/decode.h"
#include "scheduler/admission/coarse.h"

namespace cli {
namespace {

namespace admission = scheduler::admission;
using Object = rapidjson::Value;

const Object* Find(const Object& object, const char* name) {
  if (!object.IsObject()) return nullptr;
  const auto member = object.FindMember(name);
  return member == object.MemberEnd() ? nullptr : &member->value;
}

// Follows a path of members; nullptr where one is missing.
const Object* Find(const Object& object, std::initializer_list<const char*> path) {
  const Object* found = &object;
  for (const char* name : path) {
    if (found != nullptr) found = Find(*found, name);
  }
  return found;
}

std::string Text(const Object* value) {
  return value != nullptr && value->IsString() ? value->GetString() : "";
}

std::string Serialize(const Object& object) {
  rapidjson::StringBuffer buffer;
  rapidjson::Writer<rapidjson::StringBuffer> writer(buffer);
  object.Accept(writer);
  return {buffer.GetString(), buffer.GetSize()};
}

absl::Status At(const std::string& place, const std::string& why) {
  return absl::InvalidArgumentError(fmt::format("{}: {}", place, why));
}
absl::Status At(const std::string& place, const absl::Status& status) {
  return {status.code(), fmt::format("{}: {}", place, std::string(status.message()))};
}

// The pod template of a workload; nullptr for another kind of object.
const Object* TemplateOf(const std::string& kind, const Object& object) {
  static constexpr std::array kWorkloads = {"Deployment", "StatefulSet", "DaemonSet",
                                            "ReplicaSet", "Job",         "ReplicationController"};
  if (kind == "CronJob") return Find(object, {"spec", "jobTemplate", "spec", "template"});
  return std::ranges::find(kWorkloads, kind) == kWorkloads.end()
             ? nullptr
             : Find(object, {"spec", "template"});
}

// The settings of a machine that no NodePlacement describes, as far as they are known.
placement::KubeletFacts SettingsOf(const admission::Machine& machine) {
  const admission::Settings& settings = machine.settings;
  placement::KubeletFacts kubelet;
  kubelet.topology_policy = ToString(settings.topology_policy);
  kubelet.topology_scope = ToString(settings.topology_scope);
  kubelet.cpu_policy = settings.cpu_static ? "static" : "none";
  kubelet.memory_policy = settings.memory_static ? "Static" : "None";
  return kubelet;
}

// What one file is read for.
enum class Wanted { kNodeAndPods, kNode, kPods };

class SceneReader {
 public:
  explicit SceneReader(const OtherSettings& settings) : settings_(settings) {}

  absl::Status Add(const Source& source, Wanted wanted) {
    wanted_ = wanted;
    const absl::StatusOr<std::vector<std::string>> documents = kube::YamlToJson(source.text);
    if (!documents.ok()) return At(source.name, documents.status());
    int number = 0;
    for (const std::string& text : *documents) {
      ++number;
      rapidjson::Document document;
      document.Parse<rapidjson::kParseIterativeFlag>(text.c_str(), text.size());
      const std::string place =
          documents->size() == 1 ? source.name : fmt::format("{} document {}", source.name, number);
      RETURN_IF_ERROR(AddObject(document, Text(Find(document, "kind")), place));
    }
    return absl::OkStatus();
  }

  // `node_file` is where the node should have been, `file` where the pods should.
  absl::StatusOr<Scene> Finish(const std::string& file, const std::string& node_file) && {
    if (!node_) {
      return At(node_file, "there is no node: no Machine, NodePlacement or NodeResourceTopology");
    }
    if (scene_.pods.empty()) {
      return At(file, scene_.notes.empty() ? "there are no pods"
                                           : "there are no pods; " + scene_.notes.back());
    }
    const absl::Status status = ReadNode();
    if (!status.ok()) return At(node_->place, status);
    return std::move(scene_);
  }

 private:
  struct NodeText {
    std::string kind;
    std::string name;
    std::string text;
    std::string place;
  };

  // Lists may hold lists: as deep as the text is nested, which is bounded.
  absl::Status AddObject(const Object& object, const std::string& kind, const std::string& place) {
    if (!object.IsObject()) return At(place, "is no object");
    if (kind.empty()) return At(place, "has no kind");
    if (const Object* items = Find(object, "items"); kind.ends_with("List") && items != nullptr) {
      return AddItems(*items, kind.substr(0, kind.size() - 4), place);
    }
    if (kind == "Machine" || kind == "NodePlacement" || kind == "NodeResourceTopology") {
      return AddNode(object, kind, place);
    }
    if (kind == "Pod") return AddPod(object, place);
    if (const Object* pod = TemplateOf(kind, object)) return AddTemplate(object, kind, *pod, place);
    scene_.notes.push_back(
        fmt::format("{}: a {} is neither a pod nor a node, left out", place, kind));
    return absl::OkStatus();
  }

  absl::Status AddItems(const Object& items, const std::string& kind, const std::string& place) {
    if (!items.IsArray()) return At(place, "items is no list");
    int number = 0;
    for (const Object& item : items.GetArray()) {
      const std::string own = Text(Find(item, "kind"));
      RETURN_IF_ERROR(
          AddObject(item, own.empty() ? kind : own, fmt::format("{} item {}", place, ++number)));
    }
    return absl::OkStatus();
  }

  absl::Status AddNode(const Object& object, const std::string& kind, const std::string& place) {
    if (wanted_ == Wanted::kPods) return At(place, "is a node, and --node gives another");
    NodeText node{.kind = kind,
                  .name = Text(Find(object, {"metadata", "name"})),
                  .text = Serialize(object),
                  .place = place};
    // An agent's dry run prints both objects of its node: NodePlacement says more.
    const bool both = node_ && node_->name == node.name && node_->kind != kind &&
                      node_->kind != "Machine" && kind != "Machine";
    if (node_ && !both) {
      return At(place, fmt::format("is a second node; the first is {}", node_->place));
    }
    if (!node_ || kind == "NodePlacement") node_ = std::move(node);
    return absl::OkStatus();
  }

  absl::Status AddPod(const Object& object, const std::string& place) {
    if (wanted_ == Wanted::kNode) return At(place, "is a pod; pods belong into the other file");
    const std::string phase = Text(Find(object, {"status", "phase"}));
    absl::StatusOr<kube::Pod> pod = kube::ParsePod(Serialize(object));
    if (!pod.ok()) return At(place, pod.status());
    if (pod->name.empty()) pod->name = Text(Find(object, {"metadata", "generateName"}));
    if (phase == "Succeeded" || phase == "Failed") {
      scene_.notes.push_back(
          fmt::format("{}: {} has ended ({}), left out", place, pod->name, phase));
      return absl::OkStatus();
    }
    NoteOddities(object, fmt::format("{}: {}", place, pod->name));
    // A slash is in no UID that an API server gives.
    if (pod->uid.empty()) pod->uid = fmt::format("simulated/{}", scene_.pods.size() + 1);
    if (!uids_.insert(pod->uid).second) {
      return At(place, fmt::format("a pod of UID {} was there before", pod->uid));
    }
    scene_.pods.push_back(*std::move(pod));
    return absl::OkStatus();
  }

  // Amounts in a place where nobody looks for them, as after a slip of the pen: an API server would
  // refuse the pod.
  void NoteOddities(const Object& pod, const std::string& place) {
    for (const char* list : {"initContainers", "containers"}) {
      const Object* containers = Find(pod, {"spec", list});
      if (containers == nullptr) continue;
      for (const Object& container : containers->GetArray()) NoteOddContainer(container, place);
    }
  }
  void NoteOddContainer(const Object& container, const std::string& place) {
    const std::string name = Text(Find(container, "name"));
    for (const char* member : {"resource", "requests", "limits", "request", "limit"}) {
      if (Find(container, member) == nullptr) continue;
      scene_.notes.push_back(
          fmt::format("{} container {}: \"{}\" is not looked at; amounts are in resources.requests "
                      "and resources.limits",
                      place, name, member));
    }
    const Object* resources = Find(container, "resources");
    if (resources == nullptr || !resources->IsObject()) return;
    static constexpr std::array<std::string_view, 3> kKnown = {"requests", "limits", "claims"};
    for (const auto& member : resources->GetObject()) {
      const std::string own = Text(&member.name);
      if (std::ranges::find(kKnown, own) != kKnown.end()) continue;
      scene_.notes.push_back(
          fmt::format("{} container {}: \"{}\" in its resources is not looked at; there are {}",
                      place, name, own, fmt::join(kKnown, ", ")));
    }
  }

  absl::Status AddTemplate(const Object& workload, const std::string& kind, const Object& pod,
                           const std::string& place) {
    rapidjson::Document object(rapidjson::kObjectType);
    auto& memory = object.GetAllocator();
    Object metadata(rapidjson::kObjectType);
    for (const char* name : {"name", "namespace"}) {
      const Object* value = Find(workload, {"metadata", name});
      if (value == nullptr) continue;
      metadata.AddMember(rapidjson::StringRef(name), Object(*value, memory), memory);
    }
    object.AddMember("metadata", metadata, memory);
    const Object* spec = Find(pod, "spec");
    if (spec != nullptr) object.AddMember("spec", Object(*spec, memory), memory);
    scene_.notes.push_back(fmt::format("{}: of {} {} the pod template is taken once", place, kind,
                                       Text(Find(workload, {"metadata", "name"}))));
    return AddPod(object, place);
  }

  absl::Status ReadNode() {
    if (node_->kind == "Machine") return ReadMachine(node_->text);
    return node_->kind == "NodePlacement" ? ReadPlacement(node_->text) : ReadTopology(node_->text);
  }

  absl::Status ReadMachine(const std::string& text) {
    ASSIGN_OR_RETURN(DescribedMachine machine, ParseMachine(text));
    scene_.allocatable = std::move(machine.allocatable);
    return TakeNode(std::move(machine.node));
  }

  absl::Status ReadPlacement(const std::string& text) {
    ASSIGN_OR_RETURN(placement::NodePlacement node, placement::ParseNodePlacement(text));
    scene_.pods_there.insert(node.known_pods.begin(), node.known_pods.end());
    for (const placement::PlacedPod& pod : node.pods) scene_.pods_there.insert(pod.uid);
    return TakeNode(std::move(node));
  }

  absl::Status TakeNode(placement::NodePlacement node) {
    placement::KubeletFacts& kubelet = node.kubelet;
    Try("policy", settings_.policy, kubelet.topology_policy);
    Try("scope", settings_.scope, kubelet.topology_scope);
    Try("CPU policy", settings_.cpu_policy, kubelet.cpu_policy);
    Try("memory policy", settings_.memory_policy, kubelet.memory_policy);
    for (const auto& [name, value] : settings_.cpu_options) kubelet.cpu_options[name] = value;
    ASSIGN_OR_RETURN(scene_.state, admission::StateFrom(node));
    scene_.node_name = node.node_name;
    scene_.kubelet = std::move(kubelet);
    return absl::OkStatus();
  }

  // Counts per NUMA node: what is not known is filled in, and said.
  absl::Status ReadTopology(const std::string& text) {
    ASSIGN_OR_RETURN(placement::NodeResourceTopology nrt,
                     placement::ParseNodeResourceTopology(text));
    if (settings_.cpu_policy || settings_.memory_policy || !settings_.cpu_options.empty()) {
      return absl::InvalidArgumentError(
          "a NodeResourceTopology does not tell enough to try another CPU or memory policy");
    }
    TryAttribute("policy", "topologyManagerPolicy", settings_.policy, nrt.attributes);
    TryAttribute("scope", "topologyManagerScope", settings_.scope, nrt.attributes);
    ASSIGN_OR_RETURN(admission::CoarseState coarse, admission::CoarseStateFrom(nrt));
    scene_.node_name = nrt.name;
    scene_.kubelet = SettingsOf(*coarse.state.machine);
    scene_.state = std::move(coarse.state);
    scene_.notes.push_back(
        "a NodeResourceTopology has counts alone: ids of CPUs and devices are made up");
    for (const base::Diagnostic& assumption : coarse.assumptions) {
      scene_.notes.push_back(fmt::format("{}{}{}: {}", assumption.code,
                                         assumption.subject.empty() ? "" : " ", assumption.subject,
                                         assumption.message));
    }
    return absl::OkStatus();
  }

  void TryAttribute(const char* what, const char* name, const std::optional<std::string>& other,
                    std::vector<placement::NrtAttribute>& attributes) {
    if (!other) return;
    auto own = std::ranges::find(attributes, name, &placement::NrtAttribute::name);
    if (own == attributes.end()) own = attributes.insert(own, {.name = name, .value = ""});
    Try(what, other, own->value);
    std::ranges::sort(attributes);
  }

  // Another setting than the node's own.
  void Try(const char* what, const std::optional<std::string>& other, std::string& own) {
    if (!other || *other == own) return;
    scene_.notes.push_back(fmt::format("{} {} is tried; the node's own is {}", what, *other,
                                       own.empty() ? "unknown" : own));
    own = *other;
  }

  const OtherSettings& settings_;
  Wanted wanted_ = Wanted::kNodeAndPods;
  std::optional<NodeText> node_;
  std::set<std::string> uids_;
  Scene scene_;
};

}  // namespace

absl::StatusOr<Scene> ReadScene(const Source& file, const std::optional<Source>& node_file,
                                const OtherSettings& settings) {
  SceneReader reader(settings);
  if (node_file) RETURN_IF_ERROR(reader.Add(*node_file, Wanted::kNode));
  RETURN_IF_ERROR(reader.Add(file, node_file ? Wanted::kPods : Wanted::kNodeAndPods));
  return std::move(reader).Finish(file.name, node_file ? node_file->name : file.name);
}

}  // namespace cli
