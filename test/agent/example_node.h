#pragma once

#include "hwinfo/topology.h"
#include "placement/observation.h"

// A node made up for the picture: two sockets of 8 cores with 2 threads each, a GPU pair and a NIC
// under one PCIe switch per socket, a NIC of unknown locality, and five pods of all kinds.
namespace test {

hwinfo::Topology ExampleTopology();
placement::Observation ExampleObservation();

// `nodes` NUMA nodes of 4 CPUs and 8 GiB each, in a line, without devices.
hwinfo::Topology ManyNodes(int nodes);

// What is observed where no kubelet was asked.
placement::Observation HardwareOnly(const hwinfo::Topology& topology);

}  // namespace test
