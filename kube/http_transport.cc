#include "kube/http_transport.h"

#include <fmt/format.h>

#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "base/status_macros.h"
#include "kube/connection.h"
#include "kube/credentials.h"

namespace kube {
namespace {

using std::chrono::milliseconds;
using Steady = std::chrono::steady_clock;

constexpr std::size_t kMaxErrorBytes = std::size_t{1}
                                       << 20;  // a Status, where a stream was asked for
constexpr int kUnauthorized = 401;

// A connection and whom it was made for.
struct Idle {
  std::unique_ptr<Connection> connection;
  TlsIdentity identity;
  Connection::Time since;
};

class HttpTransport : public Transport {
 public:
  HttpTransport(Config config, Route route, base::Clock& clock, TransportOptions options)
      : config_(std::move(config)),
        route_(std::move(route)),
        options_(std::move(options)),
        credentials_(config_, clock),
        resolver_(NextHop(route_).host) {}

  absl::StatusOr<HttpReply> Send(const HttpRequest& request, milliseconds deadline,
                                 std::size_t max_reply_bytes, const std::stop_token& stop) override;
  absl::StatusOr<HttpReply> Stream(const HttpRequest& request, milliseconds deadline,
                                   milliseconds silence, const std::function<void()>& opened,
                                   const Receive& receive, const std::stop_token& stop) override;

 private:
  // What an exchange needs beside the request.
  struct Terms {
    Connection::Time until;
    const std::stop_token& stop;
  };
  // An exchange whose head has come.
  struct Opened {
    Idle line;
    HttpReply reply;
  };

  absl::StatusOr<Opened> Ask(const HttpRequest& request, const Terms& terms);
  absl::StatusOr<Idle> Dial(const TlsIdentity& identity, const Terms& terms);
  absl::StatusOr<TlsIdentity> IdentityOf(const Credential& credential) const;
  std::vector<Header> HeadersOf(const Credential& credential) const;
  std::optional<Idle> TakeIdle(const TlsIdentity& identity);
  void PutBack(Idle line);

