#pragma once

#include <chrono>

#include "base/clock.h"

namespace test {

// Moves only when told to; the wall clock also apart from the steady one.
class FakeClock : public base::Clock {
 public:
  base::Time Now() override { return now_; }
  base::Instant Steady() override { return steady_; }
  void Sleep(std::chrono::milliseconds duration) override { Advance(duration); }

  void Advance(base::Instant::duration duration) {
    steady_ += duration;
    now_ += std::chrono::duration_cast<std::chrono::milliseconds>(duration);
  }
  void AdvanceTo(base::Instant when) {
    if (when > steady_) Advance(when - steady_);
  }
  void JumpWall(std::chrono::milliseconds by) { now_ += by; }

 private:
  base::Time now_ = base::ParseTime("2026-11-29T12:00:00Z").value();
  base::Instant steady_{std::chrono::hours(1)};
};

}  // namespace test
