#include "hwinfo/pci_devices.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/status_macros.h"
#include "base/text.h"
#include "hwinfo/amd_kfd.h"
#include "hwinfo/nvidia_procfs.h"
#include "hwinfo/sysfs_values.h"

namespace hwinfo {
namespace {

using base::ParseNumber;

constexpr char kDevices[] = "sys/bus/pci/devices";
constexpr std::uint16_t kIntel = 0x8086;

std::string_view LastPart(std::string_view path) { return path.substr(path.rfind('/') + 1); }

// Classes, as the first two bytes of the PCI class code.
constexpr std::uint32_t kEthernet = 0x0200;
constexpr std::uint32_t kInfiniBand = 0x0207;
constexpr std::uint32_t kFabric = 0x0208;  // Omni-Path
constexpr std::uint32_t kOtherNetwork = 0x0280;
constexpr std::uint32_t kVga = 0x0300;
constexpr std::uint32_t k3d = 0x0302;
constexpr std::uint32_t kOtherDisplay = 0x0380;  // AMD MI100 and MI200, Intel Flex and Max
constexpr std::uint32_t kOtherBridge = 0x0680;   // NVSwitch
constexpr std::uint32_t kCoprocessor = 0x0b40;
constexpr std::uint32_t kProcessingAccelerator = 0x1200;  // AMD MI300 and later, Gaudi
constexpr std::uint32_t kBridges = 0x06;

// Reads one machine's functions. Bridges are shared by many functions, so their NUMA nodes are
// kept.
class Reader {
 public:
  Reader(const base::FileTree& root, const base::NumaMask& online_nodes,
         base::Diagnostics& diagnostics)
      : root_(root), online_nodes_(online_nodes), diagnostics_(diagnostics) {}

  // Nothing if the function is none of ours, or has no class.
  std::optional<PciDevice> Read(const std::string& name, const PciAddress& address);

 private:
  void Report(std::string code, const PciAddress& address, std::string message) {
    diagnostics_.push_back({std::move(code), ToString(address), std::move(message)});
  }
  // A number as sysfs writes it, "0x10de".
  absl::StatusOr<std::uint32_t> ReadHex(const std::string& path) const;
  // 0, and a diagnostic, for a vendor or device id that the tree does not have.
  std::uint16_t IdOrReport(const PciAddress& address, const absl::StatusOr<std::uint32_t>& id);
  std::string ReadLinkedName(const std::string& path) const;
  std::optional<int> ReadNumaNode(const std::string& folder) const;
  base::CpuSet ReadLocalCpus(const std::string& folder, const PciAddress& address);
  std::vector<PciAddress> ReadBridges(const std::string& folder) const;
  std::vector<std::string> ReadNames(const std::string& folder,
                                     const std::vector<std::string>& entries) const;
  std::optional<int> NumaNodeOfBridge(const PciAddress& bridge);
  void ReadFunctions(const std::string& folder, const std::vector<std::string>& entries,
                     PciDevice& device) const;
  void SettleLocality(PciDevice& device);

