#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace kube {

// Looks up the addresses of one host within a time limit. getaddrinfo has none: where the name
// servers are silent it takes up to minutes, and nothing ends it before. So it runs on a thread of
// its own, which is left behind when the time is over. There is never more than one: who asks
// meanwhile, or again after giving up, waits for the same answer. The thread may outlive the
// resolver; it shares only the answer. Safe for concurrent use.
class Resolver {
 public:
  using Time = std::chrono::steady_clock::time_point;
  using Addresses = std::vector<std::string>;  // "10.96.0.1", "fd00::1", never none
  using LookUp = std::function<absl::StatusOr<Addresses>(const std::string& host)>;

  explicit Resolver(std::string host, LookUp look_up = AskSystem)
      : host_(std::move(host)), look_up_(std::move(look_up)) {}

  // Unavailable: why there are none; DeadlineExceeded: not known in time; Cancelled: stop was
  // requested.
  absl::StatusOr<Addresses> Resolve(Time until, const std::stop_token& stop);

  // By getaddrinfo: /etc/hosts and the name servers, as the machine is told to.
  static absl::StatusOr<Addresses> AskSystem(const std::string& host);

 private:
  struct Question;
  std::shared_ptr<Question> Asked();

  const std::string host_;
  const LookUp look_up_;
  std::mutex mutex_;
  std::shared_ptr<Question> asked_;  // guarded by it; the last one
};

}  // namespace kube
