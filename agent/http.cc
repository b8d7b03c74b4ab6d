// One thread runs all of it, so that no fence is needed, and ThreadSanitizer knows none.
#define BOOST_ASIO_DISABLE_FENCED_BLOCK 1

#include "agent/http.h"

#include <fmt/format.h>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <chrono>
#include <cstdint>
#include <list>
#include <optional>
#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "base/status_macros.h"

namespace agent {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using asio::ip::tcp;
using boost::system::error_code;
using Request = http::request<http::string_body>;
using Response = http::response<http::string_body>;
using Tls = std::shared_ptr<asio::ssl::context>;

// Whoever reaches the port may connect. So an exchange is bounded in size and time, and all of them
// in number: the oldest ends for the newest, since a probe's is over in a moment.
constexpr std::uint32_t kMaxHead = 8 << 10;
constexpr std::uint64_t kMaxBody = 4 << 10;  // nobody has a reason to send one
constexpr std::chrono::seconds kPatience{10};
constexpr std::size_t kMostExchanges = 64;

// What is answered from.
class Answers {
 public:
  Answers(const Metrics& metrics, const Health& health, base::Clock& clock)
      : metrics_(metrics), health_(health), clock_(clock) {}

  Response To(const Request& request) const {
    Response response = Get(request.target().to_string());
    if (request.method() != http::verb::get && request.method() != http::verb::head) {
      response = Say(http::status::method_not_allowed, "GET alone is understood\n");
    }
    response.keep_alive(false);
    response.prepare_payload();
    if (request.method() == http::verb::head) response.body().clear();
    return response;
  }

 private:
  static Response Say(http::status status, std::string text, const char* type = "text/plain") {
    Response response(status, 11);
    response.set(http::field::content_type, type);
    response.body() = std::move(text);
    return response;
  }
  static Response Say(bool good, const char* otherwise) {
    return good ? Say(http::status::ok, "ok\n") : Say(http::status::service_unavailable, otherwise);
  }
  Response Get(const std::string& target) const {
    const std::string path = target.substr(0, target.find('?'));
    if (path == "/metrics") {
      return Say(http::status::ok, metrics_.Text(), "text/plain; version=0.0.4");
    }
    if (path == "/healthz") return Say(health_.IsAlive(clock_.Steady()), "the loop is stuck\n");
    if (path == "/readyz") return Say(health_.IsReady(), "nothing has been published yet\n");
    return Say(http::status::not_found, "there are /metrics, /healthz and /readyz\n");
  }

  const Metrics& metrics_;
  const Health& health_;
  base::Clock& clock_;
};

// One request and its answer. Lives as long as something of it is under way.
class Exchange : public std::enable_shared_from_this<Exchange> {
 public:
  // `tls`: nullptr for plain HTTP.
  Exchange(tcp::socket socket, Tls tls, const Answers& answers)
      : tcp_(std::move(socket)), context_(std::move(tls)), answers_(answers) {
    if (context_) tls_.emplace(tcp_, *context_);
    parser_.header_limit(kMaxHead);
    parser_.body_limit(kMaxBody);
  }

  void Begin() {
    tcp_.expires_after(kPatience);  // for all of it
    if (!tls_) return Read();
    tls_->async_handshake(asio::ssl::stream_base::server,
                          [self = shared_from_this()](const error_code& error) {
                            if (!error) self->Read();
                          });
  }
  void End() { tcp_.close(); }

 private:
  template <class Start>
  void OnStream(Start start) {
    if (tls_) {
      start(*tls_);
    } else {
      start(tcp_);
    }
  }
  // What is no request, or is too large, gets no answer.
  void Read() {
    OnStream([this](auto& stream) {
      http::async_read(stream, buffer_, parser_,
                       [self = shared_from_this()](const error_code& error, std::size_t) {
                         if (!error) self->Write();
                       });
    });
  }
  void Write() {
    response_ = answers_.To(parser_.get());
    OnStream([this](auto& stream) {
      http::async_write(stream, response_,
                        [self = shared_from_this()](const error_code& error, std::size_t) {
                          if (!error) self->Close();
                        });
    });
  }
  void Close() {
    error_code ignored;  // it has been answered
    if (!tls_) return void(tcp_.socket().shutdown(tcp::socket::shutdown_both, ignored));
    tls_->async_shutdown([self = shared_from_this()](const error_code&) {});
  }

