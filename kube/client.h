#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "kube/api_error.h"
#include "kube/backoff.h"
#include "kube/object.h"
#include "kube/transport.h"

namespace kube {

struct ClientOptions {
  std::chrono::milliseconds deadline{10'000};  // of each attempt
  int attempts = 4;                            // of what may be repeated
  std::chrono::milliseconds first_pause{200};
  std::chrono::milliseconds longest_pause{5'000};
  std::chrono::milliseconds longest_retry_after{30'000};  // a server that asks for more gets this
  std::size_t max_object_bytes = std::size_t{8} << 20;    // of a reply that is one object
  std::size_t max_list_bytes = std::size_t{64} << 20;  // of a page, and of a list's pages together
  int page_size = 500;                                 // objects asked for at once
  // For whoever counts losses of watches: told of each cause (as the code of WatchEvent::kLost)
  // once until that watch is up to date again, on its thread.
  std::function<void(const Resource&, absl::StatusCode)> watch_lost = nullptr;
};

struct ApplyOptions {
  std::string field_manager = {};
  bool force = false;          // take fields that another manager owns
  bool metadata_only = false;  // the reply is the metadata
};

// What is asked of the API server, one method a verb. Errors say what was tried on what, and have
// the codes of ToStatus (api_error.h) where the server answered and of Transport where it did not.
//
// What may be repeated is, up to `attempts` times, with pauses that grow or as long as Retry-After
// says: after 429, 500, 502, 503, 504, a 409 that is no other manager's, and any error of the
// transport but a credential or a size. A create is repeated only where it was surely not carried
// out: after 429, and where nothing was sent. A 401 is tried again once, with credentials that are
// read again. Every call ends at once with Cancelled when stop is requested.
// Safe for concurrent use.
class Client {
 public:
  // Both outlive the client.
  Client(Transport& transport, base::Clock& clock, ClientOptions options = {},
         Random random = SystemRandom());

  absl::StatusOr<Object> Get(const ObjectName& object, const std::stop_token& stop = {});
  absl::StatusOr<Object> GetMetadata(const ObjectName& object, const std::stop_token& stop = {});
  // All of them, page by page; starts over where the server forgot the place (410). Whole or an
  // error.
  absl::StatusOr<ObjectList> List(const Selection& selection, const std::stop_token& stop = {});
  // One page of it, the first with "" and the others with the token of the page before. OutOfRange:
  // the server forgot the place.
  absl::StatusOr<ListPage> ListPageAt(const Selection& selection, const std::string& continue_token,
                                      const std::stop_token& stop = {});
  // Server-side apply: makes the object if there is none (not of a subresource: NotFound). Aborted:
  // the fields that others own. The object as it is then; its resource version is the old one if
  // nothing changed.
  absl::StatusOr<Object> Apply(const ObjectName& object, const std::string& json,
                               const ApplyOptions& options, const std::stop_token& stop = {});
  // JSON merge patch (RFC 7396). `field_manager` may be "".
  absl::StatusOr<Object> MergePatch(const ObjectName& object, const std::string& json,
                                    const std::string& field_manager,
                                    const std::stop_token& stop = {});
  absl::StatusOr<Object> Create(const Resource& resource, const std::string& namespace_name,
                                const std::string& json, const std::stop_token& stop = {});
  // With a uid only this very object. NotFound if there is none.
  absl::Status Delete(const ObjectName& object, const std::string& uid = "",
                      const std::stop_token& stop = {});

  // What a watch is made of: `query` is "watch=1&…", the body is handed on as it comes. Not
  // repeated, save after a 401. Nothing is returned when the server ended it in order, else its
  // refusal; an error is the transport's or `receive`'s.
  absl::StatusOr<std::optional<ApiError>> Stream(const Selection& selection,
                                                 const std::string& query,
                                                 std::chrono::milliseconds silence,
                                                 const std::function<void()>& opened,
                                                 const Transport::Receive& receive,
                                                 const std::stop_token& stop);

  base::Clock& clock() const { return clock_; }
  const Random& random() const { return random_; }
  void WatchLost(const Resource& resource, absl::StatusCode cause) const {
    if (options_.watch_lost) options_.watch_lost(resource, cause);
  }

 private:
  // A request, what it is called in messages, and what may be done about a failure.
  struct Call {
    std::string tried;
    HttpRequest request;
    std::size_t max_reply_bytes;
    bool repeatable = true;
  };
  // Of a failed attempt.
  struct Failure {
    absl::Status status;
    bool again = false;
    std::optional<std::chrono::milliseconds> retry_after = {};
  };

  absl::StatusOr<std::string> Ask(const Call& call, const std::stop_token& stop);
  absl::StatusOr<Object> AskForObject(const Call& call, const std::stop_token& stop);
  Failure Judge(const Call& call, const absl::StatusOr<HttpReply>& reply) const;
  absl::StatusOr<ObjectList> ListOnce(const Selection& selection, const std::stop_token& stop);
  // Takes the page's bytes from `room`, so that a list of many pages ends, too.
  absl::StatusOr<ListPage> ListPageOf(const Selection& selection, const std::string& continue_token,
                                      std::size_t& room, const std::stop_token& stop);

  Transport& transport_;
  base::Clock& clock_;
  const ClientOptions options_;
  const Random random_;
};

// The selectors as parameters: "fieldSelector=…&labelSelector=…&"; "" if there are none.
std::string SelectorQuery(const Selection& selection);

}  // namespace kube
