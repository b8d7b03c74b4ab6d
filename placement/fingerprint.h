#pragma once

#include <string>
#include <utility>
#include <vector>

namespace placement {

// The pod fingerprint, version v001 of the community's podfingerprint: two sets of pods have the
// same text if and (but for collisions of a 64-bit hash) only if they are the same. Pods are
// (namespace, name); order does not matter, repeated ones count.
std::string PodFingerprint(const std::vector<std::pair<std::string, std::string>>& pods);

}  // namespace placement