  beast::tcp_stream tcp_;
  const Tls context_;
  std::optional<asio::ssl::stream<beast::tcp_stream&>> tls_;
  const Answers& answers_;
  beast::flat_buffer buffer_{kMaxHead + kMaxBody};
  http::request_parser<http::string_body> parser_;
  Response response_;
};

// TLS 1.2 or newer; nullptr if none is asked for.
absl::StatusOr<Tls> LoadTls(const HttpOptions& options) {
  if (options.certificate.empty()) return nullptr;
  auto context = std::make_shared<asio::ssl::context>(asio::ssl::context::tls_server);
  error_code error;
  using Context = asio::ssl::context;
  context->set_options(Context::no_sslv3 | Context::no_tlsv1 | Context::no_tlsv1_1, error);
  // Nobody is there to type one.
  context->set_password_callback([](auto&&...) { return std::string(); }, error);
  context->use_certificate_chain_file(options.certificate, error);
  // Also says whether the two belong together.
  if (!error) context->use_private_key_file(options.key, asio::ssl::context::pem, error);
  if (!error) return context;
  return absl::InvalidArgumentError(
      fmt::format("certificate {} and key {} cannot be used together: {}", options.certificate,
                  options.key, error.message()));
}

class Listening : public HttpServer {
 public:
  Listening(HttpOptions options, const Answers& answers)
      : options_(std::move(options)), answers_(answers) {}
  Listening(const Listening&) = delete;
  Listening& operator=(const Listening&) = delete;
  ~Listening() override {
    io_.stop();
    if (thread_.joinable()) thread_.join();
  }

  absl::Status Begin();
  int port() const override { return acceptor_.local_endpoint().port(); }

 private:
  error_code Bind(const asio::ip::address& address);
  absl::Status BindAsAsked();
  void Accept();
  void Take(tcp::socket socket);

  const HttpOptions options_;
  const Answers answers_;
  asio::io_context io_{1};
  tcp::acceptor acceptor_{io_};
  asio::steady_timer retry_{io_};
  Tls tls_;
  std::list<std::weak_ptr<Exchange>> exchanges_;  // the oldest first
  std::thread thread_;
};

absl::Status Listening::Begin() {
  ASSIGN_OR_RETURN(tls_, LoadTls(options_));
  RETURN_IF_ERROR(BindAsAsked());
  Accept();
  thread_ = std::thread([this] { io_.run(); });
  return absl::OkStatus();
}

error_code Listening::Bind(const asio::ip::address& address) {
  const tcp::endpoint endpoint(address, static_cast<std::uint16_t>(options_.port));
  error_code error;
  acceptor_.open(endpoint.protocol(), error);
  if (error) return error;
  acceptor_.set_option(tcp::acceptor::reuse_address(true), error);
  if (address.is_v6()) acceptor_.set_option(asio::ip::v6_only(!address.is_unspecified()), error);
  acceptor_.bind(endpoint, error);
  if (!error) acceptor_.listen(asio::socket_base::max_listen_connections, error);
  return error;
}

absl::Status Listening::BindAsAsked() {
  error_code error;
  if (options_.address.empty()) {
    error = Bind(asio::ip::address_v6::any());  // takes IPv4 as well
    if (error == asio::error::address_family_not_supported)
      error = Bind(asio::ip::address_v4::any());
  } else {
    const asio::ip::address address = asio::ip::make_address(options_.address, error);
    if (!error) error = Bind(address);
  }
  if (!error) return absl::OkStatus();
  return absl::UnavailableError(fmt::format(
      "cannot listen on {} port {}: {}",
      options_.address.empty() ? "any address" : options_.address, options_.port, error.message()));
}

void Listening::Accept() {
  acceptor_.async_accept([this](const error_code& error, tcp::socket socket) {
    if (!error) {
      Take(std::move(socket));
      return Accept();
    }
    retry_.expires_after(std::chrono::milliseconds(100));  // out of descriptors, say
    retry_.async_wait([this](const error_code&) { Accept(); });
  });
}

void Listening::Take(tcp::socket socket) {
  exchanges_.remove_if([](const auto& exchange) { return exchange.expired(); });
  if (exchanges_.size() >= kMostExchanges) {
    if (const auto oldest = exchanges_.front().lock()) oldest->End();
    exchanges_.pop_front();
  }
  // Read anew because they rotate; while they are being replaced the last ones serve.
  if (const absl::StatusOr<Tls> tls = LoadTls(options_); tls.ok()) tls_ = *tls;
  const auto exchange = std::make_shared<Exchange>(std::move(socket), tls_, answers_);
  exchanges_.push_back(exchange);
  exchange->Begin();
}

}  // namespace

absl::StatusOr<std::unique_ptr<HttpServer>> ServeHttp(const HttpOptions& options,
                                                      const Metrics& metrics, const Health& health,
                                                      base::Clock& clock) {
  auto server = std::make_unique<Listening>(options, Answers(metrics, health, clock));
  RETURN_IF_ERROR(server->Begin());
  return server;
}

}  // namespace agent
