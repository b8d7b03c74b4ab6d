#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "placement/node_placement.h"

namespace agent {

// The API server's store takes about 1.5 MB of an object and each watch carries it whole.
inline constexpr std::size_t kMostBytes = std::size_t{256} << 10;

struct Fitted {
  std::string json = {};
  std::vector<std::string> left_out = {};  // fields, in the order in which they went; empty: none
  bool fits = true;
};

// NodePlacement as JSON of at most so many bytes. What is too much goes field by field, from all
// pods at once, what is least missed first:
//   residentBytes  is coarse here and exact in the metrics
//   message        says the reason in a sentence, and with what is in the object
//   kernel         where it agrees with the kubelet; what differs stays
// All else is what a scheduler predicts by, and stays: half a picture would be a wrong one. If it
// does not fit even so, it is written as it is.
Fitted Fit(const placement::NodePlacement& placement, std::size_t most_bytes = kMostBytes);

}  // namespace agent
