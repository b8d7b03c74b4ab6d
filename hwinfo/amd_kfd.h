#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/diagnostic.h"
#include "base/file_tree.h"
#include "hwinfo/topology.h"

namespace hwinfo {

inline constexpr std::uint16_t kAmd = 0x1002;

// A node of the topology of AMD's compute driver (KFD) that has a render node: a GPU, or one
// partition of one. The first partition of a GPU shares the GPU's own render node, the others have
// a platform device of their own, "amdgpu_xcp_N", and no PCI function.
struct KfdNode {
  int render_minor = -1;  // N of /dev/dri/renderDN
  PciAddress address;     // its function is the partition's number where the GPU is partitioned
  bool operator==(const KfdNode&) const = default;
};

// From a node's properties file; nothing if it is a CPU, or the file is damaged.
std::optional<KfdNode> ParseKfdNode(std::string_view properties);

// Adds the names of AMD's partitions to the GPUs that they are parts of. `devices` are sorted by
// address.
void AttachAmdPartitions(const base::FileTree& root, std::vector<PciDevice>& devices,
                         base::Diagnostics& diagnostics);

}  // namespace hwinfo