  const base::FileTree& root_;
  const base::NumaMask& online_nodes_;
  base::Diagnostics& diagnostics_;
  std::map<PciAddress, std::optional<int>> bridge_nodes_;
};

absl::StatusOr<std::uint32_t> Reader::ReadHex(const std::string& path) const {
  ASSIGN_OR_RETURN(const std::string text, root_.ReadTrimmed(path));
  std::string_view digits = text;
  if (digits.starts_with("0x")) digits.remove_prefix(2);
  if (const auto value = ParseNumber<std::uint32_t>(digits, 16)) return *value;
  return absl::InvalidArgumentError(
      fmt::format("{} holds \"{}\", which is no number", root_.Describe(path), text.substr(0, 40)));
}

std::uint16_t Reader::IdOrReport(const PciAddress& address,
                                 const absl::StatusOr<std::uint32_t>& id) {
  if (id.ok() && *id <= 0xffff) return static_cast<std::uint16_t>(*id);
  Report("PciFunctionIncomplete", address,
         id.ok() ? fmt::format("the id {:x} has more than 16 bits", *id)
                 : std::string(id.status().message()));
  return 0;
}

std::string Reader::ReadLinkedName(const std::string& path) const {
  const absl::StatusOr<std::string> target = root_.ReadLink(path);
  return target.ok() ? std::string(LastPart(*target)) : std::string();
}

std::optional<int> Reader::ReadNumaNode(const std::string& folder) const {
  const absl::StatusOr<std::string> text = root_.ReadTrimmed(folder + "/numa_node");
  return text.ok() ? ParseNumber<int>(*text) : std::nullopt;
}

base::CpuSet Reader::ReadLocalCpus(const std::string& folder, const PciAddress& address) {
  const auto read = [&](const char* name, const auto& parse) -> absl::StatusOr<base::CpuSet> {
    ASSIGN_OR_RETURN(const std::string text, root_.ReadTrimmed(folder + name));
    return parse(text);
  };
  absl::StatusOr<base::CpuSet> cpus = read("/local_cpulist", base::CpuSet::Parse);
  if (absl::IsNotFound(cpus.status())) cpus = read("/local_cpus", ParseCpuMask);
  if (cpus.ok()) return *std::move(cpus);
  if (absl::IsNotFound(cpus.status())) return {};
  Report("PciFunctionIncomplete", address,
         fmt::format("its local CPUs: {}", std::string(cpus.status().message())));
  return {};
}

// The functions above this one, as its place in sys/devices names them. A recorded tree of plain
// folders does not say.
std::vector<PciAddress> Reader::ReadBridges(const std::string& folder) const {
  const absl::StatusOr<std::string> path = root_.RealPath(folder);
  std::vector<PciAddress> bridges;
  if (!path.ok() || !path->starts_with("sys/devices/")) return bridges;
  std::string_view rest = *path;
  for (std::size_t slash = rest.find('/'); slash != std::string_view::npos;
       slash = rest.find('/')) {
    if (const auto address = ParsePciAddress(rest.substr(0, slash))) bridges.push_back(*address);
    rest.remove_prefix(slash + 1);
  }
  return bridges;
}

std::vector<std::string> Reader::ReadNames(const std::string& folder,
                                           const std::vector<std::string>& entries) const {
  constexpr std::array<std::string_view, 4> kClasses = {"accel", "drm", "infiniband", "net"};
  std::vector<std::string> names;
  const auto add = [&](const std::string& path) {
    const absl::StatusOr<std::vector<std::string>> found = root_.List(path);
    if (found.ok()) names.insert(names.end(), found->begin(), found->end());
  };
  for (const std::string& entry : entries) {
    if (std::ranges::count(kClasses, entry) > 0) add(fmt::format("{}/{}", folder, entry));
    // A virtio card's interface is one level down, below its virtio device.
    if (entry.starts_with("virtio")) add(fmt::format("{}/{}/net", folder, entry));
  }
  std::ranges::sort(names);
  return names;
}

std::optional<int> Reader::NumaNodeOfBridge(const PciAddress& bridge) {
  const auto [entry, inserted] = bridge_nodes_.try_emplace(bridge);
  if (inserted) entry->second = ReadNumaNode(fmt::format("{}/{}", kDevices, ToString(bridge)));
  return entry->second;
}

void Reader::ReadFunctions(const std::string& folder, const std::vector<std::string>& entries,
                           PciDevice& device) const {
  for (const std::string& entry : entries) {
    const bool up = entry == "physfn";
    if (!up && !entry.starts_with("virtfn")) continue;
    const auto address = ParsePciAddress(ReadLinkedName(fmt::format("{}/{}", folder, entry)));
    if (!address) continue;
    if (up) device.physical_function = address;
    if (!up) device.virtual_functions.push_back(*address);
  }
}

void Reader::SettleLocality(PciDevice& device) {
  const std::optional<int> own = device.sysfs_numa_node;
  if (own && online_nodes_.Contains(*own)) {
    device.numa_node = own;
    device.locality = LocalitySource::kNumaNode;
    return;
  }
  for (auto bridge = device.bridges.rbegin(); bridge != device.bridges.rend(); ++bridge) {
    const std::optional<int> node = NumaNodeOfBridge(*bridge);
    if (!node || !online_nodes_.Contains(*node)) continue;
    device.numa_node = node;
    device.locality = LocalitySource::kBridge;
    break;
  }
  // -1 is the kernel's "not known". Any other number is the firmware's mistake: some give the
  // socket's number, some a node that was never there.
  if (!own || *own == -1) return;
  const std::string instead =
      device.numa_node ? fmt::format("its bridge's, {}, is taken instead", *device.numa_node)
                       : "its locality is unknown";
  Report("NumaNodeNotOnline", device.address,
         fmt::format("sysfs puts it on NUMA node {}, but online are {}; {}", *own,
                     online_nodes_.ToString(), instead));
}

std::optional<PciDevice> Reader::Read(const std::string& name, const PciAddress& address) {
  const std::string folder = fmt::format("{}/{}", kDevices, name);
  const absl::StatusOr<std::uint32_t> device_class = ReadHex(folder + "/class");
  if (!device_class.ok()) {
    Report("PciFunctionSkipped", address, std::string(device_class.status().message()));
    return std::nullopt;
  }
  absl::StatusOr<std::uint32_t> vendor = ReadHex(folder + "/vendor");
  if (!vendor.ok() && IsHeldByNvidiaDriver(root_, address)) vendor = kNvidia;
  const auto kind = KindOf(*device_class, vendor.value_or(0), address);
  const std::string driver = ReadLinkedName(folder + "/driver");
  const bool passed_through = driver == "vfio-pci" && (*device_class >> 16) != kBridges;
  if (!kind && !passed_through) return std::nullopt;

  PciDevice device;
  device.address = address;
  device.kind = kind.value_or(DeviceKind::kOther);
  device.vendor = IdOrReport(address, vendor);
  device.device = IdOrReport(address, ReadHex(folder + "/device"));
  device.device_class = *device_class;
  device.driver = driver;
  device.sysfs_numa_node = ReadNumaNode(folder);
  device.local_cpus = ReadLocalCpus(folder, address);
  device.bridges = ReadBridges(folder);
  device.iommu_group = ParseNumber<int>(ReadLinkedName(folder + "/iommu_group"));
  if (const auto entries = root_.List(folder); entries.ok()) {
    ReadFunctions(folder, *entries, device);
    device.names = ReadNames(folder, *entries);
  } else {
    Report("PciFunctionIncomplete", address,
           fmt::format("its names and virtual functions: {}",
                       std::string(entries.status().message())));
  }
  SettleLocality(device);
  return device;
}

// Virtual functions know their physical function also where it does not list them.
void LinkVirtualFunctions(std::vector<PciDevice>& devices) {
  for (const PciDevice& device : devices) {
    if (!device.physical_function) continue;
    const auto parent =
        std::ranges::lower_bound(devices, *device.physical_function, {}, &PciDevice::address);
    if (parent == devices.end() || parent->address != *device.physical_function) continue;
    parent->virtual_functions.push_back(device.address);
  }
  for (PciDevice& device : devices) {
    std::vector<PciAddress>& functions = device.virtual_functions;
    std::ranges::sort(functions);
    functions.erase(std::unique(functions.begin(), functions.end()), functions.end());
  }
}

}  // namespace

std::optional<DeviceKind> KindOf(std::uint32_t device_class, std::uint32_t vendor,
                                 const PciAddress& address) {
  switch (device_class >> 8) {
    case k3d:
    case kOtherDisplay:
      return DeviceKind::kGpu;
    case kVga: {
      const bool discrete_intel = vendor == kIntel && (address.domain != 0 || address.bus != 0);
      if (vendor != kNvidia && vendor != kAmd && !discrete_intel) return std::nullopt;
      return DeviceKind::kGpu;
    }
    case kProcessingAccelerator:
      return vendor == kAmd ? DeviceKind::kGpu : DeviceKind::kAccelerator;
    case kCoprocessor:
      return DeviceKind::kAccelerator;
    case kEthernet:
    case kInfiniBand:
    case kFabric:
    case kOtherNetwork:
      return DeviceKind::kNic;
    case kOtherBridge:
      if (vendor != kNvidia) return std::nullopt;
      return DeviceKind::kNvSwitch;
    default:
      return std::nullopt;
  }
}

std::vector<PciDevice> ReadPciDevices(const base::FileTree& root,
                                      const base::NumaMask& online_nodes,
                                      base::Diagnostics& diagnostics) {
  std::vector<PciDevice> devices;
  const absl::StatusOr<std::vector<std::string>> names = root.List(kDevices);
  if (!names.ok()) {
    diagnostics.push_back({"PciUnreadable", "", std::string(names.status().message())});
    return devices;
  }
  Reader reader(root, online_nodes, diagnostics);
  for (const std::string& name : *names) {
    const auto address = ParsePciAddress(name);
    if (!address) {
      diagnostics.push_back({"PciUnreadable", name.substr(0, 40),
                             fmt::format("{} holds a name that is no PCI address", kDevices)});
      continue;
    }
    if (auto device = reader.Read(name, *address)) devices.push_back(*std::move(device));
  }
  std::ranges::sort(devices, {}, &PciDevice::address);
  LinkVirtualFunctions(devices);
  AttachNvidiaFacts(root, devices, diagnostics);
  AttachAmdPartitions(root, devices, diagnostics);
  return devices;
}

}  // namespace hwinfo
