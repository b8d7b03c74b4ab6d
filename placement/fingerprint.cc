#include "placement/fingerprint.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <cstdint>

namespace placement {
namespace {

std::uint64_t HashOf(const std::string& text, std::uint64_t seed) {
  return XXH64(text.data(), text.size(), seed);
}

}  // namespace

std::string PodFingerprint(const std::vector<std::pair<std::string, std::string>>& pods) {
  std::vector<std::uint64_t> hashes;
  hashes.reserve(pods.size());
  for (const auto& [namespace_name, name] : pods) {
    hashes.push_back(HashOf(name, HashOf(namespace_name, 0)));
  }
  std::ranges::sort(hashes);
  std::string bytes;
  bytes.reserve(hashes.size() * 8);
  for (const std::uint64_t hash : hashes) {
    for (int shift = 0; shift < 64; shift += 8) {
      bytes.push_back(static_cast<char>((hash >> shift) & 0xff));  // little-endian
    }
  }
  return fmt::format("pfp0v001{:016x}", HashOf(bytes, 0));
}

}  // namespace placement
