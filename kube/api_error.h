#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "kube/transport.h"

// What the API server says when it does not do what it was asked.
namespace kube {

struct Cause {
  std::string reason = {};  // "FieldManagerConflict", "FieldValueRequired"
  std::string field = {};
  std::string message = {};
  bool operator==(const Cause&) const = default;
};

struct ApiError {
  int code = 0;             // HTTP's
  std::string reason = {};  // "Conflict", "Forbidden", "Expired"; "" where no Status came
  std::string message = {};
  std::string name = {};  // of the object that it is about
  std::vector<Cause> causes = {};
  std::optional<std::chrono::seconds> retry_after = {};
  bool operator==(const ApiError&) const = default;
};

// A reply other than 2xx. Where its body is no Status (a proxy's page, say), its beginning is the
// message.
ApiError ReadApiError(const HttpReply& reply);
// The Status inside an ERROR event; nothing if it is none.
std::optional<ApiError> ParseStatus(std::string_view json);

// As a sentence that begins with what was tried ("apply nodes gpu-7"), and as a code:
//   InvalidArgument    400, 422, and 500 for a field that the schema does not have: names the
//   fields Unauthenticated    401 PermissionDenied   403: names the permission that is missing
//   NotFound           404 of an object
//   Unimplemented      404 of a kind, 405, 406, 415: this server does not serve it
//   AlreadyExists      409 of a create
//   Aborted            409 otherwise: names the fields and the other manager
//   OutOfRange         410: too old to go on from
//   Unavailable        429, 502, 503, 504: later perhaps
//   Internal           other 5xx
//   Unknown            anything else
// base::RetryAfter says when to try again, if the server has said it.
absl::Status ToStatus(const ApiError& error, const std::string& tried);

// Whether a failure of this code stays until somebody changes something: a permission that is
// missing, a kind that is not served.
bool IsRefusal(absl::StatusCode code);

// Whether the server may answer otherwise in a moment; a 409 only where no other manager's field
// is in the way.
bool IsPassing(const ApiError& error);

}  // namespace kube
