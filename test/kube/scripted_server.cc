#include "test/kube/scripted_server.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <utility>

namespace test {
namespace {

[[noreturn]] void Fail(const std::string& what) {
  std::cerr << what << "\n";
  std::abort();
}

int Listen(int& port) {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  if (bind(socket, generic, size) != 0 || listen(socket, 16) != 0 ||
      getsockname(socket, generic, &size) != 0) {
    Fail("no port on 127.0.0.1");
  }
  port = ntohs(address.sin_port);
  return socket;
}

SSL_CTX* NewContext(const ServerTls& tls) {
  SSL_CTX* context = SSL_CTX_new(TLS_server_method());
  BIO* pem = BIO_new_mem_buf(tls.own.certificate_pem.data(), -1);
  X509* certificate = PEM_read_bio_X509(pem, nullptr, nullptr, nullptr);
  SSL_CTX_use_certificate(context, certificate);
  BIO_free(pem);
  pem = BIO_new_mem_buf(tls.own.key_pem.data(), -1);
  EVP_PKEY* key = PEM_read_bio_PrivateKey(pem, nullptr, nullptr, nullptr);
  SSL_CTX_use_PrivateKey(context, key);
  BIO_free(pem);
  X509_free(certificate);
  EVP_PKEY_free(key);
  if (!tls.client_authority_pem.empty()) {
    pem = BIO_new_mem_buf(tls.client_authority_pem.data(), -1);
    X509* authority = PEM_read_bio_X509(pem, nullptr, nullptr, nullptr);
    X509_STORE_add_cert(SSL_CTX_get_cert_store(context), authority);
    X509_free(authority);
    BIO_free(pem);
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  }
  return context;
}

// OpenSSL writes to connections that the client has closed: on this thread, and those that it
// starts, that is no reason to die. On the client's it would be.
void BearClosedConnections() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
}

std::string Lower(std::string text) {
  std::ranges::transform(text, text.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

// The head of a request, without its body.
Seen ParseHead(const std::string& head) {
  Seen seen;
  const std::size_t first = head.find(' ');
  const std::size_t second = head.find(' ', first + 1);
  seen.method = head.substr(0, first);
  seen.target = head.substr(first + 1, second - first - 1);
  std::size_t at = head.find("\r\n") + 2;
  for (std::size_t end = head.find("\r\n", at); end > at && end != std::string::npos;
       at = end + 2, end = head.find("\r\n", at)) {
    const std::size_t colon = head.find(": ", at);
    seen.headers[Lower(head.substr(at, colon - at))] = head.substr(colon + 2, end - colon - 2);
  }
  return seen;
}

}  // namespace

Answer Reply(int status, const std::string& body, const std::string& headers) {
  return {.pieces = {fmt::format("HTTP/1.1 {} Whatever\r\nContent-Type: application/json\r\n"
                                 "Content-Length: {}\r\n{}\r\n{}",
                                 status, body.size(), headers, body)}};
}

Answer StatusReply(int code, const std::string& reason, const std::string& message,
                   const std::string& details, const std::string& headers) {
  return Reply(
      code,
      fmt::format(R"({{"kind":"Status","apiVersion":"v1","metadata":{{}},"status":"Failure",)"
                  R"("message":"{}","reason":"{}","details":{},"code":{}}})",
                  message, reason, details, code),
      headers);
}

Answer Chunked(const std::vector<std::string>& chunks, Answer::Then then) {
  Answer answer{.pieces = {"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
                           "Transfer-Encoding: chunked\r\n\r\n"},
                .then = then};
  for (const std::string& chunk : chunks) {
    answer.pieces.push_back(fmt::format("{:x}\r\n{}\r\n", chunk.size(), chunk));
  }
  if (then == Answer::Then::kKeep) answer.pieces.emplace_back("0\r\n\r\n");
  return answer;
}

// One connection, encrypted or not.
class ScriptedServer::Line {
 public:
  Line(int socket, SSL_CTX* context) : socket_(socket) {
    if (context == nullptr) return;
    session_ = SSL_new(context);
    SSL_set_fd(session_, socket);
    open_ = SSL_accept(session_) == 1;
  }
  ~Line() {
    if (session_ != nullptr) SSL_free(session_);
  }
  Line(const Line&) = delete;
  Line& operator=(const Line&) = delete;

  bool open() const { return open_; }

  std::string Peer() const {
    if (session_ == nullptr) return "";
    X509* certificate = SSL_get1_peer_certificate(session_);
    if (certificate == nullptr) return "";
    std::array<char, 64> name{};
    X509_NAME_get_text_by_NID(X509_get_subject_name(certificate), NID_commonName, name.data(),
                              static_cast<int>(name.size()));
    X509_free(certificate);
    return name.data();
  }

  // Up to and with `end`, or so many bytes; nothing once the other side has closed.
  std::optional<std::string> ReadUntil(const std::string& end) {
    std::size_t found = 0;
    while ((found = buffer_.find(end)) == std::string::npos) {
      if (!Fill()) return std::nullopt;
    }
    return Take(found + end.size());
  }
  std::optional<std::string> Read(std::size_t count) {
    while (buffer_.size() < count) {
      if (!Fill()) return std::nullopt;
    }
    return Take(count);
  }

  void Write(const std::string& bytes) {
    std::size_t done = 0;
    while (done < bytes.size()) {
      const char* const from = bytes.data() + done;
      const auto left = static_cast<int>(bytes.size() - done);
      const auto count =
          session_ != nullptr
              ? SSL_write(session_, from, left)
              : static_cast<int>(send(socket_, from, bytes.size() - done, MSG_NOSIGNAL));
      if (count <= 0) return;  // the client has gone: its business
      done += static_cast<std::size_t>(count);
    }
  }

 private:
  bool Fill() {
    std::array<char, 4096> bytes{};
    const auto count = session_ != nullptr
                           ? SSL_read(session_, bytes.data(), static_cast<int>(bytes.size()))
                           : static_cast<int>(recv(socket_, bytes.data(), bytes.size(), 0));
    if (count <= 0) return false;
    buffer_.append(bytes.data(), static_cast<std::size_t>(count));
    return true;
  }
  std::string Take(std::size_t count) {
    std::string taken = buffer_.substr(0, count);
    buffer_.erase(0, count);
    return taken;
  }

  const int socket_;
  SSL* session_ = nullptr;
  bool open_ = true;
  std::string buffer_;
};

ScriptedServer::ScriptedServer(std::optional<ServerTls> tls) : tls_(std::move(tls)) {
  listener_ = Listen(port_);
  accepter_ = std::thread([this] { Accept(); });
}

ScriptedServer::~ScriptedServer() {
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
    for (const int socket : sockets_) shutdown(socket, SHUT_RDWR);
  }
  changed_.notify_all();
  shutdown(listener_, SHUT_RDWR);
  accepter_.join();
  for (std::thread& thread : threads_) thread.join();
  for (const int socket : sockets_) close(socket);
  close(listener_);
}

ScriptedServer& ScriptedServer::Then(Answer answer) {
  const std::lock_guard lock(mutex_);
  script_.push_back(std::move(answer));
  changed_.notify_all();
  return *this;
}

void ScriptedServer::CutAll() {
  const std::lock_guard lock(mutex_);
  for (const int socket : sockets_) shutdown(socket, SHUT_RDWR);
}

std::string ScriptedServer::url() const {
  return fmt::format("{}://127.0.0.1:{}", tls_ ? "https" : "http", port_);
}

std::vector<Seen> ScriptedServer::requests() const {
  const std::lock_guard lock(mutex_);
  return seen_;
}

void ScriptedServer::AwaitRequests(std::size_t count) const {
  std::unique_lock lock(mutex_);
  const bool came =
      changed_.wait_for(lock, std::chrono::seconds(20), [&] { return seen_.size() >= count; });
  if (!came) Fail(fmt::format("waited for {} requests, {} came", count, seen_.size()));
}

void ScriptedServer::Accept() {
  BearClosedConnections();
  for (int number = 1;; ++number) {
    const int socket = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (socket < 0) return;
    const int on = 1;
    setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    const std::lock_guard lock(mutex_);
    sockets_.push_back(socket);
    if (over_) return;
    threads_.emplace_back([this, socket, number] { Serve(socket, number); });
  }
}

void ScriptedServer::Serve(int socket, int number) {
  SSL_CTX* const context = tls_ ? NewContext(*tls_) : nullptr;
  {
    Line line(socket, context);
    while (line.open() && Answered(line, number)) {
    }
  }
  if (context != nullptr) SSL_CTX_free(context);
  shutdown(socket, SHUT_RDWR);
}

// Whether another request may come by this line.
bool ScriptedServer::Answered(Line& line, int number) {
  const std::optional<std::string> head = line.ReadUntil("\r\n\r\n");
  if (!head) return false;
  Seen seen = ParseHead(*head);
  if (seen.headers.contains("content-length")) {
    std::optional<std::string> body =
        line.Read(std::strtoul(seen.headers["content-length"].c_str(), nullptr, 10));
    if (!body) return false;
    seen.body = *std::move(body);
  }
  seen.connection = number;
  seen.peer = line.Peer();
  const std::optional<Answer> answer = Next(std::move(seen));
  if (!answer) return false;
  for (const std::string& piece : answer->pieces) line.Write(piece);
  if (answer->then == Answer::Then::kHang) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return over_; });
  }
  return answer->then == Answer::Then::kKeep;
}

