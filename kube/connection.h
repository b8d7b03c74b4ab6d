#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kube/proxy.h"
#include "kube/resolver.h"
#include "kube/tls.h"
#include "kube/transport.h"

namespace kube {

// Where a connection leads, and by which way.
struct Route {
  Url server = {};
  std::string certificate_name = {};  // what the server's certificate must be for
  std::optional<Url> proxy = {};      // an http:// one, asked to connect us through
};

// Whom its TCP connection is made to: the proxy, or else the server.
const HostPort& NextHop(const Route& route);

// A header beside those that every request has.
struct Header {
  std::string name;
  std::string value;
};

// One connection to a server, which carries one exchange after the other. Each call blocks until it
// is done, its time is over or stop is requested; after an error the connection is of no more use.
// One thread at a time.
class Connection {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // `identity` counts for https only; `resolver` is of NextHop's host. All errors are Unavailable
  // (or Cancelled): nothing was sent.
  static absl::StatusOr<std::unique_ptr<Connection>> Open(const Route& route,
                                                          const TlsIdentity& identity,
                                                          Resolver& resolver, Time until,
                                                          const std::stop_token& stop);
  virtual ~Connection() = default;

  // Writes the request and reads the head of the reply; Unknown or DeadlineExceeded.
  // ResourceExhausted: a head of over 64 KiB.
  virtual absl::StatusOr<HttpReply> Ask(const HttpRequest& request,
                                        const std::vector<Header>& headers, Time until,
                                        const std::stop_token& stop) = 0;
  // The next bytes of the body; "" at its end. The view holds until the next call.
  virtual absl::StatusOr<std::string_view> ReadSome(Time until, const std::stop_token& stop) = 0;

  // Whether another request may be sent, as far as we know: the reply was read to its end and
  // neither side closed.
  virtual bool Reusable() = 0;
  // Whether the server closed it without a byte of a reply to the last request, as one does with a
  // connection that was idle for too long.
  virtual bool ClosedUnanswered() const = 0;
};

}  // namespace kube
