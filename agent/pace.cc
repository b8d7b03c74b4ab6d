#include "agent/pace.h"

#include <algorithm>

namespace agent {

void Pace::Asked(base::Instant now) {
  constexpr std::chrono::seconds kBurstEnds{1};
  const bool in_burst = questions_ > 0 && now - last_ < kBurstEnds;
  pause_ = in_burst ? std::min(2 * pause_, kLongestPause) : kFirstPause;
  asked_[questions_ % kRemembered] = now;
  ++questions_;
  last_ = now;
}

void Pace::Polled(bool surprise) {
  if (surprise) return HintsAreMissing();
  if (++quiet_polls_ < kQuietPolls) return;
  quiet_polls_ = 0;
  slowness_ = std::min(2 * slowness_, kSlowest);
}

void Pace::HintsAreMissing() {
  quiet_polls_ = 0;
  slowness_ = 1;
}

base::Instant Pace::Earliest() const {
  if (questions_ == 0) return base::Instant::min();
  const base::Instant paused = last_ + pause_;
  if (questions_ < kRemembered) return paused;
  return std::max(paused, asked_[questions_ % kRemembered] + std::chrono::seconds(1));
}

base::Instant Pace::NextPoll() const {
  if (questions_ == 0) return base::Instant::min();
  const std::chrono::milliseconds interval = interval_ * slowness_;
  return last_ + (hurry_ ? std::min(interval, kHurriedInterval) : interval);
}

}  // namespace agent
