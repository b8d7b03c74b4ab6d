#include "agent/node_pods.h"

#include <spdlog/spdlog.h>

#include <chrono>
#include <string_view>

#include "base/status_macros.h"
#include "base/text_layout.h"
#include "kube/json.h"

namespace agent {
namespace {

using kube::JsonObject;
using placement::ApiPod;

// On the API server's mirror of a static pod: the kubelet's UID of it.
constexpr char kMirrorOf[] = "kubernetes.io/config.mirror";

// "containerd://1f0c…" is the runtime and its id; "" while there is no container.
std::string_view IdIn(std::string_view container_id) {
  const std::size_t end = container_id.find("://");
  return end == std::string_view::npos ? std::string_view() : container_id.substr(end + 3);
}

absl::Status ReadContainers(const JsonObject& status, const char* list, ApiPod& pod) {
  ASSIGN_OR_RETURN(const std::vector<JsonObject> containers, status.Objects(list));
  for (const JsonObject& container : containers) {
    ASSIGN_OR_RETURN(std::string name, container.Text("name"));
    ASSIGN_OR_RETURN(const std::string id, container.Text("containerID"));
    if (const std::string_view bare = IdIn(id); !bare.empty()) {
      pod.containers.emplace(bare, std::move(name));
    }
  }
  return absl::OkStatus();
}

kube::WatchOptions OptionsFor(const std::string& node_name) {
  kube::WatchOptions options;
  options.selection = {.resource = {.group = "", .version = "v1", .plural = "pods"},
                       .field_selector = "spec.nodeName=" + node_name};
  options.refused_pause = std::chrono::minutes(10);
  return options;
}

}  // namespace

absl::StatusOr<ApiPod> ReadApiPod(const kube::Object& object) {
  ApiPod pod;
  pod.namespace_name = object.namespace_name;
  pod.name = object.name;
  pod.uid = object.uid;
  ASSIGN_OR_RETURN(const JsonObject root, JsonObject::Parse(object.json));
  ASSIGN_OR_RETURN(const JsonObject metadata, root.Object("metadata"));
  ASSIGN_OR_RETURN(const JsonObject annotations, metadata.Object("annotations"));
  ASSIGN_OR_RETURN(pod.kubelet_uid, annotations.Text(kMirrorOf));
  ASSIGN_OR_RETURN(const JsonObject status, root.Object("status"));
  ASSIGN_OR_RETURN(pod.phase, status.Text("phase"));
  ASSIGN_OR_RETURN(pod.qos_class, status.Text("qosClass"));
  RETURN_IF_ERROR(ReadContainers(status, "containerStatuses", pod));
  RETURN_IF_ERROR(ReadContainers(status, "initContainerStatuses", pod));
  RETURN_IF_ERROR(ReadContainers(status, "ephemeralContainerStatuses", pod));
  return pod;
}

NodePods::NodePods(kube::Client& client, const std::string& node_name,
                   std::function<void()> changed)
    : changed_(std::move(changed)),
      watch_(client, OptionsFor(node_name),
             [this](const kube::WatchEvent& event) { Take(event); }) {}

NodePods::Pods NodePods::Get() const {
  const std::lock_guard lock(mutex_);
  return pods_;
}

void NodePods::Take(const kube::WatchEvent& event) {
  using Kind = kube::WatchEvent::Kind;
  switch (event.kind) {
    case Kind::kAdded:
    case Kind::kModified:
      return Put(event.object);
    case Kind::kDeleted:
      if (known_.erase({event.object.namespace_name, event.object.name}) > 0) Publish();
      return;
    case Kind::kSynced:
      spdlog::info("event=pods_watch state=synced pods={}", known_.size());
      complete_ = true;
      return Publish();
    case Kind::kLost:
      return Lost(event);
  }
}

void NodePods::Put(const kube::Object& object) {
  absl::StatusOr<ApiPod> pod = ReadApiPod(object);
  const Key key(object.namespace_name, object.name);
  if (!pod.ok()) {  // as if it were not known
    spdlog::warn("event=pod_not_understood pod={}/{} error={}", key.first, key.second,
                 base::OneLine(std::string(pod.status().message())));
    if (known_.erase(key) > 0) Publish();
    return;
  }
  ApiPod& known = known_[key];
  if (known == *pod) return;
  known = *std::move(pod);
  Publish();
}

void NodePods::Lost(const kube::WatchEvent& event) {
  const bool refused = event.code == absl::StatusCode::kPermissionDenied ||
                       event.code == absl::StatusCode::kUnimplemented;
  spdlog::warn("event=pods_watch state={} error={}", refused ? "refused" : "lost",
               base::OneLine(event.reason));
  if (refused) Set(absl::Status(event.code, event.reason));
}

// A part of them would look as if the others were not there.
void NodePods::Publish() {
  if (!complete_) return;
  std::vector<ApiPod> pods;
  pods.reserve(known_.size());
  for (const auto& [key, pod] : known_) pods.push_back(pod);
  Set(std::move(pods));
}

void NodePods::Set(absl::StatusOr<std::vector<ApiPod>> pods) {
  {
    const std::lock_guard lock(mutex_);
    if (pods_ != nullptr && *pods_ == pods) return;
    pods_ = std::make_shared<const absl::StatusOr<std::vector<ApiPod>>>(std::move(pods));
  }
  changed_();
}

}  // namespace agent
