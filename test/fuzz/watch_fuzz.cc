// Any bytes as the stream of a watch: errors or events, and the pieces that it comes in make no
// difference.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "kube/api_error.h"
#include "kube/watch_events.h"

namespace {

std::vector<std::string> Lines(const std::string& bytes, std::size_t piece) {
  std::vector<std::string> lines;
  kube::LineSplitter splitter(std::size_t{1} << 20);
  for (std::size_t at = 0; at < bytes.size(); at += piece) {
    const absl::Status added = splitter.Add(bytes.substr(at, piece), [&](std::string_view line) {
      lines.emplace_back(line);
      return absl::OkStatus();
    });
    if (!added.ok()) std::abort();
  }
  return lines;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string bytes(data, data + size);
  const std::vector<std::string> lines = Lines(bytes, size + 1);
  if (Lines(bytes, 7) != lines) std::abort();
  for (const std::string& line : lines) {
    const absl::StatusOr<kube::WatchLine> event = kube::ParseWatchLine(line);
    if (!event.ok()) continue;
    if (event->type == kube::WatchLine::Type::kError) {
      kube::ParseStatus(event->object.json);
    } else if (event->object.resource_version.empty()) {
      std::abort();
    }
  }
  return 0;
}
