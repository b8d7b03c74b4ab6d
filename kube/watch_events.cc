#include "kube/watch_events.h"

#include <fmt/format.h>

#include <array>

#include "base/status_macros.h"
#include "base/text.h"
#include "kube/json.h"

namespace kube {
namespace {

absl::StatusOr<WatchLine::Type> ParseType(const std::string& word) {
  using enum WatchLine::Type;
  static constexpr std::array<std::pair<std::string_view, WatchLine::Type>, 5> kTypes = {
      {{"ADDED", kAdded},
       {"MODIFIED", kModified},
       {"DELETED", kDeleted},
       {"BOOKMARK", kBookmark},
       {"ERROR", kError}}};
  for (const auto& [name, type] : kTypes) {
    if (word == name) return type;
  }
  return absl::InvalidArgumentError(fmt::format("type: \"{:.40}\" is unknown", word));
}

absl::Status ReadBookmark(std::string_view json, WatchLine& line) {
  ASSIGN_OR_RETURN(const JsonObject object, JsonObject::Parse(json));
  ASSIGN_OR_RETURN(const JsonObject metadata, object.Object("metadata"));
  ASSIGN_OR_RETURN(line.object.resource_version, metadata.Text("resourceVersion"));
  ASSIGN_OR_RETURN(const JsonObject annotations, metadata.Object("annotations"));
  ASSIGN_OR_RETURN(const std::string end, annotations.Text("k8s.io/initial-events-end"));
  line.initial_end = end == "true";
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<WatchLine> ParseWatchLine(std::string_view text) {
  WatchLine line;
  ASSIGN_OR_RETURN(const JsonObject event, JsonObject::Parse(text));
  ASSIGN_OR_RETURN(const std::string type, event.Text("type"));
  ASSIGN_OR_RETURN(line.type, ParseType(type));
  const std::string_view json = event.Raw("object");
  if (line.type == WatchLine::Type::kError) {
    line.object.json = json;
    return line;
  }
  if (line.type == WatchLine::Type::kBookmark) {
    RETURN_IF_ERROR(ReadBookmark(json, line));
  } else {
    ASSIGN_OR_RETURN(line.object, ParseObject(json));
  }
  if (line.object.resource_version.empty()) {
    return absl::InvalidArgumentError("an object without a resourceVersion");
  }
  return line;
}

absl::Status LineSplitter::Add(std::string_view bytes,
                               const std::function<absl::Status(std::string_view)>& take) {
  while (!bytes.empty()) {
    const std::size_t end = bytes.find('\n');
    const std::string_view part = bytes.substr(0, end);
    if (line_.size() + part.size() > max_bytes_) {
      return absl::ResourceExhaustedError(
          fmt::format("a line of a watch is longer than {} bytes", max_bytes_));
    }
    line_ += part;
    if (end == std::string_view::npos) break;
    bytes.remove_prefix(end + 1);
    // Taken out first: after an error nobody asks for the rest.
    const std::string line = std::exchange(line_, std::string());
    if (!base::Trim(line).empty()) RETURN_IF_ERROR(take(line));
  }
  return absl::OkStatus();
}

}  // namespace kube
