#include "hwinfo/nvidia_procfs.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "base/text.h"

namespace hwinfo {
namespace {

using base::ParseNumber;
using base::Trim;

constexpr char kGpus[] = "proc/driver/nvidia/gpus";
constexpr std::int64_t kMaxBytes = 64 << 10;

// The value of "Key:   value", the form of all of the driver's files; "" if there is none.
std::string_view ValueOf(std::string_view text, std::string_view key) {
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    const std::size_t colon = line.find(':');
    if (colon != std::string_view::npos && Trim(line.substr(0, colon)) == key) {
      return Trim(line.substr(colon + 1));
    }
  }
  return {};
}

void Report(base::Diagnostics& diagnostics, std::string code, const PciDevice& device,
            std::string message) {
  diagnostics.push_back({std::move(code), ToString(device.address), std::move(message)});
}

void AttachInformation(const base::FileTree& root, PciDevice& device,
                       base::Diagnostics& diagnostics) {
  const std::string path = fmt::format("{}/{}/information", kGpus, ToString(device.address));
  const absl::StatusOr<std::string> text = root.Read(path, kMaxBytes);
  if (!text.ok()) {
    // Without NVIDIA's driver (vfio-pci, nouveau, none) there is nothing to find.
    if (absl::IsNotFound(text.status()) && device.driver != "nvidia") return;
    Report(diagnostics, "NvidiaInformationMissing", device,
           fmt::format("its UUID and minor are unknown: {}", std::string(text.status().message())));
    return;
  }
  NvidiaInformation information = ParseNvidiaInformation(*text);
  device.model = std::move(information.model);
  device.uuid = std::move(information.uuid);
  device.minor = information.minor;
  if (!device.uuid) {
    Report(diagnostics, "NvidiaUuidUnknown", device,
           "the driver does not tell its UUID before the GPU's first use: ids of it cannot be "
           "resolved yet");
  }
}

}  // namespace

NvidiaInformation ParseNvidiaInformation(std::string_view text) {
  NvidiaInformation information;
  information.model = ValueOf(text, "Model").substr(0, 256);
  const std::string_view uuid = ValueOf(text, "GPU UUID");
  if (!uuid.empty() && uuid.find('?') == std::string_view::npos) {
    information.uuid = std::string(uuid.substr(0, 256));
  }
  information.minor = ParseNumber<int>(ValueOf(text, "Device Minor"));
  if (information.minor && *information.minor < 0) information.minor.reset();
  return information;
}

bool IsHeldByNvidiaDriver(const base::FileTree& root, const PciAddress& address) {
  return root.Exists(fmt::format("{}/{}", kGpus, ToString(address)));
}

void AttachNvidiaFacts(const base::FileTree& root, std::vector<PciDevice>& devices,
                       base::Diagnostics& diagnostics) {
  for (PciDevice& device : devices) {
    if (device.kind != DeviceKind::kGpu || device.vendor != kNvidia) continue;
    AttachInformation(root, device, diagnostics);
  }
}

std::map<int, PciAddress> ReadNvidiaMemoryNodes(const base::FileTree& root) {
  std::map<int, PciAddress> nodes;
  const absl::StatusOr<std::vector<std::string>> names = root.List(kGpus);
  if (!names.ok()) return nodes;
  for (const std::string& name : *names) {
    const auto address = ParsePciAddress(name);
    const absl::StatusOr<std::string> text =
        root.Read(fmt::format("{}/{}/numa_status", kGpus, name), kMaxBytes);
    if (!address || !text.ok()) continue;
    const auto node = ParseNumber<int>(ValueOf(*text, "Node"));
    if (node && base::NumaMask::Fits(*node)) nodes.emplace(*node, *address);
  }
  return nodes;
}

}  // namespace hwinfo
