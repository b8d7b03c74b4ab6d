#pragma once

#include <map>
#include <string>
#include <utility>

#include "kube/pod.h"

namespace scheduler::admission {

// The kubelet's later check of the node's sums (1.37, lifecycle/predicate.go, and fitsRequest of
// the scheduler's noderesources, which it calls): after the managers have said yes, a pod is
// refused with "OutOfcpu", "OutOfmemory", … if the effective requests of the admitted pods and its
// own together exceed the Node's allocatable. Requests only: limits do not count.
class NodeSums {
 public:
  explicit NodeSums(kube::Resources allocatable) : allocatable_(std::move(allocatable)) {}

  // The kubelet's reason, "" if the pod fits. The number of pods is looked at first, then cpu,
  // memory, ephemeral-storage, then the others by name (the kubelet takes those in any order). What
  // the node does not name is none of it, with two exceptions: an extended resource
  // ("example.com/gpu") that it does not name is not this check's, and without "pods" the number of
  // pods is not looked at. Unprefixed resources that Kubernetes does not know are ignored.
  std::string Check(const kube::Pod& pod) const;
  // Pods are told apart by UID; one that is added again is counted as it is now.
  void Add(const kube::Pod& pod);
  void Remove(const kube::Pod& pod);

 private:
  void Recount();

  kube::Resources allocatable_;
  std::map<std::string, kube::Resources> pods_;  // what each takes, by UID
  // Their sum. Never subtracted from: a sum that met the end of its type could not be taken back.
  kube::Resources requested_;
};

}  // namespace scheduler::admission
