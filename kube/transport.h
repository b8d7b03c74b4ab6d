#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <stop_token>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace kube {

struct HttpRequest {
  std::string method = "GET";
  std::string target = {};        // path and query, from the server's root
  std::string content_type = {};  // "" if there is no body
  std::string body = {};
  std::string accept = "application/json";
};

struct HttpReply {
  int status = 0;                // as the server says: 404 is a reply, not an error
  std::string retry_after = {};  // that header, as it stands
  std::string body = {};
};

// One exchange with the API server: where the process ends. A reply of any status is a success;
// errors are of the transport alone. All name the server. Codes:
//   Unavailable        nothing was sent: no connection, a name not found, a certificate that is not
//                      trusted or cannot be read, a proxy that refuses
//   Unknown            broken off after something was sent: it may or may not have been carried out
//   DeadlineExceeded   no answer in time; it may have been carried out
//   ResourceExhausted  the reply is larger than allowed
//   Unauthenticated    our own credential cannot be read; nothing was sent
//   Cancelled          stop was requested
// Safe for concurrent use.
class Transport {
 public:
  virtual ~Transport() = default;

  virtual absl::StatusOr<HttpReply> Send(const HttpRequest& request,
                                         std::chrono::milliseconds deadline,
                                         std::size_t max_reply_bytes,
                                         const std::stop_token& stop) = 0;

  // Bytes of the body as they come; what is returned other than OK ends the exchange and is its
  // result.
  using Receive = std::function<absl::Status(std::string_view)>;

  // For replies without end. A reply other than 200 is returned with its body (of at most 1 MiB)
  // and nothing is received; a 200 is returned without one, after the server has ended it in order.
  // DeadlineExceeded: the first line did not come in `deadline`, or nothing for so long as
  // `silence`. `opened` is called once the server has said 200.
  virtual absl::StatusOr<HttpReply> Stream(const HttpRequest& request,
                                           std::chrono::milliseconds deadline,
                                           std::chrono::milliseconds silence,
                                           const std::function<void()>& opened,
                                           const Receive& receive, const std::stop_token& stop) = 0;
};

}  // namespace kube
