#pragma once

#include <chrono>
#include <mutex>
#include <vector>

#include "base/clock.h"

namespace test {

// Stands still but for what is slept on it, which takes no time. Safe for concurrent use.
class PausedClock : public base::Clock {
 public:
  base::Time Now() override {
    const std::lock_guard lock(mutex_);
    return now_;
  }
  void Sleep(std::chrono::milliseconds duration) override {
    const std::lock_guard lock(mutex_);
    now_ += duration;
    pauses_.push_back(duration);
  }
  std::vector<std::chrono::milliseconds> pauses() const {
    const std::lock_guard lock(mutex_);
    return pauses_;
  }

 private:
  mutable std::mutex mutex_;
  base::Time now_{std::chrono::hours(24 * 365 * 56)};
  std::vector<std::chrono::milliseconds> pauses_;
};

}  // namespace test
