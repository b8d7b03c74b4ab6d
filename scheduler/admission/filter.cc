#include "scheduler/admission/filter.h"

#include <cstddef>

namespace scheduler::admission {

const std::vector<Outcome>& Filter::Ask(Nodes nodes) {
  asked_.resize(nodes.size());
  answers_.resize(nodes.size());
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (asked_[i] == nodes[i]) continue;
    answers_[i] = Answer(*nodes[i], request_);
    asked_[i] = nodes[i];
  }
  return answers_;
}

}  // namespace scheduler::admission
