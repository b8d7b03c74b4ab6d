#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kube/object.h"

namespace kube {

// One line of a watch.
struct WatchLine {
  enum class Type { kAdded, kModified, kDeleted, kBookmark, kError };
  Type type = Type::kBookmark;
  Object object = {};  // of a bookmark only the resource version; of an error the Status as json
  bool initial_end = false;  // a bookmark: all that was there at the beginning has been said
  bool operator==(const WatchLine&) const = default;
};

// InvalidArgument: what of it is no watch event.
absl::StatusOr<WatchLine> ParseWatchLine(std::string_view line);

// Cuts a stream of bytes into lines, however it comes in pieces.
class LineSplitter {
 public:
  // A longer line is an error: memory stays bounded.
  explicit LineSplitter(std::size_t max_bytes) : max_bytes_(max_bytes) {}

  // ResourceExhausted, or the first error that `take` returns for a line.
  absl::Status Add(std::string_view bytes,
                   const std::function<absl::Status(std::string_view)>& take);
  // Whether it ended in the middle of a line.
  bool InLine() const { return !line_.empty(); }

 private:
  const std::size_t max_bytes_;
  std::string line_;
};

}  // namespace kube
