#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "kube/pod.h"
#include "scheduler/admission/request.h"

namespace scheduler::ledger {

// What a pod asks for, without who it is. A hundred thousand pods are of a few shapes.
struct Shape {
  kube::Pod pod;  // without UID, names and node
  admission::Request request;
};
using ShapePtr = std::shared_ptr<const Shape>;

// Lets pods that ask for the same share one shape. Not thread-safe.
class Shapes {
 public:
  ShapePtr Share(const kube::Pod& pod);

 private:
  struct Less {
    bool operator()(const kube::Pod& a, const kube::Pod& b) const;
  };
  void ForgetUnused();

  std::map<kube::Pod, std::weak_ptr<const Shape>, Less> shapes_;
  std::size_t look_again_at_ = 1024;  // so many shapes are no reason to look for unused ones
};

enum class Phase { kPending, kRunning, kSucceeded, kFailed };

// What the API server says of a pod.
struct PodFacts {
  kube::Pod pod;  // node_name is "" while it is not bound
  Phase phase = Phase::kPending;
  std::string reason;  // status.reason: "TopologyAffinityError"
  bool terminating = false;
  std::optional<base::Time> created;
  std::optional<base::Time> started;  // status.startTime: the kubelet has seen it

  bool terminal() const { return phase == Phase::kSucceeded || phase == Phase::kFailed; }
  bool operator==(const PodFacts&) const = default;
};

// Whether the kubelet refuses a pod with this reason before it runs: those of its managers and of
// its check of the node's sums.
bool IsAdmissionRejection(const std::string& reason);

// "Pending", "Running", "Succeeded", "Failed".
const char* ToString(Phase phase);

}  // namespace scheduler::ledger
