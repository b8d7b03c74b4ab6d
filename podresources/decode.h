#pragma once

#include "absl/status/status.h"
#include "base/diagnostic.h"
#include "podresources/assignments.h"

// The kubelet's messages (proto/podresources.proto), whose headers only .cc files include.
namespace v1 {
class AllocatableResourcesResponse;
class ListPodResourcesResponse;
class PodResources;
}  // namespace v1

namespace podresources {

// A message of 16 MiB can hold eight million pods without a name, of 3 GB and half a minute.
// OutOfRange if it has more entries than any node: pods, containers, devices, memory, claims.
absl::Status CheckSize(const v1::ListPodResourcesResponse& list,
                       const v1::AllocatableResourcesResponse* allocatable);

// The kubelet's replies as plain values. Pure and total: any message has a result, the order of its
// entries does not matter (that of containers apart), and repeated entries count once. What could
// not be taken as it stands is a diagnostic:
//   AllocatableUnavailable  `allocatable` is nullptr
//   CpuIdOutOfRange         CPU ids outside 0..base::kMaxId, left out
//   DeviceNodeUnknown       devices that name NUMA nodes that cannot be: Device::unknown_node
//   MemoryNodeUnknown       the same of memory blocks; the node is left out
//   MemoryClamped           sizes beyond int64, taken as its maximum
//   PodListedTwice, ContainerListedTwice, HeldTwice, SharedPoolListed   see settle.h
// Memory entries of one container with equal type and nodes are added up; memory without a type is
// "memory". A claim whose devices the kubelet does not tell is kept, with an empty driver.
Assignments Decode(const v1::ListPodResourcesResponse& list,
                   const v1::AllocatableResourcesResponse* allocatable);

Pod DecodePod(const v1::PodResources& pod, base::Diagnostics& diagnostics);

}  // namespace podresources
