#pragma once

#include <string>

#include "kube/pod.h"

namespace scheduler::admission {

// The kubelet's later check of the node's sums (lifecycle/predicate.go): after the managers have
// said yes, a pod is refused with "OutOfcpu", "OutOfmemory", … if the effective requests of the
// admitted pods and its own together exceed the Node's allocatable.
class NodeSums {
 public:
  explicit NodeSums(kube::Resources allocatable) : allocatable_(std::move(allocatable)) {}

  // The kubelet's reason, "" if the pod fits. Resources are looked at in the kubelet's order: cpu,
  // memory, then the others by name. One that the node does not name at all is not this check's.
  std::string Check(const kube::Pod& pod) const;
  void Add(const kube::Pod& pod);
  void Remove(const kube::Pod& pod);

 private:
  kube::Resources allocatable_;
  kube::Resources requested_;
};

}  // namespace scheduler::admission
