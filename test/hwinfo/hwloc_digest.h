#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/cpu_set.h"

namespace test {

// A recorded digest of what hwloc says of a machine: one line for each package, NUMA node and PCI
// device.
struct HwlocDigest {
  struct Package {
    base::CpuSet cpus;
  };
  struct Node {
    std::string subtype;  // "" where the digest has "-"
    long mebibytes = 0;
    base::CpuSet cpus;  // for nodes without CPUs those that hwloc holds to be near
    std::string gpu;    // PCI address, "" if none
  };
  int cores = 0;
  int cpu_kinds = 1;
  base::CpuSet cpus;
  std::map<int, Package> packages;
  std::map<int, Node> nodes;
  std::map<std::string, base::NumaMask> pci;  // by address: the anchor's nodes
  std::map<int, std::map<int, int>> distances;
};

HwlocDigest ParseHwlocDigest(const std::string& text);

}  // namespace test
