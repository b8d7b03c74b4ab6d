#pragma once

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace test {

// A listener on a unix socket that is no kubelet: says the same bytes to everyone who connects, or
// nothing, and reads whatever comes.
class RawServer {
 public:
  RawServer(const std::string& path, std::string greeting)
      : greeting_(std::move(greeting)), listener_(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof(address.sun_path) - 1);
    if (bind(listener_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0 ||
        listen(listener_, 16) != 0 || pipe(wake_.data()) != 0) {
      throw std::runtime_error("cannot listen on " + path);
    }
    thread_ = std::thread([this] { Serve(); });
  }
  ~RawServer() {
    close(wake_[1]);
    thread_.join();
    close(wake_[0]);
    close(listener_);
  }
  RawServer(const RawServer&) = delete;
  RawServer& operator=(const RawServer&) = delete;

 private:
  void Serve() {
    std::vector<pollfd> waiting{{wake_[0], POLLIN, 0}, {listener_, POLLIN, 0}};
    while (poll(waiting.data(), waiting.size(), -1) >= 0 && waiting[0].revents == 0) {
      for (std::size_t i = waiting.size() - 1; i >= 2; --i) {
        std::array<char, 4096> buffer{};
        if (waiting[i].revents != 0 && read(waiting[i].fd, buffer.data(), buffer.size()) <= 0) {
          close(waiting[i].fd);
          waiting.erase(waiting.begin() + static_cast<std::ptrdiff_t>(i));
        }
      }
      if (waiting[1].revents == 0) continue;
      const int connection = accept(listener_, nullptr, nullptr);
      send(connection, greeting_.data(), greeting_.size(), MSG_NOSIGNAL);
      waiting.push_back({connection, POLLIN, 0});
    }
    for (std::size_t i = 2; i < waiting.size(); ++i) close(waiting[i].fd);
  }

  const std::string greeting_;
  const int listener_;
  std::array<int, 2> wake_{};
  std::thread thread_;
};

}  // namespace test
