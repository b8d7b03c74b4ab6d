#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostic.h"
#include "base/file_tree.h"
#include "hwinfo/topology.h"

namespace hwinfo {

inline constexpr std::uint16_t kNvidia = 0x10de;

// What NVIDIA's driver says of one GPU in proc/driver/nvidia/gpus/<address>/information.
struct NvidiaInformation {
  std::string model;
  std::optional<std::string> uuid;  // "GPU-…"; the driver shows question marks until first use
  std::optional<int> minor;         // N of /dev/nvidiaN
};
NvidiaInformation ParseNvidiaInformation(std::string_view text);

bool IsHeldByNvidiaDriver(const base::FileTree& root, const PciAddress& address);

// Adds model, UUID and minor to the GPUs that NVIDIA's driver holds. `devices` are sorted by
// address. These files are the same in every container, unless NVIDIA's container toolkit mounts
// over them.
void AttachNvidiaFacts(const base::FileTree& root, std::vector<PciDevice>& devices,
                       base::Diagnostics& diagnostics);

// The NUMA nodes that are a GPU's memory (Grace, POWER9), from numa_status: node to GPU. This is
// not where the GPU is attached. Empty where no GPU's memory is a NUMA node.
std::map<int, PciAddress> ReadNvidiaMemoryNodes(const base::FileTree& root);

}  // namespace hwinfo
