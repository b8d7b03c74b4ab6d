#include "agent/api_access.h"

#include <algorithm>

namespace agent {

const char* ResultOf(const absl::Status& failure) {
  switch (failure.code()) {
    case absl::StatusCode::kAborted:
      return "conflict";
    case absl::StatusCode::kPermissionDenied:
      return "forbidden";
    case absl::StatusCode::kInvalidArgument:
      return "invalid";
    case absl::StatusCode::kNotFound:
      return "not_found";
    case absl::StatusCode::kUnimplemented:
      return "not_served";
    case absl::StatusCode::kDeadlineExceeded:
      return "timeout";
    default:
      return "failed";
  }
}

std::string OwningNode(const kube::Metadata& object) {
  const auto owner = std::ranges::find(object.owners, "Node", &kube::OwnerReference::kind);
  return owner == object.owners.end() ? "" : owner->uid;
}

}  // namespace agent
