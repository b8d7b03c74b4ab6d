#pragma once

#include <rapidcheck.h>

#include <string>

#include "kube/pod.h"
#include "placement/node_placement.h"
#include "scheduler/admission/machine.h"

// Any small nodes and pods for property tests; to be called inside a property.
namespace scheduler::admission {

struct AnyNodeOptions {
  int most_numa_nodes = 6;
  bool pods_of_one_container = false;
};

// A node without pods, of any shape that a kubelet starts on: 1 to 6 NUMA nodes, their ids perhaps
// sparse, perhaps without CPUs or memory; sockets of several NUMA nodes or NUMA nodes of several
// sockets; any policy, scope and options; devices on none, one or several NUMA nodes, or on one
// that is not known.
placement::NodePlacement AnyNode(const AnyNodeOptions& options = {});

// The plugins' order of this node's devices, or none.
DeviceOrder AnyDeviceOrder(const placement::NodePlacement& node);

// A pod that may or may not fit the node.
kube::Pod AnyPod(const placement::NodePlacement& node, const std::string& uid,
                 const AnyNodeOptions& options = {});

// As rc::check, with this number of cases, or more if RC_PARAMS asks for more ("max_success=50000
// seed=1").
bool CheckCases(int cases, const rc::detail::Property& property);
template <class Testable>
bool CheckCases(int cases, Testable property) {
  return CheckCases(cases, rc::detail::toProperty(std::move(property)));
}

}  // namespace scheduler::admission
