#include <gtest/gtest.h>

#include <limits>

#include "test/scheduler/scene.h"

// Inputs that no kubelet gives and that once did harm.
namespace scheduler::admission {
namespace {

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();

TEST(OddInput, TheLargestRequestOverflowsNoSum) {
  Scene node({.numa = Alike(2, {.gpus = 1}), .policy = "best-effort"});
  kube::Pod pod = PodOf("p", "1 CPU 1Gi");
  pod.containers.front().limits["nvidia.com/gpu"] = kMost;
  pod.containers.front().requests["memory"] = pod.containers.front().limits["memory"] = kMost;
  EXPECT_EQ(node.Ask(pod), "UnexpectedAdmissionError");
  pod.init_containers = pod.containers;
  EXPECT_EQ(node.Ask(pod), "UnexpectedAdmissionError");
}

TEST(OddInput, AmountsThatCannotBeAreAnErrorOfTheObject) {
  placement::NodePlacement node = NodeOf(NodeSpec());
  node.numa_nodes.front().memory.front().allocatable = kMost;
  EXPECT_EQ(StateFrom(node).status().code(), absl::StatusCode::kInvalidArgument);
  node = NodeOf(NodeSpec());
  node.numa_nodes.front().memory.front().free = -1;
  EXPECT_EQ(StateFrom(node).status().code(), absl::StatusCode::kInvalidArgument);
  node = NodeOf(NodeSpec());
  node.numa_nodes.front().memory_assignments = std::numeric_limits<int>::max();
  EXPECT_EQ(StateFrom(node).status().code(), absl::StatusCode::kInvalidArgument);
  node = NodeOf({.numa = {{.id = 0, .taken_memory = "1Gi"}}});
  node.pods.front().containers.front().memory.front().bytes = -1;
  EXPECT_EQ(StateFrom(node).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace scheduler::admission
