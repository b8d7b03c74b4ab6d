#pragma once

#include <chrono>
#include <optional>

#include "absl/status/status.h"

namespace base {

// When to try again what failed, where the other side has said so: a part of the error, so that
// whoever tries again knows it.
void SetRetryAfter(std::chrono::milliseconds pause, absl::Status& failure);
std::optional<std::chrono::milliseconds> RetryAfter(const absl::Status& failure);

}  // namespace base
