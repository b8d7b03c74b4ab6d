#include "base/retry_after.h"

#include <cstdint>
#include <string>

#include "absl/strings/cord.h"
#include "base/text.h"

namespace base {
namespace {

constexpr char kPayload[] = "plumbline.dev/retry-after-milliseconds";

}  // namespace

void SetRetryAfter(std::chrono::milliseconds pause, absl::Status& failure) {
  failure.SetPayload(kPayload, absl::Cord(std::to_string(pause.count())));
}

std::optional<std::chrono::milliseconds> RetryAfter(const absl::Status& failure) {
  const auto payload = failure.GetPayload(kPayload);
  if (!payload) return std::nullopt;
  const auto pause = ParseNumber<std::int64_t>(std::string(*payload));
  if (!pause) return std::nullopt;
  return std::chrono::milliseconds(*pause);
}

}  // namespace base
