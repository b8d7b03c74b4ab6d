#pragma once

#include <atomic>
#include <chrono>

#include "base/clock.h"

namespace agent {

// What others may ask about the loop. Safe for concurrent use.
class Health {
 public:
  // The loop steps at least each kHeartbeat, unless one step takes longer: two calls of the kubelet
  // of 5 s each, a look at the hardware, a publication. One that took this long never ends.
  static constexpr std::chrono::seconds kHeartbeat{10};
  static constexpr std::chrono::seconds kStuck{60};

  explicit Health(base::Instant now) : stepped_(now.time_since_epoch()) {}

  void Stepped(base::Instant now) { stepped_ = now.time_since_epoch(); }
  void Published() { published_ = true; }
  void SetCurrent(bool current) { current_ = current; }

  bool IsAlive(base::Instant now) const {
    return now.time_since_epoch() - stepped_.load() < kStuck;
  }
  // Once something has been published.
  bool IsReady() const { return published_; }
  // Whether the last observation was good, and the API server has all that came of it.
  bool IsCurrent() const { return current_; }

 private:
  std::atomic<base::Instant::duration> stepped_;
  std::atomic<bool> published_{false};
  std::atomic<bool> current_{false};
};

}  // namespace agent
