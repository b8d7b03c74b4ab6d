#pragma once

#include "hwinfo/topology.h"

namespace hwinfo {

// Fills in what follows from the CPUs and NUMA nodes that were read: each CPU's node, the sockets,
// each node's kind, socket and nearest CPUs; and takes note of what cannot be: CPUs on two nodes or
// on none.
void Derive(Topology& topology);

}  // namespace hwinfo
