#pragma once

#include <chrono>
#include <functional>
#include <mutex>
#include <vector>

#include "base/clock.h"

namespace test {

// Moves only when told to, or by what is slept on it, which takes no time; the wall clock also
// apart from the steady one. Safe for concurrent use.
class FakeClock : public base::Clock {
 public:
  base::Time Now() override {
    const std::lock_guard lock(mutex_);
    return now_;
  }
  base::Instant Steady() override {
    const std::lock_guard lock(mutex_);
    return steady_;
  }
  void Sleep(std::chrono::milliseconds duration) override {
    Advance(duration);
    {
      const std::lock_guard lock(mutex_);
      pauses_.push_back(duration);
    }
    if (during_pause) during_pause();
  }

  void Advance(base::Instant::duration duration) {
    const std::lock_guard lock(mutex_);
    steady_ += duration;
    now_ += std::chrono::duration_cast<std::chrono::milliseconds>(duration);
  }
  void AdvanceTo(base::Instant when) {
    if (const base::Instant now = Steady(); when > now) Advance(when - now);
  }
  void JumpWall(std::chrono::milliseconds by) {
    const std::lock_guard lock(mutex_);
    now_ += by;
  }

  // What was slept.
  std::vector<std::chrono::milliseconds> pauses() const {
    const std::lock_guard lock(mutex_);
    return pauses_;
  }
  std::function<void()> during_pause = nullptr;

 private:
  mutable std::mutex mutex_;
  base::Time now_ = base::ParseTime("2026-11-29T12:00:00Z").value();
  base::Instant steady_{std::chrono::hours(1)};
  std::vector<std::chrono::milliseconds> pauses_;
};

}  // namespace test
