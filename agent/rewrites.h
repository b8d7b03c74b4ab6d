#pragma once

#include <chrono>

#include "base/clock.h"

namespace agent {

// How often an object is written again that others delete or overwrite: at once, twice; then not
// faster than every 30 s, until it was left alone for 10 minutes. Pure: time comes in.
class Rewrites {
 public:
  static constexpr int kAtOnce = 2;
  static constexpr std::chrono::seconds kPause{30};
  static constexpr std::chrono::minutes kPeace{10};

  void Rewritten(base::Instant now) {
    count_ = now - last_ < kPeace ? count_ + 1 : 1;
    last_ = now;
  }
  bool MayRewrite(base::Instant now) const { return count_ < kAtOnce || now - last_ >= kPause; }
  // Somebody does it again and again.
  bool Contested(base::Instant now) const { return count_ >= kAtOnce && now - last_ < kPeace; }

 private:
  int count_ = 0;
  base::Instant last_;
};

}  // namespace agent