  const Config config_;
  const Route route_;
  const TransportOptions options_;
  Credentials credentials_;
  Resolver resolver_;
  std::mutex mutex_;
  std::vector<Idle> idle_;  // guarded by it; the freshest is the last
};

absl::StatusOr<TlsIdentity> HttpTransport::IdentityOf(const Credential& credential) const {
  if (route_.server.scheme == "http") return TlsIdentity();
  absl::StatusOr<std::string> authority = ReadPem(config_.certificate_authority);
  if (!authority.ok()) {
    return absl::UnavailableError(
        fmt::format("the certificate authority: {}", std::string(authority.status().message())));
  }
  return TlsIdentity{.authority_pem = *std::move(authority),
                     .certificate_pem = credential.certificate_pem,
                     .key_pem = credential.key_pem,
                     .verify = !config_.insecure_skip_tls_verify};
}

std::vector<Header> HttpTransport::HeadersOf(const Credential& credential) const {
  std::vector<Header> headers = {{"User-Agent", options_.user_agent}};
  if (!credential.token.empty()) headers.push_back({"Authorization", "Bearer " + credential.token});
  return headers;
}

std::optional<Idle> HttpTransport::TakeIdle(const TlsIdentity& identity) {
  const std::lock_guard lock(mutex_);
  const Connection::Time oldest = Steady::now() - options_.idle_limit;
  std::erase_if(idle_, [&](Idle& line) {
    return line.since < oldest || line.identity != identity || !line.connection->Reusable();
  });
  if (idle_.empty()) return std::nullopt;
  Idle line = std::move(idle_.back());
  idle_.pop_back();
  return line;
}

void HttpTransport::PutBack(Idle line) {
  if (!line.connection->Reusable()) return;
  line.since = Steady::now();
  const std::lock_guard lock(mutex_);
  if (idle_.size() < options_.idle_connections) idle_.push_back(std::move(line));
}

absl::StatusOr<Idle> HttpTransport::Dial(const TlsIdentity& identity, const Terms& terms) {
  ASSIGN_OR_RETURN(auto connection,
                   Connection::Open(route_, identity, resolver_, terms.until, terms.stop));
  return Idle{.connection = std::move(connection), .identity = identity, .since = {}};
}

absl::StatusOr<HttpTransport::Opened> HttpTransport::Ask(const HttpRequest& request,
                                                         const Terms& terms) {
  ASSIGN_OR_RETURN(const Credential credential, credentials_.Read());
  ASSIGN_OR_RETURN(const TlsIdentity identity, IdentityOf(credential));
  const std::vector<Header> headers = HeadersOf(credential);
  const auto ask = [&](const Idle& line) {
    return line.connection->Ask(request, headers, terms.until, terms.stop);
  };
  std::optional<Idle> line = TakeIdle(identity);
  const bool used = line.has_value();
  if (!used) {
    ASSIGN_OR_RETURN(line, Dial(identity, terms));
  }
  absl::StatusOr<HttpReply> reply = ask(*line);
  // It was closed while the request was on its way; what may have been created is not repeated.
  if (used && line->connection->ClosedUnanswered() && request.method != "POST") {
    ASSIGN_OR_RETURN(line, Dial(identity, terms));
    reply = ask(*line);
  }
  RETURN_IF_ERROR(reply.status());
  if (reply->status == kUnauthorized) credentials_.Refused();
  return Opened{*std::move(line), *std::move(reply)};
}

absl::StatusOr<std::string> ReadBody(Connection& connection, std::size_t max_bytes,
                                     Connection::Time until, const std::stop_token& stop) {
  std::string body;
  for (;;) {
    ASSIGN_OR_RETURN(const std::string_view piece, connection.ReadSome(until, stop));
    if (piece.empty()) return body;
    if (body.size() + piece.size() > max_bytes) {
      return absl::ResourceExhaustedError(
          fmt::format("the reply is larger than {} bytes", max_bytes));
    }
    body += piece;
  }
}

absl::StatusOr<HttpReply> HttpTransport::Send(const HttpRequest& request, milliseconds deadline,
                                              std::size_t max_reply_bytes,
                                              const std::stop_token& stop) {
  const Terms terms{.until = Steady::now() + deadline, .stop = stop};
  ASSIGN_OR_RETURN(Opened opened, Ask(request, terms));
  ASSIGN_OR_RETURN(opened.reply.body,
                   ReadBody(*opened.line.connection, max_reply_bytes, terms.until, stop));
  PutBack(std::move(opened.line));
  return std::move(opened.reply);
}

absl::StatusOr<HttpReply> HttpTransport::Stream(const HttpRequest& request, milliseconds deadline,
                                                milliseconds silence,
                                                const std::function<void()>& opened,
                                                const Receive& receive,
                                                const std::stop_token& stop) {
  const Terms terms{.until = Steady::now() + deadline, .stop = stop};
  ASSIGN_OR_RETURN(Opened stream, Ask(request, terms));
  Connection& connection = *stream.line.connection;
  if (stream.reply.status != 200) {
    ASSIGN_OR_RETURN(stream.reply.body, ReadBody(connection, kMaxErrorBytes, terms.until, stop));
    PutBack(std::move(stream.line));
    return std::move(stream.reply);
  }
  opened();
  for (;;) {
    ASSIGN_OR_RETURN(const std::string_view piece,
                     connection.ReadSome(Steady::now() + silence, stop));
    if (piece.empty()) break;
    RETURN_IF_ERROR(receive(piece));
  }
  PutBack(std::move(stream.line));
  return std::move(stream.reply);
}

absl::StatusOr<std::optional<Url>> ReadProxy(const std::string& text) {
  if (text.empty()) return std::nullopt;
  const absl::StatusOr<Url> proxy = ParseUrl(text);
  if (!proxy.ok()) {
    return absl::InvalidArgumentError("the proxy: " + std::string(proxy.status().message()));
  }
  if (proxy->scheme != "http") {
    return absl::FailedPreconditionError(
        fmt::format("a proxy by {}:// is not supported, only by http://", proxy->scheme));
  }
  return proxy;
}

// It could be read on the way.
absl::Status RefuseOpenCredentials(const Config& config, const Url& server) {
  const bool token = !config.token.empty() || !config.token_file.empty() || config.exec.has_value();
  if (!token || server.scheme == "https") return absl::OkStatus();
  return absl::FailedPreconditionError(
      fmt::format("{} is not encrypted: no token is sent there", config.server));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Transport>> MakeTransport(const Config& config, base::Clock& clock,
                                                         TransportOptions options) {
  Route route;
  ASSIGN_OR_RETURN(route.server, ParseUrl(config.server));
  if (route.server.scheme != "https" && route.server.scheme != "http") {
    return absl::InvalidArgumentError(
        fmt::format("the server {} is neither https:// nor http://", config.server));
  }
  RETURN_IF_ERROR(RefuseOpenCredentials(config, route.server));
  route.certificate_name =
      config.tls_server_name.empty() ? route.server.address.host : config.tls_server_name;
  ASSIGN_OR_RETURN(route.proxy, ReadProxy(config.proxy_url));
  return std::make_unique<HttpTransport>(config, std::move(route), clock, std::move(options));
}

}  // namespace kube
