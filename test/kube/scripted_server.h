#pragma once

#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "test/kube/pki.h"

namespace test {

// What is sent to one request, byte for byte, and what becomes of the connection then.
struct Answer {
  enum class Then { kKeep, kClose, kHang };
  std::vector<std::string> pieces = {};  // each written by itself
  Then then = Then::kKeep;
};

// HTTP/1.1 with its body's length.
Answer Reply(int status, const std::string& body, const std::string& headers = "");
// A Status as the API server sends it.
Answer StatusReply(int code, const std::string& reason, const std::string& message,
                   const std::string& details = "{}", const std::string& headers = "");
// A chunked 200: each text is a chunk. kKeep ends the body in order; otherwise it stays open or is
// cut.
Answer Chunked(const std::vector<std::string>& chunks, Answer::Then then = Answer::Then::kKeep);

struct Seen {
  std::string method;
  std::string target;
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;
  int connection = 0;     // which one it came by, from 1
  std::string peer = {};  // the common name in the client's certificate, if it has one
};

struct ServerTls {
  Issued own;
  std::string client_authority_pem = {};  // "" to ask for no certificate of the client
};

// A server on a free port of 127.0.0.1 that answers requests from a script, in the order in which
// they come; when the script is over it takes requests and says nothing.
class ScriptedServer {
 public:
  explicit ScriptedServer(std::optional<ServerTls> tls = std::nullopt);
  ~ScriptedServer();
  ScriptedServer(const ScriptedServer&) = delete;
  ScriptedServer& operator=(const ScriptedServer&) = delete;

  ScriptedServer& Then(Answer answer);

  // Ends all connections.
  void CutAll();

  int port() const { return port_; }
  std::string url() const;
  std::vector<Seen> requests() const;
  // Waits until so many requests have come; aborts the test after 20 s.
  void AwaitRequests(std::size_t count) const;

 private:
  class Line;
  void Accept();
  void Serve(int socket, int number);
  bool Answered(Line& line, int number);
  std::optional<Answer> Next(Seen seen);

  int listener_ = -1;
  int port_ = 0;
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  const std::optional<ServerTls> tls_;
  std::deque<Answer> script_;
  std::vector<Seen> seen_;
  std::vector<int> sockets_;
  bool over_ = false;
  std::vector<std::thread> threads_;
  std::thread accepter_;
};

// An HTTP proxy that connects through, on a free port of 127.0.0.1.
class ScriptedProxy {
 public:
  // `answer`: to a request to connect; it connects if that is a 200.
  explicit ScriptedProxy(std::string answer = "HTTP/1.1 200 Connected\r\n\r\n");
  ~ScriptedProxy();
  ScriptedProxy(const ScriptedProxy&) = delete;
  ScriptedProxy& operator=(const ScriptedProxy&) = delete;

  std::string url() const;
  int port() const { return port_; }
  std::vector<std::string> heads() const;  // of the requests that came, as they stand

 private:
  void Accept();
  void Serve(int client);

  const std::string answer_;
  int listener_ = -1;
  int port_ = 0;
  mutable std::mutex mutex_;
  std::vector<std::string> heads_;
  std::vector<int> sockets_;
  std::vector<std::thread> threads_;
  std::thread accepter_;
};

}  // namespace test
