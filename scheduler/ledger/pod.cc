#include "scheduler/ledger/pod.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace scheduler::ledger {
namespace {

bool Before(const kube::Container& a, const kube::Container& b) {
  return std::tie(a.name, a.sidecar, a.requests, a.limits) <
         std::tie(b.name, b.sidecar, b.requests, b.limits);
}

// Less, equal (0) or more, by the first container that differs.
int Compare(const std::vector<kube::Container>& a, const std::vector<kube::Container>& b) {
  if (std::ranges::lexicographical_compare(a, b, Before)) return -1;
  return std::ranges::lexicographical_compare(b, a, Before) ? 1 : 0;
}

}  // namespace

bool Shapes::Less::operator()(const kube::Pod& a, const kube::Pod& b) const {
  if (const int order = Compare(a.containers, b.containers); order != 0) return order < 0;
  if (const int order = Compare(a.init_containers, b.init_containers); order != 0) return order < 0;
  return std::tie(a.pod_requests, a.pod_limits, a.overhead, a.qos) <
         std::tie(b.pod_requests, b.pod_limits, b.overhead, b.qos);
}

ShapePtr Shapes::Share(const kube::Pod& pod) {
  ShapePtr known;
  const auto found = shapes_.find(pod);
  if (found != shapes_.end()) known = found->second.lock();
  if (known != nullptr) return known;
  ForgetUnused();
  auto shape = std::make_shared<Shape>();
  shape->pod = pod;
  shape->pod.uid = shape->pod.namespace_name = shape->pod.name = shape->pod.node_name = "";
  shape->request = admission::MakeRequest(pod);
  shapes_[shape->pod] = shape;
  return shape;
}

void Shapes::ForgetUnused() {
  if (shapes_.size() < look_again_at_) return;
  std::erase_if(shapes_, [](const auto& entry) { return entry.second.expired(); });
  look_again_at_ = std::max<std::size_t>(1024, 2 * shapes_.size());
}

bool IsAdmissionRejection(const std::string& reason) {
  return reason == "TopologyAffinityError" || reason == "UnexpectedAdmissionError" ||
         reason == "SMTAlignmentError" || reason == "EmptyPodSharedPoolError" ||
         reason.starts_with("OutOf");
}

const char* ToString(Phase phase) {
  switch (phase) {
    case Phase::kPending:
      return "Pending";
    case Phase::kRunning:
      return "Running";
    case Phase::kSucceeded:
      return "Succeeded";
    case Phase::kFailed:
      return "Failed";
  }
  return "";
}

}  // namespace scheduler::ledger
