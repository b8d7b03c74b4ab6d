#include "agent/node_pods.h"

#include <chrono>
#include <string_view>
#include <utility>

#include "base/status_macros.h"
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

std::vector<ApiPod> ListOf(const NodePods::Items& pods) {
  std::vector<ApiPod> list;
  list.reserve(pods.size());
  for (const auto& [key, pod] : pods) list.push_back(pod);
  return list;
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
    : Followed(client, OptionsFor(node_name),
               {.name = {.prefix = "", .noun = "pod", .is_expected = true},
                .read = ReadApiPod,
                .sum_up = ListOf},
               std::move(changed)) {}

}  // namespace agent
