#pragma once

#include <algorithm>
#include <chrono>
#include <functional>
#include <optional>
#include <utility>

namespace kube {

// A number from 0 up to, but without, 1. Safe for concurrent use where its users are.
using Random = std::function<double()>;
// The machine's own; safe for concurrent use.
Random SystemRandom();

// The pauses between attempts: each twice as long as the one before, up to a limit, of which the
// second half is by chance, so that many that failed together do not come back together.
class Backoff {
 public:
  Backoff(std::chrono::milliseconds first, std::chrono::milliseconds most, Random random)
      : first_(first), most_(most), random_(std::move(random)) {}

  std::chrono::milliseconds Next() {
    const double pause = static_cast<double>(next_.value_or(first_).count());
    next_ = std::min(2 * next_.value_or(first_), most_);
    return std::chrono::milliseconds(static_cast<std::int64_t>(pause * (0.5 + 0.5 * random_())));
  }
  void Reset() { next_.reset(); }

 private:
  const std::chrono::milliseconds first_;
  const std::chrono::milliseconds most_;
  const Random random_;
  std::optional<std::chrono::milliseconds> next_;
};

}  // namespace kube
