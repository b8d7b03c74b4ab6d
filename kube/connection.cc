// The only file of the client that includes Boost's headers.

// Each io_context here is run by one thread, and others only post to it, under its mutex: no fence
// is needed, and ThreadSanitizer knows none.
#define BOOST_ASIO_DISABLE_FENCED_BLOCK 1

#include "kube/connection.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <array>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <cerrno>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "base/text.h"
#include "kube/base64.h"

namespace kube {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using asio::ip::tcp;
using boost::system::error_code;

constexpr std::uint32_t kMaxHeaderBytes = 64 << 10;

class BeastConnection : public Connection {
 public:
  explicit BeastConnection(Route route) : route_(std::move(route)) {}

  absl::Status Dial(const TlsIdentity& identity, Resolver& resolver, Time until,
                    const std::stop_token& stop);
  absl::StatusOr<HttpReply> Ask(const HttpRequest& request, const std::vector<Header>& headers,
                                Time until, const std::stop_token& stop) override;
  absl::StatusOr<std::string_view> ReadSome(Time until, const std::stop_token& stop) override;
  bool Reusable() override;
  bool ClosedUnanswered() const override { return closed_unanswered_; }

 private:
  using Parser = http::response_parser<http::buffer_body>;

  // Starts an operation and waits for it. `start` is given the handler that takes its error.
  template <class Start>
  error_code Wait(Time until, const std::stop_token& stop, Start start);
  // The same for an operation on the stream, encrypted or not: start(stream, handler).
  template <class Start>
  error_code WaitOnStream(Time until, const std::stop_token& stop, Start start);

  absl::Status Connect(const HostPort& to, Resolver& resolver, Time until,
                       const std::stop_token& stop);
  absl::Status AskProxy(Time until, const std::stop_token& stop);
  absl::Status PrepareTls(const TlsIdentity& identity);
  absl::Status ShakeHands(const TlsIdentity& identity, Time until, const std::stop_token& stop);
  void FindDeadPeers();
  std::string Via() const;
  absl::Status NoConnection(const error_code& error, std::string_view doing);
  absl::Status BrokenOff(const error_code& error, std::string_view doing);

