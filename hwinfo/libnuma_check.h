#pragma once

#include "hwinfo/topology.h"

namespace hwinfo {

// Compares the topology of the live machine with libnuma, which knows no other: highest node,
// CPUs, memory and distances. Each difference becomes a diagnostic. Does nothing where a seccomp
// filter or the kernel refuses get_mempolicy, without which libnuma cannot be trusted.
void CheckAgainstLibnuma(Topology& topology);

}  // namespace hwinfo
