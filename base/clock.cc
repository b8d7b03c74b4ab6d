#include "base/clock.h"

#include <fmt/format.h>

#include <cstdio>
#include <thread>

#include "absl/status/status.h"

namespace base {
namespace {

using std::chrono::milliseconds;

absl::Status NoTime(std::string_view text) {
  return absl::InvalidArgumentError(fmt::format("\"{:.40}\" is no RFC 3339 time", text));
}

// Takes the fraction off the front of the rest, as milliseconds; at least one digit after the dot.
bool TakeFraction(std::string_view& rest, int& millis) {
  millis = 0;
  if (rest.empty() || rest[0] != '.') return true;
  rest.remove_prefix(1);
  int digits = 0;
  for (; !rest.empty() && rest[0] >= '0' && rest[0] <= '9'; rest.remove_prefix(1), ++digits) {
    if (digits < 3) millis = millis * 10 + (rest[0] - '0');
  }
  for (int i = digits; i < 3; ++i) millis *= 10;
  return digits > 0;
}

bool TakeOffset(std::string_view rest, std::chrono::minutes& offset) {
  if (rest == "Z" || rest == "z") return true;
  int hours = 0;
  int minutes = 0;
  int used = 0;
  const std::string text(rest.empty() ? "" : rest.substr(1));
  if (rest.size() != 6 || (rest[0] != '+' && rest[0] != '-') ||
      std::sscanf(text.c_str(), "%2d:%2d%n", &hours, &minutes, &used) != 2 || used != 5) {
    return false;
  }
  offset = (std::chrono::hours(hours) + std::chrono::minutes(minutes)) * (rest[0] == '-' ? -1 : 1);
  return true;
}

}  // namespace

std::string FormatTime(Time time) {
  const auto day = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(time - day);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                     clock.hours().count(), clock.minutes().count(), clock.seconds().count(),
                     clock.subseconds().count());
}

absl::StatusOr<Time> ParseTime(std::string_view text) {
  int year = 0;
  int month = 0;
  int day = 0;
  int hour = 0;
  int minute = 0;
  int second = 0;
  int used = 0;
  const std::string copy(text.substr(0, 64));
  if (std::sscanf(copy.c_str(), "%4d-%2d-%2d%*1[Tt ]%2d:%2d:%2d%n", &year, &month, &day, &hour,
                  &minute, &second, &used) != 6 ||
      used != 19) {
    return NoTime(text);
  }
  const std::chrono::year_month_day date{std::chrono::year(year),
                                         std::chrono::month(static_cast<unsigned>(month)),
                                         std::chrono::day(static_cast<unsigned>(day))};
  if (!date.ok() || hour < 0 || hour > 23 || minute < 0 || minute > 59 || second < 0 ||
      second > 60) {
    return NoTime(text);
  }
  std::string_view rest = std::string_view(copy).substr(static_cast<std::size_t>(used));
  int millis = 0;
  std::chrono::minutes offset{0};
  if (!TakeFraction(rest, millis) || !TakeOffset(rest, offset)) return NoTime(text);
  return Time(std::chrono::sys_days(date).time_since_epoch() + std::chrono::hours(hour) +
              std::chrono::minutes(minute) - offset + std::chrono::seconds(second) +
              milliseconds(millis));
}

Time SystemClock::Now() {
  return std::chrono::floor<milliseconds>(std::chrono::system_clock::now());
}

void SystemClock::Sleep(milliseconds duration) { std::this_thread::sleep_for(duration); }

}  // namespace base
