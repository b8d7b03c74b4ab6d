#include "kube/metadata.h"

#include <string_view>

#include "base/status_macros.h"
#include "kube/json.h"

namespace kube {
namespace {

constexpr std::string_view kField = "f:";  // before the name of a field or of a map's key
constexpr std::string_view kByKey = "k:";  // before the keys of an entry of a list, as JSON

std::set<std::string> FieldsOf(const JsonObject& fields) {
  std::set<std::string> names;
  for (const std::string& name : fields.Names()) {
    if (name.starts_with(kField)) names.insert(name.substr(kField.size()));
  }
  return names;
}

absl::StatusOr<std::set<std::string>> UidsOf(const JsonObject& references) {
  std::set<std::string> uids;
  for (const std::string& name : references.Names()) {
    if (!name.starts_with(kByKey)) continue;
    const std::string keys = name.substr(kByKey.size());
    ASSIGN_OR_RETURN(const JsonObject key, JsonObject::Parse(keys));
    ASSIGN_OR_RETURN(std::string uid, key.Text("uid"));
    uids.insert(std::move(uid));
  }
  return uids;
}

absl::StatusOr<ManagedFields> ReadManagedFields(const JsonObject& json) {
  ManagedFields managed;
  ASSIGN_OR_RETURN(managed.manager, json.Text("manager"));
  ASSIGN_OR_RETURN(managed.subresource, json.Text("subresource"));
  ASSIGN_OR_RETURN(const JsonObject fields, json.Object("fieldsV1"));
  managed.top = FieldsOf(fields);
  ASSIGN_OR_RETURN(const JsonObject metadata, fields.Object("f:metadata"));
  ASSIGN_OR_RETURN(const JsonObject annotations, metadata.Object("f:annotations"));
  managed.annotations = FieldsOf(annotations);
  ASSIGN_OR_RETURN(const JsonObject labels, metadata.Object("f:labels"));
  managed.labels = FieldsOf(labels);
  ASSIGN_OR_RETURN(const JsonObject owners, metadata.Object("f:ownerReferences"));
  ASSIGN_OR_RETURN(managed.owner_uids, UidsOf(owners));
  managed.fields = json.Raw("fieldsV1");
  managed.json = json.text();
  return managed;
}

absl::StatusOr<OwnerReference> ReadOwner(const JsonObject& json) {
  OwnerReference owner;
  ASSIGN_OR_RETURN(owner.kind, json.Text("kind"));
  ASSIGN_OR_RETURN(owner.name, json.Text("name"));
  ASSIGN_OR_RETURN(owner.uid, json.Text("uid"));
  owner.json = json.text();
  return owner;
}

}  // namespace

absl::StatusOr<Metadata> ReadMetadata(const Object& object) {
  Metadata metadata{.uid = object.uid, .resource_version = object.resource_version};
  ASSIGN_OR_RETURN(const JsonObject root, JsonObject::Parse(object.json));
  ASSIGN_OR_RETURN(const JsonObject json, root.Object("metadata"));
  ASSIGN_OR_RETURN(const std::vector<JsonObject> owners, json.Objects("ownerReferences"));
  for (const JsonObject& owner : owners) {
    ASSIGN_OR_RETURN(OwnerReference reference, ReadOwner(owner));
    metadata.owners.push_back(std::move(reference));
  }
  ASSIGN_OR_RETURN(const std::vector<JsonObject> managed, json.Objects("managedFields"));
  for (const JsonObject& entry : managed) {
    ASSIGN_OR_RETURN(ManagedFields fields, ReadManagedFields(entry));
    metadata.managed.push_back(std::move(fields));
  }
  return metadata;
}

}  // namespace kube