// Waits for an answer where the script has none left.
std::optional<Answer> ScriptedServer::Next(Seen seen) {
  std::unique_lock lock(mutex_);
  seen_.push_back(std::move(seen));
  changed_.notify_all();
  changed_.wait(lock, [this] { return over_ || !script_.empty(); });
  if (over_) return std::nullopt;
  Answer answer = std::move(script_.front());
  script_.pop_front();
  return answer;
}

ScriptedProxy::ScriptedProxy(std::string answer) : answer_(std::move(answer)) {
  listener_ = Listen(port_);
  accepter_ = std::thread([this] { Accept(); });
}

ScriptedProxy::~ScriptedProxy() {
  shutdown(listener_, SHUT_RDWR);
  accepter_.join();
  {
    const std::lock_guard lock(mutex_);
    for (const int socket : sockets_) shutdown(socket, SHUT_RDWR);
  }
  for (std::thread& thread : threads_) thread.join();
  for (const int socket : sockets_) close(socket);
  close(listener_);
}

std::string ScriptedProxy::url() const { return fmt::format("http://127.0.0.1:{}", port_); }

std::vector<std::string> ScriptedProxy::heads() const {
  const std::lock_guard lock(mutex_);
  return heads_;
}

void ScriptedProxy::Accept() {
  for (;;) {
    const int socket = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (socket < 0) return;
    const std::lock_guard lock(mutex_);
    sockets_.push_back(socket);
    threads_.emplace_back([this, socket] { Serve(socket); });
  }
}

