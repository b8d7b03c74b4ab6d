#include "kube/object.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "base/status_macros.h"
#include "kube/json.h"

namespace kube {
namespace {

std::string RootOf(const Resource& resource) {
  if (resource.group.empty()) return fmt::format("/api/{}", resource.version);
  return fmt::format("/apis/{}/{}", resource.group, resource.version);
}

std::string PathOf(const Resource& resource, const std::string& namespace_name) {
  if (namespace_name.empty()) return fmt::format("{}/{}", RootOf(resource), resource.plural);
  return fmt::format("{}/namespaces/{}/{}", RootOf(resource), UrlEscape(namespace_name),
                     resource.plural);
}

absl::StatusOr<Object> ReadObject(const JsonObject& json) {
  Object object;
  ASSIGN_OR_RETURN(const JsonObject metadata, json.Object("metadata"));
  ASSIGN_OR_RETURN(object.namespace_name, metadata.Text("namespace"));
  ASSIGN_OR_RETURN(object.name, metadata.Text("name"));
  ASSIGN_OR_RETURN(object.uid, metadata.Text("uid"));
  ASSIGN_OR_RETURN(object.resource_version, metadata.Text("resourceVersion"));
  ASSIGN_OR_RETURN(const std::optional<std::int64_t> generation, metadata.Number("generation"));
  object.generation = generation.value_or(0);
  object.json = json.text();
  return object;
}

}  // namespace

std::string ToString(const Resource& resource) {
  if (resource.group.empty()) return resource.plural;
  return fmt::format("{}.{}", resource.plural, resource.group);
}

std::string ToString(const ObjectName& object) {
  return fmt::format("{}{}{} {}{}{}", ToString(object.resource),
                     object.subresource.empty() ? "" : "/", object.subresource,
                     object.namespace_name, object.namespace_name.empty() ? "" : "/", object.name);
}

std::string ToString(const Selection& selection) {
  std::string text = ToString(selection.resource);
  if (!selection.namespace_name.empty()) text += " in " + selection.namespace_name;
  if (!selection.field_selector.empty()) text += " with " + selection.field_selector;
  if (!selection.label_selector.empty()) text += " labelled " + selection.label_selector;
  return text;
}

std::string PathOf(const ObjectName& object) {
  std::string path = PathOf(object.resource, object.namespace_name) + "/" + UrlEscape(object.name);
  if (!object.subresource.empty()) path += "/" + object.subresource;
  return path;
}

std::string PathOf(const Selection& selection) {
  return PathOf(selection.resource, selection.namespace_name);
}

std::string UrlEscape(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    const bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                       std::string_view("-._~").find(c) != std::string_view::npos;
    escaped += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return escaped;
}

absl::StatusOr<Object> ParseObject(std::string_view json) {
  ASSIGN_OR_RETURN(const JsonObject root, JsonObject::Parse(json));
  ASSIGN_OR_RETURN(Object object, ReadObject(root));
  if (object.name.empty()) return absl::InvalidArgumentError("metadata.name: is empty");
  return object;
}

absl::StatusOr<ListPage> ParseListPage(std::string_view json) {
  ListPage page;
  ASSIGN_OR_RETURN(const JsonObject list, JsonObject::Parse(json));
  ASSIGN_OR_RETURN(const std::string kind, list.Text("kind"));
  // Anything else without items would look like a list of none.
  if (!kind.ends_with("List")) {
    return absl::InvalidArgumentError(fmt::format("kind: \"{:.80}\" is no list", kind));
  }
  ASSIGN_OR_RETURN(const JsonObject metadata, list.Object("metadata"));
  ASSIGN_OR_RETURN(page.list.resource_version, metadata.Text("resourceVersion"));
  ASSIGN_OR_RETURN(page.continue_token, metadata.Text("continue"));
  if (page.list.resource_version.empty()) {
    return absl::InvalidArgumentError("metadata.resourceVersion: is empty");
  }
  RETURN_IF_ERROR(list.EachObject("items", [&page](const JsonObject& item) -> absl::Status {
    ASSIGN_OR_RETURN(Object object, ReadObject(item));
    page.list.items.push_back(std::move(object));
    return absl::OkStatus();
  }));
  return page;
}

}  // namespace kube
