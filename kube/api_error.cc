#include "kube/api_error.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"
#include "base/retry_after.h"
#include "base/status_macros.h"
#include "base/text.h"
#include "kube/json.h"

namespace kube {
namespace {

// Longer is no use to anybody, and does not fit everywhere.
constexpr std::int64_t kLongestRetryAfter = 86'400;  // s
constexpr std::size_t kLongestText = 4096;           // it may end up in a condition
constexpr std::string_view kNotInSchema = "field not declared in schema";

bool Has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

absl::StatusOr<ApiError> ReadStatus(const JsonObject& status) {
  ApiError error;
  ASSIGN_OR_RETURN(const std::optional<std::int64_t> code, status.Number("code"));
  if (code && *code > 0 && *code < 1000) error.code = static_cast<int>(*code);
  ASSIGN_OR_RETURN(error.reason, status.Text("reason"));
  ASSIGN_OR_RETURN(error.message, status.Text("message"));
  ASSIGN_OR_RETURN(const JsonObject details, status.Object("details"));
  ASSIGN_OR_RETURN(error.name, details.Text("name"));
  ASSIGN_OR_RETURN(const auto seconds, details.Number("retryAfterSeconds"));
  if (seconds && *seconds > 0) {
    error.retry_after = std::chrono::seconds(std::min(*seconds, kLongestRetryAfter));
  }
  ASSIGN_OR_RETURN(const std::vector<JsonObject> causes, details.Objects("causes"));
  for (const JsonObject& json : causes) {
    Cause cause;
    ASSIGN_OR_RETURN(cause.reason, json.Text("reason"));
    ASSIGN_OR_RETURN(cause.field, json.Text("field"));
    ASSIGN_OR_RETURN(cause.message, json.Text("message"));
    error.causes.push_back(std::move(cause));
  }
  return error;
}

// The API server and its load balancers send seconds; a date, which HTTP knows too, is not read.
std::optional<std::chrono::seconds> ParseRetryAfter(const std::string& text) {
  const auto seconds = base::ParseNumber<std::int32_t>(base::Trim(text));
  if (!seconds || *seconds < 0) return std::nullopt;
  return std::chrono::seconds(*seconds);
}

// The word after `before`; "" if that is not there.
std::string WordAfter(const std::string& text, std::string_view before) {
  const std::size_t at = text.find(before);
  if (at == std::string::npos) return "";
  const std::size_t begin = at + before.size();
  return text.substr(begin, text.find_first_of(" \"", begin) - begin);
}

// RBAC's words: User "…" cannot patch resource "nodes/status" in API group "" at the cluster scope.
// Others that forbid, such as admission policies, have words of their own.
std::string MissingPermission(const std::string& message) {
  const std::string verb = WordAfter(message, " cannot ");
  const std::string resource = WordAfter(message, " resource \"");
  if (verb.empty() || resource.empty()) return "";
  const std::string group = WordAfter(message, "in API group \"");
  return fmt::format("; missing permission: {} {}{}{}", verb, resource, group.empty() ? "" : ".",
                     group);
}

std::string Fields(const ApiError& error) {
  std::string fields;
  for (const Cause& cause : error.causes) {
    fields += fmt::format("{}{}{}{}", fields.empty() ? "; " : ", ", cause.field,
                          cause.field.empty() || cause.message.empty() ? "" : ": ", cause.message);
  }
  return fields;
}

absl::StatusCode CodeOf(const ApiError& error) {
  switch (error.code) {
    case 400:
    case 422:
      return absl::StatusCode::kInvalidArgument;
    case 401:
      return absl::StatusCode::kUnauthenticated;
    case 403:
      return absl::StatusCode::kPermissionDenied;
    case 404:  // where the path is not served the reply names no object
      return error.name.empty() ? absl::StatusCode::kUnimplemented : absl::StatusCode::kNotFound;
    case 405:
    case 406:
    case 415:
      return absl::StatusCode::kUnimplemented;
    case 409:
      return error.reason == "AlreadyExists" ? absl::StatusCode::kAlreadyExists
                                             : absl::StatusCode::kAborted;
    case 410:
      return absl::StatusCode::kOutOfRange;
    case 429:
    case 502:
    case 503:
    case 504:
      return absl::StatusCode::kUnavailable;
    default:
      break;
  }
  if (Has(error.message, kNotInSchema)) return absl::StatusCode::kInvalidArgument;
  return error.code >= 500 ? absl::StatusCode::kInternal : absl::StatusCode::kUnknown;
}

}  // namespace

std::optional<ApiError> ParseStatus(std::string_view json) {
  const absl::StatusOr<JsonObject> status = JsonObject::Parse(json);
  if (!status.ok() || status->Text("kind").value_or("") != "Status") return std::nullopt;
  absl::StatusOr<ApiError> error = ReadStatus(*status);
  if (!error.ok()) return std::nullopt;
  return *std::move(error);
}

ApiError ReadApiError(const HttpReply& reply) {
  ApiError error =
      ParseStatus(reply.body)
          .value_or(ApiError{
              .message = std::string(base::Trim(std::string_view(reply.body).substr(0, 200)))});
  error.code = reply.status;
  if (const auto header = ParseRetryAfter(reply.retry_after)) error.retry_after = header;
  return error;
}

absl::Status ToStatus(const ApiError& error, const std::string& tried) {
  const absl::StatusCode code = CodeOf(error);
  std::string text = fmt::format("{}: HTTP {}: {}", tried, error.code, error.message);
  if (code == absl::StatusCode::kPermissionDenied) text += MissingPermission(error.message);
  const bool about_fields =
      code == absl::StatusCode::kInvalidArgument || code == absl::StatusCode::kAborted;
  if (about_fields) text += Fields(error);
  if (text.size() > kLongestText) text = text.substr(0, kLongestText) + "…";
  absl::Status status(code, text);
  if (error.retry_after) base::SetRetryAfter(*error.retry_after, status);
  return status;
}

bool IsRefusal(absl::StatusCode code) {
  return code == absl::StatusCode::kPermissionDenied || code == absl::StatusCode::kUnimplemented;
}

bool IsPassing(const ApiError& error) {
  static constexpr std::array<int, 6> kPassing = {429, 500, 502, 503, 504, 408};
  if (error.code == 409) {
    return error.reason == "Conflict" && std::ranges::none_of(error.causes, [](const Cause& cause) {
             return cause.reason == "FieldManagerConflict";
           });
  }
  return std::ranges::find(kPassing, error.code) != kPassing.end() &&
         !Has(error.message, kNotInSchema);
}

}  // namespace kube
