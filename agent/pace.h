#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <optional>

#include "base/clock.h"

namespace agent {

// When the kubelet is asked. Pure: time comes in.
//
// Never more than ten calls in any second. A question is two calls, so the sixth waits until a
// second has passed since the first was answered.
//
// What the kubelet does at once it writes in steps, and waits for its disk at each. So a hint is
// followed when no other came for 10 ms, and no later than 50 ms after the first. While they go on,
// the pause between two questions grows: 25, 50, 100, then 200 ms, so that a burst is folded and
// the limit is met evenly. A second without a question ends the burst.
//
// Without hints it is asked once each interval, counted from the last question: that is the
// backstop poll, 1 s by default. After twenty polls in a row that found nothing which no hint had
// announced the interval doubles, and so on up to eight times itself; the first poll that finds
// something shows that hints are missing here, and the interval is the default again. So it is as
// long as not every folder can be watched. In a hurry, while the kubelet's answer is about to
// change, the interval is a quarter of a second.
class Pace {
 public:
  static constexpr int kCallsPerSecond = 10;
  static constexpr int kCallsPerQuestion = 2;
  static constexpr std::chrono::milliseconds kBetweenSteps{10};
  static constexpr std::chrono::milliseconds kLongestStepping{50};
  static constexpr std::chrono::milliseconds kFirstPause{25};
  static constexpr std::chrono::milliseconds kLongestPause{200};
  static constexpr std::chrono::milliseconds kHurriedInterval{250};
  static constexpr int kQuietPolls = 20;
  static constexpr int kSlowest = 8;  // times the interval

  explicit Pace(std::chrono::milliseconds interval) : interval_(interval) {}

  // There was a hint.
  void Hinted(base::Instant now);
  // A question has been answered, or has failed.
  void Asked(base::Instant now);
  // What it found, if it was a poll.
  void Polled(bool surprise);
  void HintsAreMissing();
  void Hurry(bool hurry) { hurry_ = hurry; }

  // Not before this.
  base::Instant Earliest() const;
  base::Instant NextPoll() const;

 private:
  static constexpr std::size_t kRemembered = kCallsPerSecond / kCallsPerQuestion;

  const std::chrono::milliseconds interval_;
  std::array<base::Instant, kRemembered> asked_{};  // a ring
  std::size_t questions_ = 0;
  std::optional<base::Instant> first_hint_;  // since the last question
  base::Instant last_hint_;
  base::Instant last_;
  std::chrono::milliseconds pause_{0};
  int quiet_polls_ = 0;
  int slowness_ = 1;  // times the interval
  bool hurry_ = false;
};

}  // namespace agent
