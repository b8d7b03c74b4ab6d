// Any bytes as a Node: an error, or values that can be used without another look.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <set>
#include <string>

#include "agent/this_node.h"

namespace {

void Check(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(data, data + size);
  const absl::StatusOr<agent::NodeObject> node = agent::ReadNode({.uid = "uid", .json = text});
  if (!node.ok()) return 0;
  Check(node->exists && node->uid == "uid");
  Check(node->kubelet_port >= 0 && node->kubelet_port <= 65'535);
  const std::set<std::string> addresses(node->addresses.begin(), node->addresses.end());
  Check(addresses.size() == node->addresses.size() && !addresses.contains(""));
  return 0;
}
