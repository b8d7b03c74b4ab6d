#pragma once

#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kube/object.h"

// Who wrote what of an object: its owners and its managed fields.
namespace kube {

struct OwnerReference {
  std::string kind = {};
  std::string name = {};
  std::string uid = {};
  std::string json = {};  // all of it
  bool operator==(const OwnerReference&) const = default;
};

// One entry of metadata.managedFields: the fields that a manager set, by apply or otherwise, of the
// object or of a subresource.
struct ManagedFields {
  std::string manager = {};
  std::string subresource = {};
  std::set<std::string> top = {};  // "metadata", "zones", "status": below which it owns something
  std::set<std::string> annotations = {};
  std::set<std::string> labels = {};
  std::set<std::string> owner_uids = {};  // of owner references
  std::string fields = {};  // FieldsV1, as it stands; when it was written is not in it
  std::string json = {};    // the whole entry
  bool operator==(const ManagedFields&) const = default;
};

struct Metadata {
  std::string uid = {};
  std::string resource_version = {};
  std::vector<OwnerReference> owners = {};
  std::vector<ManagedFields> managed = {};
  bool operator==(const Metadata&) const = default;
};

// InvalidArgument: which field is wrong.
absl::StatusOr<Metadata> ReadMetadata(const Object& object);

}  // namespace kube