  const Route route_;
  asio::io_context io_;
  beast::tcp_stream tcp_{io_};
  std::optional<asio::ssl::context> context_;
  std::optional<asio::ssl::stream<beast::tcp_stream&>> tls_;  // for https
  beast::flat_buffer buffer_{kMaxHeaderBytes + (16 << 10)};
  std::array<char, 16 << 10> piece_{};  // what ReadSome returns a view of
  std::optional<Parser> parser_;        // of the reply that is being read
  bool closed_unanswered_ = false;
};

template <class Start>
error_code BeastConnection::Wait(Time until, const std::stop_token& stop, Start start) {
  if (stop.stop_requested()) return asio::error::operation_aborted;
  error_code result = asio::error::would_block;
  tcp_.expires_at(until);
  start([&result](const error_code& error, auto&&...) { result = error; });
  {
    // From another thread: the connection is only touched by the one that runs io_. A mere cancel
    // is forgotten if it comes between two steps of an operation.
    const std::stop_callback close(stop, [this] { asio::post(io_, [this] { tcp_.close(); }); });
    io_.restart();
    io_.run();
  }
  io_.restart();
  io_.poll();  // the stop may have come just as the operation ended: not in the middle of the next
  return result && stop.stop_requested() ? asio::error::operation_aborted : result;
}

template <class Start>
error_code BeastConnection::WaitOnStream(Time until, const std::stop_token& stop, Start start) {
  return Wait(until, stop, [this, &start](auto handler) {
    if (tls_) {
      start(*tls_, std::move(handler));
    } else {
      start(tcp_, std::move(handler));
    }
  });
}

std::string BeastConnection::Via() const {
  const std::string server = ToString(route_.server.address);
  return route_.proxy ? fmt::format("{} by the proxy {}", server, ToString(route_.proxy->address))
                      : server;
}

absl::Status BeastConnection::NoConnection(const error_code& error, std::string_view doing) {
  if (error == asio::error::operation_aborted) return absl::CancelledError("stopped");
  const std::string why = error == beast::error::timeout ? "no answer in time" : error.message();
  return absl::UnavailableError(fmt::format("no connection to {}: {}: {}", Via(), doing, why));
}

absl::Status BeastConnection::BrokenOff(const error_code& error, std::string_view doing) {
  if (error == asio::error::operation_aborted) return absl::CancelledError("stopped");
  const std::string text = fmt::format("{}: {}: ", Via(), doing);
  if (error == beast::error::timeout)
    return absl::DeadlineExceededError(text + "no answer in time");
  const bool too_large =
      error == http::error::header_limit || error == http::error::buffer_overflow;
  if (too_large) return absl::ResourceExhaustedError(text + "a head of over 64 KiB");
  const bool cut = error == http::error::end_of_stream || error == http::error::partial_message ||
                   error == asio::ssl::error::stream_truncated || error == asio::error::eof;
  return absl::UnknownError(text + (cut ? "the server closed the connection" : error.message()));
}

absl::Status BeastConnection::Dial(const TlsIdentity& identity, Resolver& resolver, Time until,
                                   const std::stop_token& stop) {
  const bool encrypted = route_.server.scheme == "https";
  RETURN_IF_ERROR(Connect(NextHop(route_), resolver, until, stop));
  FindDeadPeers();
  if (route_.proxy) RETURN_IF_ERROR(AskProxy(until, stop));
  if (encrypted) RETURN_IF_ERROR(ShakeHands(identity, until, stop));
  return absl::OkStatus();
}

absl::Status BeastConnection::Connect(const HostPort& to, Resolver& resolver, Time until,
                                      const std::stop_token& stop) {
  const absl::StatusOr<Resolver::Addresses> addresses = resolver.Resolve(until, stop);
  if (absl::IsCancelled(addresses.status())) return addresses.status();
  if (!addresses.ok()) {
    return absl::UnavailableError(fmt::format("no connection to {}: looking up {}: {}", Via(),
                                              to.host, std::string(addresses.status().message())));
  }
  const auto port = base::ParseNumber<std::uint16_t>(to.port).value_or(0);
  std::vector<tcp::endpoint> endpoints;
  for (const std::string& address : *addresses) {
    error_code error;
    const asio::ip::address parsed = asio::ip::make_address(address, error);
    if (!error) endpoints.emplace_back(parsed, port);
  }
  const error_code error =
      Wait(until, stop, [&](auto handler) { tcp_.async_connect(endpoints, handler); });
  if (error) return NoConnection(error, fmt::format("connecting to {}", ToString(to)));
  return absl::OkStatus();
}

// A peer that went without a word is found within 25 s, also by a watch that only listens: by two
// probes that nobody acknowledges, or by bytes of ours. One that acknowledges and says nothing, as
// a proxy before a dead server may, is found by its silence alone.
void BeastConnection::FindDeadPeers() {
  const int socket = tcp_.socket().native_handle();
  const auto set = [socket](int level, int option, int value) {
    setsockopt(socket, level, option, &value, sizeof value);  // as good as the kernel has it
  };
  set(IPPROTO_TCP, TCP_NODELAY, 1);
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 15);          // s
  set(IPPROTO_TCP, TCP_KEEPINTVL, 5);          // s
  set(IPPROTO_TCP, TCP_KEEPCNT, 2);            // it ends instead of the third
  set(IPPROTO_TCP, TCP_USER_TIMEOUT, 24'000);  // ms; where the kernel has it, instead of the count
}

absl::Status BeastConnection::AskProxy(Time until, const std::stop_token& stop) {
  const std::string server = ToString(route_.server.address);
  http::request<http::empty_body> request(http::verb::connect, server, 11);
  request.set(http::field::host, server);
  if (!route_.proxy->user_info.empty()) {
    request.set(http::field::proxy_authorization, "Basic " + EncodeBase64(route_.proxy->user_info));
  }
  http::response_parser<http::empty_body> reply;
  reply.skip(true);  // what follows is the server's
  error_code error =
      Wait(until, stop, [&](auto handler) { http::async_write(tcp_, request, handler); });
  if (error) return NoConnection(error, "asking the proxy");
  error = Wait(until, stop,
               [&](auto handler) { http::async_read_header(tcp_, buffer_, reply, handler); });
  if (error) return NoConnection(error, "asking the proxy");
  if (http::to_status_class(reply.get().result_int()) != http::status_class::successful) {
    return absl::UnavailableError(fmt::format("no connection to {}: the proxy refuses: HTTP {} {}",
                                              Via(), reply.get().result_int(),
                                              reply.get().reason().to_string()));
  }
  // A client speaks first. What came by now is the proxy's, and would be read as the server's
  // reply.
  if (buffer_.size() == 0) return absl::OkStatus();
  return absl::UnavailableError(
      fmt::format("no connection to {}: the proxy answers before it was asked", Via()));
}

absl::Status BeastConnection::PrepareTls(const TlsIdentity& identity) {
  ASSIGN_OR_RETURN(ssl_ctx_st* const context, MakeTlsContext(identity));
  context_.emplace(context);
  tls_.emplace(tcp_, *context_);
  if (!identity.verify) return absl::OkStatus();
  return ExpectServer(tls_->native_handle(), route_.certificate_name);
}

absl::Status BeastConnection::ShakeHands(const TlsIdentity& identity, Time until,
                                         const std::stop_token& stop) {
  if (const absl::Status prepared = PrepareTls(identity); !prepared.ok()) {
    return absl::UnavailableError(
        fmt::format("no connection to {}: {}", Via(), std::string(prepared.message())));
  }
  const error_code error = Wait(until, stop, [this](auto handler) {
    tls_->async_handshake(asio::ssl::stream_base::client, handler);
  });
  if (!error) return absl::OkStatus();
  const std::string untrusted = identity.verify ? WhyNotTrusted(tls_->native_handle()) : "";
  if (untrusted.empty()) return NoConnection(error, "TLS");
  return absl::UnavailableError(
      fmt::format("no connection to {}: its certificate is not trusted for {}: {}", Via(),
                  route_.certificate_name, untrusted));
}

absl::StatusOr<HttpReply> BeastConnection::Ask(const HttpRequest& request,
                                               const std::vector<Header>& headers, Time until,
                                               const std::stop_token& stop) {
  http::request<http::string_body> message;
  message.version(11);
  message.method_string(request.method);
  message.target(route_.server.path + request.target);
  message.set(http::field::host, ToString(route_.server.address));
  message.set(http::field::accept, request.accept);
  for (const Header& header : headers) message.set(header.name, header.value);
  if (!request.content_type.empty()) {
    message.set(http::field::content_type, request.content_type);
    message.body() = request.body;
    message.prepare_payload();
  }
  closed_unanswered_ = false;
  parser_.reset();
  error_code error = WaitOnStream(until, stop, [&](auto& stream, auto handler) {
    http::async_write(stream, message, handler);
  });
  if (!error) {
    parser_.emplace();
    parser_->header_limit(kMaxHeaderBytes);
    parser_->body_limit(std::numeric_limits<std::uint64_t>::max());  // who reads it counts
    error = WaitOnStream(until, stop, [this](auto& stream, auto handler) {
      http::async_read_header(stream, buffer_, *parser_, handler);
    });
  }
  if (error) {
    closed_unanswered_ = (!parser_ || !parser_->got_some()) && buffer_.size() == 0 &&
                         error != beast::error::timeout && !stop.stop_requested();
    return BrokenOff(error, fmt::format("{} {}", request.method, request.target));
  }
  // It announces another, which would be taken for the reply to the next request.
  if (http::to_status_class(parser_->get().result_int()) == http::status_class::informational) {
    return absl::UnknownError(fmt::format("{}: {} {}: HTTP {} is no reply", Via(), request.method,
                                          request.target, parser_->get().result_int()));
  }
  HttpReply reply;
  reply.status = static_cast<int>(parser_->get().result_int());
  reply.retry_after = parser_->get()[http::field::retry_after].to_string();
  return reply;
}

absl::StatusOr<std::string_view> BeastConnection::ReadSome(Time until,
                                                           const std::stop_token& stop) {
  while (!parser_->is_done()) {
    http::buffer_body::value_type& body = parser_->get().body();
    body.data = piece_.data();
    body.size = piece_.size();
    error_code error = WaitOnStream(until, stop, [this](auto& stream, auto handler) {
      http::async_read_some(stream, buffer_, *parser_, handler);
    });
    if (error == http::error::need_buffer) error = {};  // the piece is full
    if (error) return BrokenOff(error, "reading the reply");
    const std::size_t count = piece_.size() - body.size;
    if (count > 0) return std::string_view(piece_.data(), count);
  }
  return std::string_view();
}

bool BeastConnection::Reusable() {
  if (!parser_ || !parser_->is_done() || !parser_->keep_alive() || buffer_.size() > 0) return false;
  // Bytes that nobody asked for, or the end: the server is done with it.
  char byte = 0;
  const ssize_t count = recv(tcp_.socket().native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
}

}  // namespace

const HostPort& NextHop(const Route& route) {
  return route.proxy ? route.proxy->address : route.server.address;
}

absl::StatusOr<std::unique_ptr<Connection>> Connection::Open(const Route& route,
                                                             const TlsIdentity& identity,
                                                             Resolver& resolver, Time until,
                                                             const std::stop_token& stop) {
  auto connection = std::make_unique<BeastConnection>(route);
  RETURN_IF_ERROR(connection->Dial(identity, resolver, until, stop));
  return connection;
}

}  // namespace kube
