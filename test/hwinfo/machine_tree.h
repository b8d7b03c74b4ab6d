#pragma once

#include <string>
#include <string_view>

#include "hwinfo/topology.h"
#include "test/support/temp_tree.h"

namespace test {

inline constexpr char kCpuFolder[] = "sys/devices/system/cpu/";
inline constexpr char kNodeFolder[] = "sys/devices/system/node/";

// Puts one CPU into a tree, as sysfs shows it.
void PutCpu(TempTree& tree, int id, int socket, int core, const std::string& siblings);

// Puts one NUMA node into a tree; distances as in the file: "10 21".
void PutNode(TempTree& tree, int id, const std::string& cpus, long kibibytes,
             const std::string& distances);

// Two sockets, each a NUMA node with two cores of two threads: node 0 has the CPUs 0-1,4-5, node 1
// has 2-3,6-7; 64 GiB and 32 GiB.
void PutTwoSocketMachine(TempTree& tree);

// The first diagnostic with the code (and subject, if given); an empty one if there is none.
base::Diagnostic FindDiagnostic(const base::Diagnostics& diagnostics, std::string_view code,
                                std::string_view subject = {});

}  // namespace test
