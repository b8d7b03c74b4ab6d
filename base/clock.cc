#include "base/clock.h"

#include <fmt/format.h>

#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <optional>
#include <thread>

#include "absl/status/status.h"
#include "base/text.h"

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

// Digits alone: no sign, no blanks.
std::optional<int> Digits(std::string_view text) {
  if (text.find_first_not_of("0123456789") != std::string_view::npos) return std::nullopt;
  return ParseNumber<int>(text);
}

bool TakeOffset(std::string_view rest, std::chrono::minutes& offset) {
  if (rest == "Z" || rest == "z") return true;
  if (rest.size() != 6 || (rest[0] != '+' && rest[0] != '-') || rest[3] != ':') return false;
  const std::optional<int> hours = Digits(rest.substr(1, 2));
  const std::optional<int> minutes = Digits(rest.substr(4, 2));
  if (!hours || !minutes || *hours > 23 || *minutes > 59) return false;
  offset =
      (std::chrono::hours(*hours) + std::chrono::minutes(*minutes)) * (rest[0] == '-' ? -1 : 1);
  return true;
}

// "2026-11-29T12:00:00", cut at its fixed places.
std::optional<std::chrono::sys_seconds> ParseSeconds(std::string_view text) {
  if (text.size() != 19 || text[4] != '-' || text[7] != '-' || text[13] != ':' || text[16] != ':' ||
      std::string_view("Tt ").find(text[10]) == std::string_view::npos) {
    return std::nullopt;
  }
  const std::optional<int> year = Digits(text.substr(0, 4));
  const std::optional<int> month = Digits(text.substr(5, 2));
  const std::optional<int> day = Digits(text.substr(8, 2));
  const std::optional<int> hour = Digits(text.substr(11, 2));
  const std::optional<int> minute = Digits(text.substr(14, 2));
  const std::optional<int> second = Digits(text.substr(17, 2));
  if (!year || !month || !day || !hour || !minute || !second) return std::nullopt;
  const std::chrono::year_month_day date{std::chrono::year(*year),
                                         std::chrono::month(static_cast<unsigned>(*month)),
                                         std::chrono::day(static_cast<unsigned>(*day))};
  // 60 is a leap second.
  if (!date.ok() || *hour > 23 || *minute > 59 || *second > 60) return std::nullopt;
  return std::chrono::sys_days(date) + std::chrono::hours(*hour) + std::chrono::minutes(*minute) +
         std::chrono::seconds(*second);
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
  constexpr std::size_t kSeconds = 19;  // characters up to the fraction
  const auto seconds = ParseSeconds(text.substr(0, kSeconds));
  if (!seconds) return NoTime(text);
  std::string_view rest = text.substr(kSeconds);
  int millis = 0;
  std::chrono::minutes offset{0};
  if (!TakeFraction(rest, millis) || !TakeOffset(rest, offset)) return NoTime(text);
  return *seconds - offset + milliseconds(millis);
}

Time SystemClock::Now() {
  return std::chrono::floor<milliseconds>(std::chrono::system_clock::now());
}

Instant SystemClock::Steady() { return std::chrono::steady_clock::now(); }

void SystemClock::Sleep(milliseconds duration) { std::this_thread::sleep_for(duration); }

bool SystemClock::Wait(milliseconds duration, const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any stopped;
  std::unique_lock lock(mutex);
  stopped.wait_for(lock, stop, duration, [] { return false; });
  return !stop.stop_requested();
}

}  // namespace base
