#pragma once

#include <chrono>
#include <stop_token>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace base {

// Wall-clock time, UTC, for what is published and compared with what others published.
using Time = std::chrono::time_point<std::chrono::system_clock, std::chrono::milliseconds>;

// Time that only goes forward, for how long something took or may take.
using Instant = std::chrono::steady_clock::time_point;

// RFC 3339 in UTC with milliseconds: "2026-11-29T12:00:00.123Z".
std::string FormatTime(Time time);
// The same, also without or with more fractional digits (cut to milliseconds) and with an offset.
absl::StatusOr<Time> ParseTime(std::string_view text);

// Where time comes from: passed to whoever must know or wait, so that tests move it by hand.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual Time Now() = 0;
  virtual Instant Steady() = 0;
  virtual void Sleep(std::chrono::milliseconds duration) = 0;
  // Sleeps until the time is over or stop is requested; false if it was.
  virtual bool Wait(std::chrono::milliseconds duration, const std::stop_token& stop) {
    if (!stop.stop_requested()) Sleep(duration);
    return !stop.stop_requested();
  }
};

// The machine's own clock. Safe for concurrent use.
class SystemClock : public Clock {
 public:
  Time Now() override;
  Instant Steady() override;
  void Sleep(std::chrono::milliseconds duration) override;
  bool Wait(std::chrono::milliseconds duration, const std::stop_token& stop) override;
};

}  // namespace base
