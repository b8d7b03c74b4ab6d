// The PCI inventory of recorded machines, against a plain reading of the same files and against
// what others recorded of them.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "hwinfo/amd_kfd.h"
#include "hwinfo/device_id.h"
#include "hwinfo/nvidia_procfs.h"
#include "hwinfo/pci_devices.h"
#include "test/hwinfo/pci_tree.h"
#include "test/support/shared.h"
#include "test/support/status.h"
#include "test/support/temp_tree.h"

namespace hwinfo {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::Pair;

struct Machine {
  std::vector<PciDevice> devices;
  base::Diagnostics diagnostics;
  base::NumaMask online;
};

Machine ReadMachine(const std::string& root) {
  Machine machine;
  const base::FileTree tree = base::FileTree::Open(root).value();
  const std::string online = tree.ReadTrimmed("sys/devices/system/node/online").value_or("0");
  machine.online = base::NumaMask::Parse(online).value();
  machine.devices = ReadPciDevices(tree, machine.online, machine.diagnostics);
  return machine;
}

// Unpacks what the inventory reads, which is a small part of most archives. Returns the root, or ""
// where the archive holds no PCI device.
std::string UnpackDevices(const std::string& archive, const test::TempTree& into) {
  const std::string command = fmt::format(
      "tar -xf '{}/{}' -C '{}' --no-same-owner --wildcards '*sys/bus/pci/*' '*sys/devices/pci*' "
      "'*sys/devices/system/node/online' '*proc/driver/nvidia/*' 2>/dev/null",
      test::SharedFolder().value(), archive, into.root());
  (void)std::system(command.c_str());  // not every archive has every part
  for (const fs::directory_entry& entry : fs::directory_iterator(into.root())) {
    for (const fs::path& root : {fs::path(into.root()), entry.path()}) {
      if (fs::exists(root / "sys/bus/pci/devices")) return root.string();
    }
  }
  return "";
}

std::string FirstLine(const fs::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::vector<std::string> Archives() {
  std::vector<std::string> archives;
  for (const auto& [folder, ending] :
       std::vector<std::pair<std::string, std::string>>{{"machines/synthetic", ".tar.xz"},
                                                        {"machines/real/sysfs", ".tar.gz"},
                                                        {"machines/hwloc/fsroot", ".tar.bz2"},
                                                        {"machines/hwloc/fsroot", ".tar.xz"},
                                                        {"machines/hwloc/fsroot", ".tar.gz"}}) {
    const std::vector<std::string> files = test::SharedFiles(folder, ending);
    archives.insert(archives.end(), files.begin(), files.end());
  }
  return archives;
}

std::map<int, int> GpusPerNode(const Machine& machine) {
  std::map<int, int> gpus;
  for (const PciDevice& device : machine.devices) {
    if (device.kind == DeviceKind::kGpu) ++gpus[device.numa_node.value_or(-1)];
  }
  return gpus;
}

Machine ReadSynthetic(const std::string& name) {
  const test::TempTree tree;
  return ReadMachine(UnpackDevices(fmt::format("machines/synthetic/{}.tar.xz", name), tree));
}

// Each device against the files as they are, read without any of our code.
void ExpectAsInSysfs(const std::string& root, const Machine& machine) {
  for (const PciDevice& device : machine.devices) {
    const fs::path folder = fs::path(root) / "sys/bus/pci/devices" / ToString(device.address);
    SCOPED_TRACE(folder.string());
    ASSERT_TRUE(fs::exists(folder));
    EXPECT_EQ(fmt::format("{:#08x}", device.device_class), FirstLine(folder / "class"));
    if (fs::exists(folder / "vendor")) {
      EXPECT_EQ(fmt::format("{:#06x}", device.vendor), FirstLine(folder / "vendor"));
    }
    if (!fs::exists(folder / "numa_node")) {
      EXPECT_EQ(device.sysfs_numa_node, std::nullopt);
      continue;
    }
    const int node = std::stoi(FirstLine(folder / "numa_node"));
    EXPECT_EQ(device.sysfs_numa_node, node);
    if (node >= 0) {
      EXPECT_EQ(device.numa_node, node);
    }
    if (node < 0 && device.locality != LocalitySource::kBridge) {
      EXPECT_EQ(device.numa_node, std::nullopt);
    }
  }
}

TEST(RecordedDevices, AreWhereTheFilesOfTheirMachineSay) {
  SKIP_WITHOUT_SHARED();
  int devices = 0;
  for (const std::string& archive : Archives()) {
    SCOPED_TRACE(archive);
    const test::TempTree tree;
    const std::string root = UnpackDevices(archive, tree);
    if (root.empty()) continue;
    const Machine machine = ReadMachine(root);
    ExpectAsInSysfs(root, machine);
    devices += static_cast<int>(machine.devices.size());
  }
  EXPECT_GT(devices, 100);
}

TEST(RecordedDevices, AreSpreadOverTheNodesAsTheMachineIsBuilt) {
  SKIP_WITHOUT_SHARED();
  EXPECT_THAT(GpusPerNode(ReadSynthetic("dgx-h100")), ElementsAre(Pair(0, 4), Pair(1, 4)));
  EXPECT_THAT(GpusPerNode(ReadSynthetic("hgx-h200-snc2")),
              ElementsAre(Pair(0, 2), Pair(1, 2), Pair(2, 2), Pair(3, 2)));
  EXPECT_THAT(GpusPerNode(ReadSynthetic("asym-4-2")), ElementsAre(Pair(0, 4), Pair(1, 2)));
  EXPECT_THAT(GpusPerNode(ReadSynthetic("azure-ndv5-like")), ElementsAre(Pair(0, 4), Pair(1, 4)));
  EXPECT_THAT(GpusPerNode(ReadSynthetic("gb200-34nodes")), ElementsAre(Pair(0, 2), Pair(1, 2)));
  EXPECT_THAT(GpusPerNode(ReadSynthetic("hgx-vm-flat")), ElementsAre(Pair(-1, 8)))
      << "the virtual machine hides it";
}

TEST(RecordedDevices, ResolveByUuidOnAMachineWithEightGpus) {
  SKIP_WITHOUT_SHARED();
  Topology topology;
  topology.devices = ReadSynthetic("dgx-h100").devices;
  const std::vector<std::string> addresses = {"0000:1b:00.0", "0000:43:00.0", "0000:52:00.0",
                                              "0000:61:00.0", "0000:9d:00.0", "0000:c3:00.0",
                                              "0000:d1:00.0", "0000:df:00.0"};
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    const std::string uuid = fmt::format("GPU-00000000-0000-0000-0000-{:012}", i);
    EXPECT_EQ(ResolveDeviceId(topology, nullptr, "nvidia.com/gpu", uuid).address,
              ParsePciAddress(addresses[i]));
    EXPECT_EQ(
        ResolveDeviceId(topology, nullptr, "nvidia.com/gpu", fmt::format("nvidia{}", i)).address,
        ParsePciAddress(addresses[i]));
  }
  const auto switches =
      std::ranges::count(topology.devices, DeviceKind::kNvSwitch, &PciDevice::kind);
  EXPECT_EQ(switches, 4);
  EXPECT_EQ(topology.FindDevice(ParsePciAddress("0000:03:00.0").value()), nullptr)
      << "the management controller's screen";
}

TEST(RecordedDevices, TellAPassedThroughGpuAndVirtualFunctions) {
  SKIP_WITHOUT_SHARED();
  Topology topology;
  topology.devices = ReadSynthetic("vfio-sriov").devices;
  const PciDevice* const gpu = topology.FindDevice(ParsePciAddress("0000:1b:00.0").value());
  ASSERT_NE(gpu, nullptr);
  EXPECT_EQ(gpu->driver, "vfio-pci");
  EXPECT_EQ(gpu->iommu_group, 42);
  EXPECT_EQ(gpu->uuid, std::nullopt);
  EXPECT_EQ(gpu->numa_node, 0);
  const PciDevice* const nic = topology.FindDevice(ParsePciAddress("0000:5e:00.0").value());
  ASSERT_NE(nic, nullptr);
  EXPECT_EQ(nic->virtual_functions.size(), 3u);
}

TEST(RecordedDevices, HaveTheirMemoryOnNodesOfItsOwnOnGrace) {
  SKIP_WITHOUT_SHARED();
  const test::TempTree tree;
  const std::string root = UnpackDevices("machines/synthetic/gb200-34nodes.tar.xz", tree);
  const auto nodes = ReadNvidiaMemoryNodes(base::FileTree::Open(root).value());
  EXPECT_THAT(nodes, ElementsAre(Pair(2, ParsePciAddress("0008:01:00.0").value()),
                                 Pair(10, ParsePciAddress("0009:01:00.0").value()),
                                 Pair(18, ParsePciAddress("0018:01:00.0").value()),
                                 Pair(26, ParsePciAddress("0019:01:00.0").value())));
}

TEST(RecordedDevices, AreFoundOnPower9ThoughTheRecordLacksVendorsAndNodes) {
  SKIP_WITHOUT_SHARED();
  const std::vector<std::string> archives = Archives();
  const auto archive = std::ranges::find_if(archives, [](const std::string& name) {
    return name.find("nvidiagpunumanodes") != std::string::npos;
  });
  ASSERT_NE(archive, archives.end());
  const test::TempTree tree;
  const Machine machine = ReadMachine(UnpackDevices(*archive, tree));
  ASSERT_EQ(machine.devices.size(), 6u);
  for (const PciDevice& gpu : machine.devices) {
    EXPECT_EQ(gpu.kind, DeviceKind::kGpu);
    EXPECT_EQ(gpu.vendor, kNvidia) << "NVIDIA's driver lists it";
    EXPECT_EQ(gpu.numa_node, std::nullopt);
  }
  EXPECT_EQ(machine.devices[0].local_cpus.ToString(), "0-15");
  EXPECT_EQ(machine.devices[5].local_cpus.ToString(), "88-103");
}

// KFD trees hold the topology folder alone; the render nodes of the partitions are made from it, in
// the order in which the driver numbers them: the first partition of a GPU is the GPU's own.
TEST(RecordedDevices, ArePartitionedAsAmdsDriverSays) {
  SKIP_WITHOUT_SHARED();
  test::TempTree tree;
  tree.Folder("sys/class/kfd/kfd");
  const std::string command = fmt::format(
      "tar -xf '{}/machines/real/kfd/amd-mi300-cpx.tar.xz' -C '{}' --no-same-owner "
      "--strip-components=1 --exclude='*_links*'",
      test::SharedFolder().value(), tree.Path("sys/class/kfd/kfd"));
  ASSERT_EQ(std::system(command.c_str()), 0);

  std::map<int, PciAddress> nodes;  // by render minor
  for (const auto& entry : fs::directory_iterator(tree.Path("sys/class/kfd/kfd/topology/nodes"))) {
    std::ifstream file(entry.path() / "properties");
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    if (const auto node = ParseKfdNode(text)) nodes.emplace(node->render_minor, node->address);
  }
  ASSERT_EQ(nodes.size(), 63u) << "the record lacks the last partition of the last GPU";
  int partition = 0;
  std::map<std::string, std::string> expected;  // partition to GPU
  for (const auto& [minor, address] : nodes) {
    if (address.function == 0) {
      Put(tree, {.address = ToString(address),
                 .where = "pci0000:00",
                 .class_code = "0x120000",
                 .vendor = "0x1002",
                 .device = "0x74a1",
                 .numa_node = "0"});
      continue;
    }
    const std::string name = fmt::format("amdgpu_xcp_{}", partition++);
    tree.Folder(fmt::format("sys/devices/platform/{}/drm/renderD{}", name, minor));
    expected[name] =
        fmt::format("{:04x}:{:02x}:{:02x}.0", address.domain, address.bus, address.device);
  }
  Topology topology;
  const base::FileTree root = tree.Open();
  topology.devices = ReadPciDevices(root, base::NumaMask{0, 1}, topology.diagnostics);
  EXPECT_EQ(topology.devices.size(), 8u);
  EXPECT_TRUE(topology.diagnostics.empty()) << topology.diagnostics[0].message;
  ASSERT_EQ(expected.size(), 55u);
  for (const auto& [name, address] : expected) {
    const ResolvedDevice device = ResolveDeviceId(topology, &root, "amd.com/gpu", name);
    EXPECT_EQ(device.address, ParsePciAddress(address)) << name << ": " << device.reason;
    EXPECT_EQ(device.partition, name);
  }
}

// What NCCL's description of a machine says of one function.
struct NcclFact {
  int numa_node = -1;
  std::string class_code;
  std::vector<std::string> bridges;
};

std::string Attribute(const std::string& tag, const std::string& name) {
  const std::size_t start = tag.find(" " + name + "=\"");
  if (start == std::string::npos) return "";
  const std::size_t value = start + name.size() + 3;
  return tag.substr(value, tag.find('"', value) - value);
}

std::map<std::string, NcclFact> ReadNccl(const std::string& xml) {
  std::map<std::string, NcclFact> facts;
  std::vector<std::string> open;
  int numa_node = -1;
  for (std::size_t at = xml.find('<'); at != std::string::npos; at = xml.find('<', at + 1)) {
    const std::string tag = xml.substr(at, xml.find('>', at) - at);
    if (tag.starts_with("<cpu ")) numa_node = std::stoi(Attribute(tag, "numaid"));
    if (tag.starts_with("</pci")) open.pop_back();
    if (!tag.starts_with("<pci ")) continue;
    const std::string address = Attribute(tag, "busid");
    facts[address] = {numa_node, Attribute(tag, "class"), open};
    if (!tag.ends_with('/')) open.push_back(address);
  }
  return facts;
}

TEST(RecordedDevices, AreWhereNcclFoundThemOnRealMachines) {
  SKIP_WITHOUT_SHARED();
  int devices = 0;
  for (const std::string& file : test::SharedFiles("machines/real/nccl-xml", ".xml")) {
    SCOPED_TRACE(file);
    const std::map<std::string, NcclFact> facts = ReadNccl(test::ReadShared(file));
    test::TempTree tree;
    base::NumaMask online;
    for (const auto& [address, fact] : facts) {
      std::string where = "pci0000:00";
      for (const std::string& bridge : fact.bridges) where += "/" + bridge;
      if (fact.class_code.empty()) continue;
      const std::string vendor = fact.class_code.starts_with("0x12") ? "0x1002" : "0x10de";
      Put(tree, {.address = address,
                 .where = where,
                 .class_code = fact.class_code,
                 .vendor = vendor,
                 .numa_node = std::to_string(fact.numa_node)});
      online.Insert(fact.numa_node);
    }
    if (online.empty()) continue;  // a file that names no classes
    base::Diagnostics diagnostics;
    for (const PciDevice& device : ReadPciDevices(tree.Open(), online, diagnostics)) {
      const NcclFact& fact = facts.at(ToString(device.address));
      EXPECT_EQ(device.numa_node, fact.numa_node);
      const bool nic = fact.class_code.starts_with("0x02");
      EXPECT_EQ(device.kind, nic ? DeviceKind::kNic : DeviceKind::kGpu);
      std::vector<std::string> bridges;
      for (const PciAddress& bridge : device.bridges) bridges.push_back(ToString(bridge));
      EXPECT_EQ(bridges, fact.bridges);
      ++devices;
    }
    EXPECT_TRUE(diagnostics.empty()) << diagnostics[0].message;
  }
  EXPECT_GT(devices, 60);
}

}  // namespace
}  // namespace hwinfo
