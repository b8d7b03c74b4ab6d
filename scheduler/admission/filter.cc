#include "scheduler/admission/filter.h"

#include <cstddef>

namespace scheduler::admission {

namespace {

// Fetches a node's state into the cache while others are asked: with thousands of nodes most of the
// time is waiting for memory.
void Prefetch(Filter::Nodes nodes, std::size_t at) {
  constexpr std::size_t kCacheLine = 64;
  if (at >= nodes.size()) return;
  const void* state = nodes[at].get();
  for (std::size_t offset = 0; offset < sizeof(NodeState); offset += kCacheLine) {
    __builtin_prefetch(static_cast<const char*>(state) + offset);
  }
}

}  // namespace

const std::vector<Outcome>& Filter::Ask(Nodes nodes) {
  asked_.resize(nodes.size());
  answers_.resize(nodes.size());
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    Prefetch(nodes, i + 2);
    if (asked_[i] == nodes[i]) continue;
    answers_[i] = Answer(*nodes[i], request_);
    asked_[i] = nodes[i];
  }
  return answers_;
}

}  // namespace scheduler::admission
