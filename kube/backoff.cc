#include "kube/backoff.h"

#include <random>

namespace kube {

Random SystemRandom() {
  return [] {
    thread_local std::minstd_rand engine{std::random_device{}()};
    return std::uniform_real_distribution<double>(0, 1)(engine);
  };
}

}  // namespace kube