void ScriptedProxy::Serve(int client) {
  std::string head;
  char c = 0;
  while (!head.ends_with("\r\n\r\n")) {
    if (recv(client, &c, 1, 0) != 1) return;
    head += c;
  }
  const std::string port = head.substr(head.find(':') + 1, head.find(" HTTP") - head.find(':') - 1);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(std::strtoul(port.c_str(), nullptr, 10)));
  const int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  {
    const std::lock_guard lock(mutex_);
    heads_.push_back(head);
    sockets_.push_back(server);
  }
  const bool through = answer_.starts_with("HTTP/1.1 200 ") &&
                       connect(server, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  send(client, answer_.data(), answer_.size(), MSG_NOSIGNAL);
  std::array<pollfd, 2> ends = {{{client, POLLIN, 0}, {server, POLLIN, 0}}};
  std::array<char, 4096> bytes{};
  while (through && poll(ends.data(), ends.size(), -1) > 0) {
    for (std::size_t i = 0; i < ends.size(); ++i) {
      if (ends[i].revents == 0) continue;
      const ssize_t count = recv(ends[i].fd, bytes.data(), bytes.size(), 0);
      if (count <= 0) {
        shutdown(client, SHUT_RDWR);
        shutdown(server, SHUT_RDWR);
        return;
      }
      send(ends[1 - i].fd, bytes.data(), static_cast<std::size_t>(count), MSG_NOSIGNAL);
    }
  }
  shutdown(client, SHUT_RDWR);
}

}  // namespace test
