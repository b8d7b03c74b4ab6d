#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/cpu_set.h"
#include "base/diagnostic.h"
#include "hwinfo/pci_address.h"

// What a machine is: plain values, comparable and copyable. All ids are the kernel's (never
// positions in a list): they may have holes, core ids repeat from socket to socket. Amounts of
// memory are bytes. An empty set or list means "looked, none"; "this machine does not say" is
// std::nullopt or -1.
namespace hwinfo {

enum class NumaNodeKind {
  kDram,        // CPUs and memory
  kCpuOnly,     // CPUs, no memory
  kMemoryOnly,  // memory, no CPUs: HBM, CXL, persistent memory
  kGpuMemory,   // the memory of a GPU (NVIDIA Grace, POWER9): no CPUs
  kEmpty,       // neither; a GPU's reserve for its partitions
};

struct HugePages {
  std::int64_t page_bytes = 0;
  std::int64_t total = 0;  // pages
  std::int64_t free = 0;   // pages; -1 if the source does not say (hwloc XML)
  bool operator==(const HugePages&) const = default;
};

struct NumaNode {
  int id = -1;  // N of /sys/devices/system/node/nodeN
  NumaNodeKind kind = NumaNodeKind::kDram;
  int socket = -1;    // physical package id of its nearest_cpus; -1 if they do not say or are
                      // on several
  base::CpuSet cpus;  // online CPUs, from sysfs; empty for memory-only nodes
  base::CpuSet nearest_cpus;  // = cpus; for nodes without CPUs the ones hwloc holds to be local
  std::optional<std::int64_t> memory_bytes;  // MemTotal of the node, huge pages included
  std::optional<std::int64_t> free_bytes;    // MemFree of the node
  std::vector<HugePages> huge_pages;         // ascending by page size
  std::map<int, int> distances;              // SLIT row by NUMA node id; may be asymmetric
  std::string memory_type;        // hwloc's subtype: "HBM", "NVM", "GPUMemory"; mostly ""
  std::optional<PciAddress> gpu;  // whose memory it is, for kGpuMemory and kEmpty
  bool operator==(const NumaNode&) const = default;
};

struct Cpu {
  int id = -1;            // N of /sys/devices/system/cpu/cpuN
  int socket = -1;        // physical package id
  int core = -1;          // core id: unique within its socket only
  int numa_node = -1;     // the NUMA node whose cpulist holds it; -1 if none does
  int l3 = -1;            // sysfs's id of its L3; where not all have one and for XML files, the
                          // lowest CPU id that shares it; -1 without an L3
  int kind = -1;          // rank of its core kind, 0 the least powerful; -1 if all are alike
  base::CpuSet siblings;  // online threads of its core, itself included
  bool operator==(const Cpu&) const = default;
};

struct Socket {
  int id = -1;  // physical package id
  base::CpuSet cpus;
  base::NumaMask numa_nodes;  // those whose CPUs are its own
  bool operator==(const Socket&) const = default;
};

enum class DeviceKind { kGpu, kAccelerator, kNic, kNvSwitch, kOther };

// Where a device's locality comes from, in the order of trust.
enum class LocalitySource {
  kUnknown,   // nobody says; never taken for node 0
  kNumaNode,  // sysfs numa_node of the function itself
  kBridge,    // sysfs numa_node of the nearest upstream bridge that has one
  kHwloc,     // hwloc's anchor, if it names exactly one NUMA node with CPUs
};

struct PciDevice {
  PciAddress address;
  DeviceKind kind = DeviceKind::kOther;
  std::uint16_t vendor = 0;
  std::uint16_t device = 0;
  std::uint32_t device_class = 0;  // 24 bits: class, subclass, interface
  std::string driver;              // "nvidia", "vfio-pci", "mlx5_core"; "" if none is bound
  std::string model;               // what the driver's procfs says; mostly ""

  std::optional<int> numa_node;  // settled locality: an online NUMA node; nullopt is unknown
  LocalitySource locality = LocalitySource::kUnknown;
  std::optional<int> sysfs_numa_node;  // the raw file, -1 included; nullopt if there is none
  base::NumaMask hwloc_numa_nodes;  // of hwloc's anchor, nodes with CPUs only; empty if it has none
  base::CpuSet local_cpus;          // local_cpulist

  std::vector<PciAddress> bridges;  // upstream, root first; two devices share a switch if they
                                    // share more than the root port
  std::optional<PciAddress> physical_function;  // set for virtual functions
  std::vector<PciAddress> virtual_functions;    // ascending
  std::optional<int> iommu_group;
  std::vector<std::string> names;  // of the kernel, sorted: "mlx5_0", "eth0", "card0", "renderD128"
  std::optional<std::string> uuid;      // NVIDIA: "GPU-…"
  std::optional<int> minor;             // NVIDIA: N of /dev/nvidiaN
  std::vector<std::string> partitions;  // AMD: "amdgpu_xcp_3", sorted
  bool operator==(const PciDevice&) const = default;
};

struct Topology {
  std::string source;           // "live", "root /x" or "xml /x": what was read
  std::string architecture;     // "x86_64", "aarch64"; "" if unknown
  std::string boot_id;          // /proc/sys/kernel/random/boot_id; "" if unknown
  bool numa_visible = true;     // false: the kernel shows no NUMA nodes, node 0 stands for the host
  std::vector<Socket> sockets;  // ascending by id
  std::vector<NumaNode> numa_nodes;  // ascending by id, never empty
  std::vector<Cpu> cpus;             // online, ascending by id, never empty
  base::CpuSet offline_cpus;         // present, not online
  base::CpuSet isolated_cpus;        // isolcpus; the kubelet may hand them out all the same
  std::vector<PciDevice> devices;    // GPUs, accelerators, NICs, NVSwitches; ascending by address
  base::Diagnostics diagnostics;     // sorted

  base::CpuSet OnlineCpus() const;
  base::NumaMask NumaNodeIds() const;
  // The NUMA nodes that these CPUs are on; CPUs on no node are left out.
  base::NumaMask NumaNodesOf(const base::CpuSet& cpu_set) const;
  const NumaNode* FindNumaNode(int id) const;                    // nullptr if there is none
  const PciDevice* FindDevice(const PciAddress& address) const;  // nullptr if there is none
  bool operator==(const Topology&) const = default;
};

}  // namespace hwinfo
