#pragma once

#include <vector>

#include "base/diagnostic.h"
#include "podresources/assignments.h"

namespace podresources {

// Same name twice in a pod: one container that holds both's, at the place of the first.
void MergeContainers(Pod& pod, base::Diagnostics& diagnostics);

// Sorts pods, and makes those of one (namespace, name) one pod that holds everything listed under
// it: nothing that is held may look free. PodListedTwice says so.
void MergePods(std::vector<Pod>& pods, base::Diagnostics& diagnostics);

// Kubelets up to 1.20 list the whole shared pool as the CPUs of each container that has none of its
// own; later ones list nothing for it (kubernetes#100211). The pool is recognised, its CPUs are
// taken out of the containers, and SharedPoolListed says so. A set of CPUs that at least two pods
// list is the pool,
//   - if the kubelet tells its allocatable CPUs: if it has CPUs that are not among them. The pool
//     always has the reserved CPUs, which are never exclusive and never allocatable. (Two pods with
//     all allocatable CPUs are two that had the node for themselves, one after the other.)
//   - if it does not: if at least three containers list it.
// Every other set stays as listed.
void TakeOutSharedPool(Assignments& assignments);

// Kubelets before 1.34 go on listing pods that have ended, with what others hold by now
// (kubernetes#132020), and nothing here tells which pod that is. Both are kept as listed, and a
// HeldTwice for each further pod names it and the first. Replicas of a shared GPU ("…::0", "…::1")
// are different ids and no conflict.
void FindHeldTwice(Assignments& assignments);

}  // namespace podresources
