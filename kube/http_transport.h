#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "kube/config.h"
#include "kube/transport.h"

namespace kube {

struct TransportOptions {
  std::string user_agent = "plumbline";
  // An idle connection that is older than this is closed, not used again; servers do so at 90 s.
  std::chrono::seconds idle_limit{60};
  std::size_t idle_connections = 2;  // kept at most
};

// HTTP/1.1 over TLS, with connections that are kept alive. Credentials and authorities are read
// from their files anew: a token for each request, certificates for each connection, and those
// with an older certificate of ours are not used again. Redirects are replies like others. No
// connection is made yet. InvalidArgument: what is wrong with the configuration;
// FailedPrecondition: what is not done: a proxy by another scheme than http://, a token to a server
// without TLS.
absl::StatusOr<std::unique_ptr<Transport>> MakeTransport(const Config& config, base::Clock& clock,
                                                         TransportOptions options = {});

}  // namespace kube
