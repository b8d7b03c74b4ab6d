#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "kube/client.h"
#include "kube/object.h"

namespace kube {

struct WatchEvent {
  enum class Kind {
    kAdded,
    kModified,
    kDeleted,  // without `object.json` if nobody saw it go: a later list did not have it
    kSynced,  // up to date: all that is there has been said; also after each kLost, once it is back
    kLost     // not up to date, and why; said once for each cause until kSynced
  };
  Kind kind = Kind::kSynced;
  Object object = {};
  std::string reason = {};  // of kLost, and its code as of ToStatus (api_error.h) and Transport
  absl::StatusCode code = absl::StatusCode::kOk;
  bool operator==(const WatchEvent&) const = default;
};

struct WatchOptions {
  Selection selection = {};
  // Nothing for so long, and the stream is taken up anew. API servers send a bookmark each minute,
  // and remember what happened for 15 s more: whoever waits longer may have to list again.
  std::chrono::milliseconds silence{75'000};
  std::chrono::seconds renewal{300};  // the server ends a stream after this long to twice as long
  std::chrono::milliseconds first_pause{500};
  std::chrono::milliseconds longest_pause{30'000};
  // Instead of these after a refusal that somebody has to change first: a missing permission, a
  // kind that is not served. For what its user can do without.
  std::optional<std::chrono::milliseconds> refused_pause = {};
  // Tried one after the other where the server does not serve the kind in the selection's version.
  std::vector<std::string> older_versions = {};
  std::size_t max_line_bytes = std::size_t{8} << 20;
};

// Follows the objects of a selection, for as long as it lives, on a thread of its own. What it says
// is always the difference to what it said before: after whatever was lost and listed again, an
// object that is still the same is not named, one that is gone is deleted, and one that was made
// anew under its name is deleted and added.
//
// It begins with a streaming list where the server has them (Kubernetes 1.32, or 1.27 behind a
// gate), else with a list. A stream that ended is resumed where it was; where the server has
// forgotten that place (410, as a reply or as an event), or what it sent makes no sense, all is
// listed again. It never gives up: what stays wrong is tried again with growing pauses, also a
// stream that the server ends in order less than 5 s after it was asked for: that is a loss,
// whatever came by it. After a stream that lasted longer there is no pause.
class Watch {
 public:
  // Called on the watch's thread, with no lock held; what it does delays what follows. It must not
  // destroy the watch.
  using Handle = std::function<void(const WatchEvent&)>;

  // The client outlives the watch.
  Watch(Client& client, WatchOptions options, Handle handle);
  // Stops and waits for the handler to return.
  ~Watch() = default;

  void Stop() { thread_.request_stop(); }

 private:
  std::jthread thread_;
};

}  // namespace kube
