#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "agent/health.h"
#include "agent/metrics.h"
#include "base/clock.h"

namespace agent {

struct HttpOptions {
  std::string address;      // "": all of the host's, of both families
  int port = 0;             // 0: a free one
  std::string certificate;  // PEM files, read at each connection; "" for plain HTTP
  std::string key;
};

// Answers what others may ask, on a thread of its own:
//   /metrics   Prometheus' text format
//   /healthz   200, or 503 if the loop is stuck
//   /readyz    200 once something has been published, 503 before
class HttpServer {
 public:
  virtual ~HttpServer() = default;
  virtual int port() const = 0;
};

// Listens until the server goes. What it answers from must outlive it. InvalidArgument if
// certificate and key are not one, Unavailable if the address is not to be had.
absl::StatusOr<std::unique_ptr<HttpServer>> ServeHttp(const HttpOptions& options,
                                                      const Metrics& metrics, const Health& health,
                                                      base::Clock& clock);

}  // namespace agent
