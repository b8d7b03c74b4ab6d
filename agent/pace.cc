#include "agent/pace.h"

#include <algorithm>

namespace agent {

void Pace::Hinted(base::Instant now) {
  if (!first_hint_) first_hint_ = now;
  last_hint_ = now;
}

void Pace::Asked(base::Instant now) {
  constexpr std::chrono::seconds kBurstEnds{1};
  const bool in_burst = questions_ > 0 && now - last_ < kBurstEnds;
  pause_ = in_burst ? std::min(2 * pause_, kLongestPause) : kFirstPause;
  asked_[questions_ % kRemembered] = now;
  ++questions_;
  last_ = now;
  first_hint_.reset();
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
  base::Instant earliest = base::Instant::min();
  if (first_hint_) {
    earliest = std::min(last_hint_ + kBetweenSteps, *first_hint_ + kLongestStepping);
  }
  if (questions_ > 0) earliest = std::max(earliest, last_ + pause_);
  if (questions_ < kRemembered) return earliest;
  return std::max(earliest, asked_[questions_ % kRemembered] + std::chrono::seconds(1));
}

base::Instant Pace::NextPoll() const {
  if (questions_ == 0) return base::Instant::min();
  const std::chrono::milliseconds interval = interval_ * slowness_;
  return last_ + (hurry_ ? std::min(interval, kHurriedInterval) : interval);
}

}  // namespace agent
