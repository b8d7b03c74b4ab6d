#include "agent/api_access.h"

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

}  // namespace agent
