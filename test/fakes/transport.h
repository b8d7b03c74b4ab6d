#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "kube/transport.h"

namespace test {

// The API server's answers from a script, in the order in which they are asked for; what a watch
// says comes when the test says it. Safe for concurrent use.
class FakeTransport : public kube::Transport {
 public:
  FakeTransport& Then(int status, std::string body) {
    return Then(kube::HttpReply{.status = status, .body = std::move(body)});
  }
  FakeTransport& Then(absl::StatusOr<kube::HttpReply> reply) {
    const std::lock_guard lock(mutex_);
    script_.push_back(std::move(reply));
    return *this;
  }
  // What was asked, watches aside.
  std::vector<kube::HttpRequest> sent() const {
    const std::lock_guard lock(mutex_);
    return sent_;
  }
  std::vector<kube::HttpRequest> watches() const {
    const std::lock_guard lock(mutex_);
    return watches_;
  }
  // Waits until so many requests have been answered.
  void AwaitSent(std::size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return sent_.size() >= count; });
  }
  // Called while a request is being answered.
  std::function<void(const kube::HttpRequest&)> during_request = nullptr;

  // A line of the watch of this kind. Returns when it was taken.
  void Say(const std::string& plural, const std::string& line) {
    std::unique_lock lock(mutex_);
    lines_[plural].push_back(line);
    changed_.notify_all();
    changed_.wait(lock, [&] { return lines_[plural].empty(); });
  }

  absl::StatusOr<kube::HttpReply> Send(const kube::HttpRequest& request,
                                       std::chrono::milliseconds /*deadline*/,
                                       std::size_t /*max_reply_bytes*/,
                                       const std::stop_token& /*stop*/) override {
    if (during_request) during_request(request);
    const std::lock_guard lock(mutex_);
    sent_.push_back(request);
    changed_.notify_all();
    if (script_.empty()) return absl::UnavailableError("the script is over");
    absl::StatusOr<kube::HttpReply> reply = std::move(script_.front());
    script_.pop_front();
    return reply;
  }

  absl::StatusOr<kube::HttpReply> Stream(const kube::HttpRequest& request,
                                         std::chrono::milliseconds /*deadline*/,
                                         std::chrono::milliseconds /*silence*/,
                                         const std::function<void()>& opened,
                                         const Receive& receive,
                                         const std::stop_token& stop) override {
    std::unique_lock lock(mutex_);
    watches_.push_back(request);
    const std::size_t begin = request.target.rfind('/') + 1;
    std::deque<std::string>& lines =
        lines_[request.target.substr(begin, request.target.find('?') - begin)];
    lock.unlock();
    opened();
    lock.lock();
    while (changed_.wait(lock, stop, [&] { return !lines.empty(); })) {
      const std::string line = lines.front() + "\n";
      lock.unlock();
      const absl::Status taken = receive(line);
      lock.lock();
      lines.pop_front();
      changed_.notify_all();
      if (!taken.ok()) return taken;
    }
    return absl::CancelledError("stopped");
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<absl::StatusOr<kube::HttpReply>> script_;
  std::vector<kube::HttpRequest> sent_;
  std::vector<kube::HttpRequest> watches_;
  std::map<std::string, std::deque<std::string>> lines_;
};

}  // namespace test
