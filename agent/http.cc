#include "agent/http.h"

#include <fmt/format.h>
#include <httplib.h>

#include <chrono>
#include <thread>
#include <utility>

#include "absl/status/status.h"

namespace agent {
namespace {

// Each connection keeps a thread until it ends: it is closed after one answer, and one that asks
// nothing soon.
constexpr std::size_t kThreads = 2;
constexpr std::chrono::seconds kPatience{2};
constexpr std::size_t kMaxBody = 4096;  // nobody has a reason to send one

std::unique_ptr<httplib::Server> NewServer(const HttpOptions& options) {
  if (options.certificate.empty()) return std::make_unique<httplib::Server>();
  return std::make_unique<httplib::SSLServer>(options.certificate.c_str(), options.key.c_str());
}

void Say(bool good, const char* otherwise, httplib::Response& response) {
  response.status = good ? 200 : 503;
  response.set_content(good ? "ok\n" : otherwise, "text/plain");
}

void Route(httplib::Server& server, const Metrics& metrics, const Health& health,
           base::Clock& clock) {
  using httplib::Request;
  using httplib::Response;
  server.Get("/metrics", [&metrics](const Request&, Response& response) {
    response.set_content(metrics.Text(), "text/plain; version=0.0.4");
  });
  server.Get("/healthz", [&health, &clock](const Request&, Response& response) {
    Say(health.IsAlive(clock.Steady()), "the loop is stuck\n", response);
  });
  server.Get("/readyz", [&health](const Request&, Response& response) {
    Say(health.IsReady(), "nothing has been published yet\n", response);
  });
}

class Listening : public HttpServer {
 public:
  Listening(std::unique_ptr<httplib::Server> server, int port)
      : server_(std::move(server)), port_(port), thread_([this] { server_->listen_after_bind(); }) {
    // stop() of a server that does not listen yet does nothing, and it would listen ever after.
    while (!server_->is_running()) std::this_thread::yield();
  }
  Listening(const Listening&) = delete;
  Listening& operator=(const Listening&) = delete;
  ~Listening() override {
    server_->stop();
    thread_.join();
  }
  int port() const override { return port_; }

 private:
  const std::unique_ptr<httplib::Server> server_;
  const int port_;
  std::thread thread_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<HttpServer>> ServeHttp(const HttpOptions& options,
                                                      const Metrics& metrics, const Health& health,
                                                      base::Clock& clock) {
  std::unique_ptr<httplib::Server> server = NewServer(options);
  if (!server->is_valid()) {
    return absl::InvalidArgumentError(fmt::format(
        "certificate {} and key {} cannot be used together", options.certificate, options.key));
  }
  server->new_task_queue = [] { return new httplib::ThreadPool(kThreads); };
  // httplib's default would let a second agent listen beside this one.
  server->set_socket_options([](socket_t socket) {
    const int yes = 1;
    setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  });
  server->set_keep_alive_max_count(1);
  server->set_read_timeout(kPatience);
  server->set_write_timeout(kPatience);
  server->set_payload_max_length(kMaxBody);
  Route(*server, metrics, health, clock);
  const int port = options.port == 0
                       ? server->bind_to_any_port(options.address)
                       : (server->bind_to_port(options.address, options.port) ? options.port : -1);
  if (port <= 0) {
    return absl::UnavailableError(
        fmt::format("cannot listen on {}:{}", options.address, options.port));
  }
  return std::make_unique<Listening>(std::move(server), port);
}

}  // namespace agent
