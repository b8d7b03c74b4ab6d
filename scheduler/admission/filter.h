#pragma once

#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "scheduler/admission/admit.h"
#include "scheduler/admission/request.h"
#include "scheduler/admission/state.h"
#include "scheduler/admission/verdict.h"

namespace scheduler::admission {

// The answers of many nodes to pods of one shape. A node is asked again only after its state was
// replaced: states are immutable, and the filter holds on to those that it has asked. Not
// thread-safe.
class Filter {
 public:
  using Nodes = std::span<const std::shared_ptr<const NodeState>>;

  explicit Filter(Request request) : request_(std::move(request)) {}

  // One answer for each node, in their order (Answer in admit.h). Valid until the next call. The
  // nodes are compared by their place in the list: a list in another order is asked anew.
  const std::vector<Outcome>& Ask(Nodes nodes);

  const Request& request() const { return request_; }

 private:
  Request request_;
  std::vector<std::shared_ptr<const NodeState>> asked_;
  std::vector<Outcome> answers_;
};

}  // namespace scheduler::admission
