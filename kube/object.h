#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

// What the API server holds, as plain values.
namespace kube {

// A kind of object, by the name that stands in paths: {"topology.node.k8s.io", "v1alpha2",
// "noderesourcetopologies"}; the group of pods, nodes and events is "".
struct Resource {
  std::string group = {};
  std::string version = {};
  std::string plural = {};
  bool operator==(const Resource&) const = default;
};

// Which object. A cluster-scoped one has no namespace.
struct ObjectName {
  Resource resource = {};
  std::string namespace_name = {};
  std::string name = {};
  std::string subresource = {};  // "" or "status"
  bool operator==(const ObjectName&) const = default;
};

// Which objects of a kind: all, those of a namespace, or those that the selectors leave.
struct Selection {
  Resource resource = {};
  std::string namespace_name = {};  // "" for all of them
  std::string field_selector = {};  // "spec.nodeName=gpu-7"; "metadata.name=gpu-7" for one object
  std::string label_selector = {};
  bool metadata_only = false;  // objects come as their metadata, whatever their size
  bool operator==(const Selection&) const = default;
};

// An object's whole text, and of its metadata what everyone needs.
struct Object {
  std::string namespace_name = {};
  std::string name = {};
  std::string uid = {};
  std::string resource_version = {};
  std::int64_t generation = 0;  // 0: this kind has none
  std::string json = {};
  bool operator==(const Object&) const = default;
};

// A list at one moment: a watch from its resource version misses nothing.
struct ObjectList {
  std::vector<Object> items = {};
  std::string resource_version = {};
  bool operator==(const ObjectList&) const = default;
};

// "noderesourcetopologies.topology.node.k8s.io", "pods": as kubectl names them.
std::string ToString(const Resource& resource);
// "nodeplacements.plumbline.dev/status gpu-7", "pods ml/llm-0".
std::string ToString(const ObjectName& object);
// "pods with spec.nodeName=gpu-7", "leases.coordination.k8s.io in plumbline".
std::string ToString(const Selection& selection);

// "/apis/plumbline.dev/v1alpha1/nodeplacements/gpu-7/status".
std::string PathOf(const ObjectName& object);
// Without the selectors: those are parameters of the request.
std::string PathOf(const Selection& selection);
// A parameter's value, or a name in a path, as a URL carries it.
std::string UrlEscape(std::string_view text);

// InvalidArgument: the text is no object with metadata, or which field of it is wrong.
absl::StatusOr<Object> ParseObject(std::string_view json);

// One reply to a list request.
struct ListPage {
  ObjectList list = {};
  std::string continue_token = {};  // "" after the last page
};
absl::StatusOr<ListPage> ParseListPage(std::string_view json);

}  // namespace kube
