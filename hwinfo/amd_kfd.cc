#include "hwinfo/amd_kfd.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <string>
#include <utility>

#include "base/text.h"

namespace hwinfo {
namespace {

using base::ParseNumber;

constexpr char kPlatform[] = "sys/devices/platform";
constexpr char kKfdNodes[] = "sys/class/kfd/kfd/topology/nodes";
constexpr std::string_view kPartition = "amdgpu_xcp_";
constexpr std::int64_t kMaxBytes = 64 << 10;

// The value of "key value"; nothing if there is none.
std::optional<std::uint64_t> ValueOf(std::string_view text, std::string_view key) {
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    const std::size_t blank = line.find(' ');
    if (blank != std::string_view::npos && line.substr(0, blank) == key) {
      return ParseNumber<std::uint64_t>(line.substr(blank + 1));
    }
  }
  return std::nullopt;
}

std::map<int, PciAddress> ReadKfdNodes(const base::FileTree& root) {
  std::map<int, PciAddress> nodes;
  const absl::StatusOr<std::vector<std::string>> names = root.List(kKfdNodes);
  if (!names.ok()) return nodes;
  for (const std::string& name : *names) {
    const auto text = root.Read(fmt::format("{}/{}/properties", kKfdNodes, name), kMaxBytes);
    if (!text.ok()) continue;
    if (const auto node = ParseKfdNode(*text)) nodes.emplace(node->render_minor, node->address);
  }
  return nodes;
}

std::optional<int> RenderMinorOf(const base::FileTree& root, const std::string& partition) {
  const auto names = root.List(fmt::format("{}/{}/drm", kPlatform, partition));
  if (!names.ok()) return std::nullopt;
  constexpr std::string_view kRender = "renderD";
  for (const std::string& name : *names) {
    if (!name.starts_with(kRender)) continue;
    if (const auto minor = ParseNumber<int>(name.substr(kRender.size()))) return minor;
  }
  return std::nullopt;
}

// KFD adds the partition's number to the function, so the function itself may not exist.
PciDevice* FindGpu(std::vector<PciDevice>& devices, PciAddress address) {
  address.function = 0;
  const auto first = std::ranges::lower_bound(devices, address, {}, &PciDevice::address);
  for (auto device = first; device != devices.end(); ++device) {
    const PciAddress& found = device->address;
    if (found.domain != address.domain || found.bus != address.bus ||
        found.device != address.device) {
      break;
    }
    if (device->vendor == kAmd && device->kind == DeviceKind::kGpu) return &*device;
  }
  return nullptr;
}

}  // namespace

std::optional<KfdNode> ParseKfdNode(std::string_view properties) {
  const auto minor = ValueOf(properties, "drm_render_minor");
  const auto location = ValueOf(properties, "location_id");
  const std::uint64_t domain = ValueOf(properties, "domain").value_or(0);
  constexpr std::uint64_t kMaxMinor = 1 << 20;  // of Linux
  if (!minor || *minor == 0 || *minor >= kMaxMinor) return std::nullopt;
  if (!location || *location > 0xffff || domain > 0xffffffff) return std::nullopt;
  return KfdNode{.render_minor = static_cast<int>(*minor),
                 .address = {.domain = static_cast<std::uint32_t>(domain),
                             .bus = static_cast<std::uint8_t>(*location >> 8),
                             .device = static_cast<std::uint8_t>((*location >> 3) & 0x1f),
                             .function = static_cast<std::uint8_t>(*location & 0x7)}};
}

void AttachAmdPartitions(const base::FileTree& root, std::vector<PciDevice>& devices,
                         base::Diagnostics& diagnostics) {
  const absl::StatusOr<std::vector<std::string>> names = root.List(kPlatform);
  if (!names.ok()) return;
  std::vector<std::string> partitions;
  std::ranges::copy_if(*names, std::back_inserter(partitions),
                       [](const std::string& name) { return name.starts_with(kPartition); });
  if (partitions.empty()) return;

  const std::map<int, PciAddress> nodes = ReadKfdNodes(root);
  for (const std::string& partition : partitions) {
    const auto report = [&](std::string message) {
      diagnostics.push_back({"PartitionUnresolved", partition, std::move(message)});
    };
    const std::optional<int> minor = RenderMinorOf(root, partition);
    if (!minor) {
      report(fmt::format("{}/{} has no render node", kPlatform, partition));
      continue;
    }
    const auto node = nodes.find(*minor);
    if (node == nodes.end()) {
      report(fmt::format("no node below {} has the render minor {}", kKfdNodes, *minor));
      continue;
    }
    PciDevice* const gpu = FindGpu(devices, node->second);
    if (gpu == nullptr) {
      report(fmt::format("KFD places it at {}, where no AMD GPU is", ToString(node->second)));
      continue;
    }
    gpu->partitions.push_back(partition);
  }
}

}  // namespace hwinfo
