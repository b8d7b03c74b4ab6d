#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "kube/client.h"
#include "kube/http_transport.h"
#include "test/fakes/clock.h"
#include "test/kube/scripted_server.h"

namespace test {

// Something that follows objects of node gpu-7, of an API server that answers from a script.
template <class Follower>
class FollowingTest : public testing::Test {
 protected:
  using Known = decltype(std::declval<const Follower&>().Get());

  void Start() {
    auto follower = std::make_unique<Follower>(client_, "gpu-7", [this] {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return follower_ != nullptr; });
      seen_.push_back(follower_->Get());
      changed_.notify_all();
    });
    const std::lock_guard lock(mutex_);
    follower_ = std::move(follower);
    changed_.notify_all();
  }
  // What there was at each change, once there were so many; fewer after 10 s.
  std::vector<Known> AwaitChanges(std::size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::seconds(10), [&] { return seen_.size() >= count; });
    EXPECT_EQ(seen_.size(), count);
    return seen_;
  }

  static constexpr auto kHang = Answer::Then::kHang;

  ScriptedServer server_;
  FakeClock clock_;
  std::unique_ptr<kube::Transport> transport_ =
      kube::MakeTransport({.server = server_.url()}, clock_).value();
  kube::Client client_{*transport_, clock_, {}, [] { return 0.0; }};
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Known> seen_;             // guarded by mutex_
  std::unique_ptr<Follower> follower_;  // the last: it uses all of them
};

}  // namespace test
