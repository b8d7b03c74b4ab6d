#include "hwinfo/device_id.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "base/file_tree.h"
#include "base/text.h"
#include "hwinfo/mig.h"
#include "hwinfo/nvidia_procfs.h"

namespace hwinfo {
namespace {

using base::ParseNumber;

// What a grammar needs to answer.
struct Machine {
  const Topology& topology;
  const base::FileTree* root;
};
// An answer, or nothing: this is no id of the grammar's form.
using Answer = std::optional<ResolvedDevice>;

ResolvedDevice Unresolved(std::string reason) {
  ResolvedDevice device;
  device.reason = std::move(reason);
  return device;
}

ResolvedDevice Resolved(const PciAddress& address) {
  ResolvedDevice device;
  device.address = address;
  return device;
}

// Ids come from plugins and may be of any length.
std::string Shown(std::string_view id) {
  constexpr std::size_t kMost = 80;
  return id.size() <= kMost ? std::string(id) : std::string(id.substr(0, kMost)) + "…";
}

// A number of digits alone, without a sign.
std::optional<int> ParseDigits(std::string_view text) {
  return text.starts_with('-') ? std::nullopt : ParseNumber<int>(text);
}

// The number after `prefix`, if that is all there is: "nvidia3".
std::optional<int> DigitsAfter(std::string_view text, std::string_view prefix) {
  return text.starts_with(prefix) ? ParseDigits(text.substr(prefix.size())) : std::nullopt;
}

// Splits "ID::3", the form that NVIDIA's plugin gives to the shares of a device.
std::string_view TakeReplica(std::string_view id, std::optional<int>& replica) {
  const std::size_t colons = id.find("::");
  if (colons == std::string_view::npos) return id;
  replica = ParseDigits(id.substr(colons + 2));
  return id.substr(0, colons);
}

const PciDevice* FindByUuid(const Topology& topology, std::string_view uuid) {
  const auto found = std::ranges::find_if(topology.devices, [&](const PciDevice& device) {
    return device.uuid && *device.uuid == uuid;
  });
  return found == topology.devices.end() ? nullptr : &*found;
}

ResolvedDevice ByUuid(const Topology& topology, std::string_view uuid) {
  if (const PciDevice* const gpu = FindByUuid(topology, uuid)) return Resolved(gpu->address);
  const auto silent = std::ranges::count_if(topology.devices, [](const PciDevice& device) {
    return device.kind == DeviceKind::kGpu && device.vendor == kNvidia && !device.uuid;
  });
  std::string reason = fmt::format("no GPU of this machine has the UUID {}", Shown(uuid));
  if (silent > 0) reason += fmt::format("; {} NVIDIA GPUs do not tell theirs", silent);
  return Unresolved(std::move(reason));
}

ResolvedDevice ByMinor(const Topology& topology, int minor) {
  for (const PciDevice& device : topology.devices) {
    if (device.minor == minor && device.vendor == kNvidia) return Resolved(device.address);
  }
  return Unresolved(fmt::format("no NVIDIA GPU of this machine is known to have minor {}", minor));
}

ResolvedDevice ByAddress(const Machine& machine, const PciAddress& address) {
  const bool known =
      machine.topology.FindDevice(address) != nullptr ||
      (machine.root != nullptr && machine.root->Exists("sys/bus/pci/devices/" + ToString(address)));
  if (known) return Resolved(address);
  return Unresolved(fmt::format("this machine has no PCI function {}", ToString(address)));
}

// "0000:3b:00.0", "00000000:3B:00.0": NVIDIA's plugin for virtual machines, AMD, SR-IOV.
Answer PciAddressId(const Machine& machine, std::string_view id) {
  const auto address = ParsePciAddress(id);
  if (!address) return std::nullopt;
  return ByAddress(machine, *address);
}

// "GPU-<uuid>", "GPU-<uuid>::2" (shared by time or by MPS), "GPU-<uuid>-2" (HAMi).
Answer NvidiaUuid(const Machine& machine, std::string_view id) {
  constexpr std::size_t kUuidLength = 4 + 36;
  if (!id.starts_with("GPU-")) return std::nullopt;
  std::optional<int> replica;
  std::string_view uuid = TakeReplica(id, replica);
  if (uuid.size() > kUuidLength) {
    if (const auto share = DigitsAfter(uuid.substr(kUuidLength), "-")) {
      replica = share;
      uuid = uuid.substr(0, kUuidLength);
    }
  }
  ResolvedDevice device = ByUuid(machine.topology, uuid);
  device.replica = replica;
  return device;
}

// "MIG-<uuid>" has no trace in sysfs or procfs; the older "MIG-GPU-<uuid>/<instance>/<part>" names
// its GPU.
Answer MigUuid(const Machine& machine, std::string_view id) {
  constexpr std::string_view kOld = "MIG-GPU-";
  if (!id.starts_with("MIG-")) return std::nullopt;
  std::optional<int> replica;
  const std::string_view partition = TakeReplica(id, replica);
  ResolvedDevice device;
  if (partition.starts_with(kOld)) {
    const std::string_view uuid = partition.substr(4, partition.find('/') - 4);
    device = ByUuid(machine.topology, uuid);
  } else {
    const absl::StatusOr<PciAddress> gpu = FindOnlyMigGpu(machine.topology, machine.root);
    device = gpu.ok() ? Resolved(*gpu) : Unresolved(std::string(gpu.status().message()));
  }
  device.replica = replica;
  device.partition = std::string(partition);
  return device;
}

// GKE's "nvidia0", "nvidia0/gi3", "nvidia0/vgpu1", "nvidia0/gi3/vgpu1": the number is the minor.
Answer GkeName(const Machine& machine, std::string_view id) {
  const auto take = [&id] {
    const std::string_view part = id.substr(0, id.find('/'));
    id.remove_prefix(std::min(id.size(), part.size() + 1));
    return part;
  };
  if (id.ends_with('/')) return std::nullopt;
  const auto minor = DigitsAfter(take(), "nvidia");
  if (!minor) return std::nullopt;
  std::optional<int> replica;
  std::optional<std::string> partition;
  std::string_view part = take();
  if (DigitsAfter(part, "gi")) {
    partition = std::string(part);
    part = take();
  }
  if (!part.empty()) {
    replica = DigitsAfter(part, "vgpu");
    if (!replica) return std::nullopt;
  }
  if (!id.empty()) return std::nullopt;
  ResolvedDevice device = ByMinor(machine.topology, *minor);
  device.replica = replica;
  device.partition = std::move(partition);
  return device;
}

ResolvedDevice ByPartition(const Topology& topology, std::string_view name) {
  for (const PciDevice& device : topology.devices) {
    if (std::ranges::find(device.partitions, name) == device.partitions.end()) continue;
    ResolvedDevice resolved = Resolved(device.address);
    resolved.partition = std::string(name);
    return resolved;
  }
  ResolvedDevice unresolved = Unresolved(
      fmt::format("no AMD GPU of this machine is known to have the partition {}", Shown(name)));
  unresolved.partition = std::string(name);
  return unresolved;
}

// "amdgpu_xcp_30".
Answer AmdPartition(const Machine& machine, std::string_view id) {
  if (!DigitsAfter(id, "amdgpu_xcp_")) return std::nullopt;
  return ByPartition(machine.topology, id);
}

// The function that a name in sys/class/drm belongs to, for those that the inventory leaves out
// (graphics inside the processor), or AMD's partition.
ResolvedDevice ByDrmName(const Machine& machine, const std::string& name) {
  for (const PciDevice& device : machine.topology.devices) {
    if (std::ranges::find(device.names, name) != device.names.end()) {
      return Resolved(device.address);
    }
  }
  if (machine.root == nullptr) {
    return Unresolved(fmt::format("no device is known to be called {}", name));
  }
  const auto path = machine.root->RealPath(fmt::format("sys/class/drm/{}/device", name));
  if (!path.ok()) return Unresolved(std::string(path.status().message()));
  const std::string_view last = std::string_view(*path).substr(path->rfind('/') + 1);
  if (const auto address = ParsePciAddress(last)) return ByAddress(machine, *address);
  if (DigitsAfter(last, "amdgpu_xcp_")) return ByPartition(machine.topology, last);
  return Unresolved(fmt::format("{} belongs to {}, which is no PCI function", name, *path));
}

// Intel's "card0-1": a card of the kernel's and the number of the share.
Answer IntelCard(const Machine& machine, std::string_view id) {
  const std::size_t dash = id.find('-');
  if (dash == std::string_view::npos) return std::nullopt;
  const auto share = ParseDigits(id.substr(dash + 1));
  if (!share || !DigitsAfter(id.substr(0, dash), "card")) return std::nullopt;
  ResolvedDevice device = ByDrmName(machine, std::string(id.substr(0, dash)));
  device.replica = share;
  return device;
}

// The last PCI function in a path of sysfs.
std::optional<PciAddress> LastAddressIn(std::string_view path) {
  while (true) {
    const std::size_t slash = path.rfind('/');
    const bool last = slash == std::string_view::npos;
    if (const auto address = ParsePciAddress(last ? path : path.substr(slash + 1))) return address;
    if (last) return std::nullopt;
    path = path.substr(0, slash);
  }
}

ResolvedDevice ByAuxiliaryName(const base::FileTree* root, const std::string& name) {
  if (root == nullptr) return Unresolved("auxiliary devices are known to sysfs alone");
  const auto path = root->RealPath("sys/bus/auxiliary/devices/" + name);
  if (!path.ok()) return Unresolved(std::string(path.status().message()));
  if (const auto address = LastAddressIn(*path)) return Resolved(*address);
  return Unresolved(fmt::format("{} is below no PCI function", *path));
}

// "mlx5_core.sf.4", "mlx5_core.eth.1": a part of a NIC on the kernel's auxiliary bus.
Answer AuxiliaryDevice(const Machine& machine, std::string_view id) {
  const std::size_t first = id.find('.');
  const std::size_t last = id.rfind('.');
  if (first == std::string_view::npos || first == 0 || first == last) return std::nullopt;
  if (!ParseDigits(id.substr(last + 1)) || id.find('/') != std::string_view::npos) {
    return std::nullopt;
  }
  ResolvedDevice device = ByAuxiliaryName(machine.root, std::string(id));
  device.partition = std::string(id);
  return device;
}

// Names that stand for no single PCI function.
Answer NamesWithoutFunction(const Machine&, std::string_view id) {
  std::optional<int> replica;
  const std::string_view name = TakeReplica(id, replica);
  ResolvedDevice device;
  device.replica = replica;
  if (name == "tegra") {
    device.reason = "the GPU of a Tegra is part of the chip and no PCI function";
  } else if (name == "all") {
    device.reason = "\"all\" stands for every device of the plugin, not for one";
  } else {
    return std::nullopt;
  }
  return device;
}

// NVIDIA's DRA driver: "gpu-<minor>", "gpu-<minor>-mig-<profile>-<id>-<place>", "gpu-vfio-<n>".
ResolvedDevice NvidiaDra(const Machine& machine, std::string_view name) {
  constexpr std::string_view kGpu = "gpu-";
  if (name.starts_with("gpu-vfio-")) {
    return Unresolved("the driver numbers its passed-through GPUs by a list of its own");
  }
  if (!name.starts_with(kGpu)) {
    return Unresolved(fmt::format("\"{}\" is no device name of gpu.nvidia.com", Shown(name)));
  }
  const std::string_view rest = name.substr(kGpu.size());
  const std::size_t dash = rest.find('-');
  const std::string_view digits = rest.substr(0, dash);
  const auto minor = ParseDigits(digits);
  const std::string_view partition = rest.substr(std::min(rest.size(), digits.size() + 1));
  if (!minor || (dash != std::string_view::npos && !partition.starts_with("mig-"))) {
    return Unresolved(fmt::format("\"{}\" is no device name of gpu.nvidia.com", Shown(name)));
  }
  ResolvedDevice device = ByMinor(machine.topology, *minor);
  if (!partition.empty()) device.partition = std::string(partition);
  return device;
}

// AMD's: "gpu-<card>-<render minor>". The card's number may have changed since; the render node is
// what the driver opens.
ResolvedDevice AmdDra(const Machine& machine, std::string_view name) {
  constexpr std::string_view kGpu = "gpu-";
  const std::size_t dash = name.rfind('-');
  if (name.starts_with(kGpu) && dash > kGpu.size()) {
    const auto card = ParseDigits(name.substr(kGpu.size(), dash - kGpu.size()));
    const auto render = ParseDigits(name.substr(dash + 1));
    if (card && render) return ByDrmName(machine, fmt::format("renderD{}", *render));
  }
  return Unresolved(fmt::format("\"{}\" is no device name of gpu.amd.com", Shown(name)));
}

// Intel's: "0000-03-00-0-0x56c0", an address with dashes and the PCI device id.
ResolvedDevice IntelDra(const Machine& machine, std::string_view name) {
  const std::size_t dash = name.rfind("-0x");
  std::string text(name.substr(0, dash));
  const std::size_t function = text.rfind('-');
  if (function != std::string::npos) text[function] = '.';
  std::ranges::replace(text, '-', ':');
  const auto address = ParsePciAddress(text);
  const auto id = dash == std::string_view::npos
                      ? std::nullopt
                      : ParseNumber<std::uint16_t>(name.substr(dash + 3), 16);
  if (!address || !id) {
    return Unresolved(fmt::format("\"{}\" is no device name of gpu.intel.com", Shown(name)));
  }
  const PciDevice* const device = machine.topology.FindDevice(*address);
  if (device != nullptr && device->device != *id) {
    return Unresolved(fmt::format("at {} is device {:04x} now, not {:04x}", ToString(*address),
                                  device->device, *id));
  }
  return ByAddress(machine, *address);
}

ResolvedDevice ByDraName(const Machine& machine, const std::string& driver,
                         const std::string& device) {
  if (driver == "gpu.nvidia.com") return NvidiaDra(machine, device);
  if (driver == "gpu.amd.com") return AmdDra(machine, device);
  if (driver == "gpu.intel.com") return IntelDra(machine, device);
  return Unresolved(fmt::format("device names of the driver {} are not known", Shown(driver)));
}

// Nothing if they do not tell.
Answer ByAttributes(const Machine& machine, const DraAttributes& attributes) {
  if (attributes.address) return ByAddress(machine, *attributes.address);
  if (!attributes.gpu_uuid.empty()) return ByUuid(machine.topology, attributes.gpu_uuid);
  return std::nullopt;
}

}  // namespace

ResolvedDevice ResolveDeviceId(const Topology& topology, const base::FileTree* root,
                               const std::string& resource, const std::string& id) {
  using Grammar = Answer (*)(const Machine&, std::string_view);
  constexpr std::array<Grammar, 8> kGrammars = {PciAddressId,    NvidiaUuid,          MigUuid,
                                                GkeName,         AmdPartition,        IntelCard,
                                                AuxiliaryDevice, NamesWithoutFunction};
  const Machine machine = {topology, root};
  for (const Grammar grammar : kGrammars) {
    if (Answer answer = grammar(machine, id)) return *std::move(answer);
  }
  return Unresolved(fmt::format("\"{}\" of {} has none of the forms that name hardware", Shown(id),
                                Shown(resource)));
}

ResolvedDevice ResolveDraDevice(const Topology& topology, const base::FileTree* root,
                                const std::string& driver, const std::string& device,
                                const DraAttributes& attributes) {
  const Machine machine = {topology, root};
  ResolvedDevice by_name = ByDraName(machine, driver, device);
  const std::optional<ResolvedDevice> published = ByAttributes(machine, attributes);
  if (!published || (!published->address && by_name.address)) return by_name;
  ResolvedDevice resolved = *published;
  resolved.partition = by_name.partition;
  return resolved;
}

}  // namespace hwinfo
