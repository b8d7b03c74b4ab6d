#include "hwinfo/pci_devices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hwinfo/nvidia_procfs.h"
#include "test/hwinfo/pci_tree.h"
#include "test/support/status.h"
#include "test/support/temp_tree.h"

namespace hwinfo {
namespace {

using base::NumaMask;
using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

struct Found {
  std::vector<PciDevice> devices;
  base::Diagnostics diagnostics;
};

Found Read(const test::TempTree& tree, const NumaMask& online = {0, 1}) {
  Found found;
  found.devices = ReadPciDevices(tree.Open(), online, found.diagnostics);
  return found;
}

PciAddress Address(std::string_view text) { return ParsePciAddress(text).value(); }

auto Says(const std::string& code, const std::string& subject, const std::string& part) {
  return AllOf(Field(&base::Diagnostic::code, code), Field(&base::Diagnostic::subject, subject),
               Field(&base::Diagnostic::message, HasSubstr(part)));
}

TEST(PciDevices, ReadsAGpuWithAllThatTheKernelSaysOfIt) {
  test::TempTree tree;
  const std::string folder = Put(tree, {.address = "0000:1b:00.0",
                                        .where = "pci0000:17/0000:17:01.0/0000:18:00.0",
                                        .class_code = "0x030200",
                                        .numa_node = "1",
                                        .driver = "nvidia"});
  tree.Put(folder + "/local_cpulist", "56-111,168-223\n")
      .Folder(folder + "/drm/card1")
      .Folder(folder + "/drm/renderD129")
      .Link(folder + "/iommu_group", "../../../../kernel/iommu_groups/42")
      .Put("proc/driver/nvidia/gpus/0000:1b:00.0/information",
           "Model: \t\t NVIDIA H100 80GB HBM3\nIRQ:   \t\t 207\n"
           "GPU UUID: \t GPU-8a7b1c2d-0000-1111-2222-333344445555\nDevice Minor: \t 3\n");
  const Found found = Read(tree);
  ASSERT_THAT(found.devices, SizeIs(1));
  const PciDevice& gpu = found.devices[0];
  EXPECT_EQ(gpu.address, Address("0000:1b:00.0"));
  EXPECT_EQ(gpu.kind, DeviceKind::kGpu);
  EXPECT_EQ(gpu.vendor, 0x10de);
  EXPECT_EQ(gpu.device, 0x2330);
  EXPECT_EQ(gpu.device_class, 0x030200u);
  EXPECT_EQ(gpu.driver, "nvidia");
  EXPECT_EQ(gpu.model, "NVIDIA H100 80GB HBM3");
  EXPECT_EQ(gpu.numa_node, 1);
  EXPECT_EQ(gpu.locality, LocalitySource::kNumaNode);
  EXPECT_EQ(gpu.sysfs_numa_node, 1);
  EXPECT_EQ(gpu.local_cpus.ToString(), "56-111,168-223");
  EXPECT_THAT(gpu.bridges, ElementsAre(Address("0000:17:01.0"), Address("0000:18:00.0")));
  EXPECT_EQ(gpu.iommu_group, 42);
  EXPECT_THAT(gpu.names, ElementsAre("card1", "renderD129"));
  EXPECT_EQ(gpu.uuid, "GPU-8a7b1c2d-0000-1111-2222-333344445555");
  EXPECT_EQ(gpu.minor, 3);
  EXPECT_THAT(found.diagnostics, IsEmpty());
}

TEST(PciDevices, TakesWhatComputesAndLeavesTheScreensOfManagementControllersOut) {
  const auto kind = [](std::uint32_t device_class, std::uint32_t vendor) {
    return KindOf(device_class, vendor, Address("0000:03:00.0"));
  };
  EXPECT_EQ(kind(0x030200, 0x10de), DeviceKind::kGpu);
  EXPECT_EQ(kind(0x030000, 0x10de), DeviceKind::kGpu);
  EXPECT_EQ(kind(0x030000, 0x1002), DeviceKind::kGpu);
  EXPECT_EQ(kind(0x038000, 0x1002), DeviceKind::kGpu);          // MI250X
  EXPECT_EQ(kind(0x120000, 0x1002), DeviceKind::kGpu);          // MI300X
  EXPECT_EQ(kind(0x120000, 0x1da3), DeviceKind::kAccelerator);  // Gaudi
  EXPECT_EQ(kind(0x0b4000, 0x1bcf), DeviceKind::kAccelerator);  // NEC VE
  EXPECT_EQ(kind(0x020000, 0x8086), DeviceKind::kNic);
  EXPECT_EQ(kind(0x020700, 0x15b3), DeviceKind::kNic);
  EXPECT_EQ(kind(0x068000, 0x10de), DeviceKind::kNvSwitch);
  EXPECT_EQ(kind(0x068000, 0x8086), std::nullopt);
  EXPECT_EQ(kind(0x030000, 0x1a03), std::nullopt);  // ASPEED
  EXPECT_EQ(kind(0x030000, 0x102b), std::nullopt);  // Matrox
  EXPECT_EQ(kind(0x030000, 0x1af4), std::nullopt);  // virtio
  EXPECT_EQ(kind(0x010802, 0x144d), std::nullopt);  // NVMe
  EXPECT_EQ(kind(0x030000, 0x8086), DeviceKind::kGpu);
  EXPECT_EQ(KindOf(0x030000, 0x8086, Address("0000:00:02.0")), std::nullopt) << "in the processor";
}

TEST(PciDevices, LeavesTheLocalityUnknownWhereTheKernelSaysMinusOneAndNeverTakesItForNode0) {
  test::TempTree tree;
  Put(tree, {.address = "0000:1a:00.0",
             .where = "pci0000:00",
             .class_code = "0x030200",
             .numa_node = "-1"});
  const Found found = Read(tree);
  ASSERT_THAT(found.devices, SizeIs(1));
  EXPECT_EQ(found.devices[0].numa_node, std::nullopt);
  EXPECT_EQ(found.devices[0].locality, LocalitySource::kUnknown);
  EXPECT_EQ(found.devices[0].sysfs_numa_node, -1);
  EXPECT_THAT(found.diagnostics, IsEmpty()) << "-1 is the kernel's own word for unknown";
}

TEST(PciDevices, TakesTheNearestBridgeThatKnowsItsNodeWhereTheDeviceDoesNot) {
  test::TempTree tree;
  const auto bridge = [&](const char* address, const char* where, const char* numa_node) {
    Put(tree, {.address = address,
               .where = where,
               .class_code = "0x060400",
               .vendor = "0x8086",
               .numa_node = numa_node});
  };
  bridge("0000:17:01.0", "pci0000:17", "0");
  bridge("0000:18:00.0", "pci0000:17/0000:17:01.0", "1");
  bridge("0000:19:00.0", "pci0000:17/0000:17:01.0/0000:18:00.0", "-1");
  Put(tree, {.address = "0000:1b:00.0",
             .where = "pci0000:17/0000:17:01.0/0000:18:00.0/0000:19:00.0",
             .class_code = "0x030200",
             .numa_node = "-1"});
  const Found found = Read(tree);
  ASSERT_THAT(found.devices, SizeIs(1));
  EXPECT_EQ(found.devices[0].numa_node, 1);
  EXPECT_EQ(found.devices[0].locality, LocalitySource::kBridge);
  EXPECT_EQ(found.devices[0].sysfs_numa_node, -1);
}

TEST(PciDevices, DoesNotBelieveANumaNodeThatIsNotOnlineAndSaysBothValues) {
  test::TempTree tree;
  Put(tree, {.address = "0000:1b:00.0",
             .where = "pci0000:17",
             .class_code = "0x030200",
             .numa_node = "3"});
  const Found found = Read(tree, NumaMask{0, 8});
  ASSERT_THAT(found.devices, SizeIs(1));
  EXPECT_EQ(found.devices[0].numa_node, std::nullopt);
  EXPECT_EQ(found.devices[0].locality, LocalitySource::kUnknown);
  EXPECT_EQ(found.devices[0].sysfs_numa_node, 3);
  EXPECT_THAT(found.diagnostics,
              ElementsAre(Says("NumaNodeNotOnline", "0000:1b:00.0",
                               "NUMA node 3, but online are 0,8; its locality is unknown")));
}

TEST(PciDevices, KeepsANodeWithoutCpusIfThatIsWhereTheKernelPutsTheGpu) {
  test::TempTree tree;
  Put(tree, {.address = "0000:1b:00.0",
             .where = "pci0000:17",
             .class_code = "0x120000",
             .vendor = "0x1002",
             .numa_node = "6"});
  const Found found = Read(tree, NumaMask{0, 1, 6, 250});
  ASSERT_THAT(found.devices, SizeIs(1));
  EXPECT_EQ(found.devices[0].numa_node, 6);
}

TEST(PciDevices, ShowsThatAGpuAndANicAreUnderOneSwitch) {
  test::TempTree tree;
  const std::string below = "pci0000:17/0000:17:01.0/0000:18:00.0/";
  Put(tree, {.address = "0000:1a:00.0",
             .where = below + "0000:19:00.0",
             .class_code = "0x020700",
             .vendor = "0x15b3",
             .numa_node = "0"});
  Put(tree, {.address = "0000:1b:00.0",
             .where = below + "0000:19:04.0",
             .class_code = "0x030200",
             .numa_node = "0"});
  const Found found = Read(tree);
  ASSERT_THAT(found.devices, SizeIs(2));
  EXPECT_EQ(found.devices[0].bridges[1], found.devices[1].bridges[1]);
  EXPECT_NE(found.devices[0].bridges[2], found.devices[1].bridges[2]);
}

TEST(PciDevices, TakesTheNodeFromTheKernelWhereDevicesOfOneNodeShareNoBridge) {
  test::TempTree tree;
  const auto gpu = [&](const std::string& address, const std::string& root, const char* node) {
    Put(tree, {.address = address,
               .where = "pci" + root + "/" + root + ":01.0",
               .class_code = "0x030000",
               .numa_node = node});
  };
  gpu("0000:01:00.0", "0000:00", "0");
  gpu("0000:41:00.0", "0000:40", "0");
  gpu("0000:81:00.0", "0000:80", "1");
  gpu("0000:c1:00.0", "0000:c0", "1");
  std::vector<int> nodes;
  for (const PciDevice& device : Read(tree).devices) nodes.push_back(device.numa_node.value_or(-1));
  EXPECT_THAT(nodes, ElementsAre(0, 0, 1, 1));
}

TEST(PciDevices, KnowsPciDomainsAboveFfff) {
  test::TempTree tree;
  Put(tree, {.address = "10000:01:00.0",
             .where = "pci0000:00/0000:00:0e.0/pci10000:00/10000:00:02.0",
             .class_code = "0x030200",
             .numa_node = "1"});
  const Found found = Read(tree);
  ASSERT_THAT(found.devices, SizeIs(1));
  EXPECT_EQ(found.devices[0].address.domain, 0x10000u);
  EXPECT_EQ(ToString(found.devices[0].address), "10000:01:00.0");
  EXPECT_THAT(found.devices[0].bridges,
              ElementsAre(Address("0000:00:0e.0"), Address("10000:00:02.0")));
}

TEST(PciDevices, TiesVirtualFunctionsToTheirPhysicalOneInBothDirections) {
  test::TempTree tree;
  const auto nic = [&](const char* address) {
    return Put(tree, {.address = address,
                      .where = "pci0000:5d/0000:5d:00.0",
                      .class_code = "0x020000",
                      .vendor = "0x15b3",
                      .numa_node = "0"});
  };
  const std::string pf = nic("0000:5e:00.0");
  const std::string vf0 = nic("0000:5e:00.2");
  const std::string vf1 = nic("0000:5e:00.3");
  tree.Link(pf + "/virtfn0", "../0000:5e:00.2")
      .Link(vf0 + "/physfn", "../0000:5e:00.0")
      .Link(vf1 + "/physfn", "../0000:5e:00.0");  // not listed by its physical function
  const Found found = Read(tree);
  ASSERT_THAT(found.devices, SizeIs(3));
  EXPECT_THAT(found.devices[0].virtual_functions,
              ElementsAre(Address("0000:5e:00.2"), Address("0000:5e:00.3")));
  EXPECT_EQ(found.devices[0].physical_function, std::nullopt);
  EXPECT_EQ(found.devices[1].physical_function, Address("0000:5e:00.0"));
  EXPECT_EQ(found.devices[2].physical_function, Address("0000:5e:00.0"));
}

TEST(PciDevices, ShowsGpusAndAnythingElseThatIsPassedThroughToVirtualMachines) {
  test::TempTree tree;
  Put(tree, {.address = "0000:1b:00.0",
             .where = "pci0000:17",
             .class_code = "0x030200",
             .numa_node = "0",
             .driver = "vfio-pci"});
  Put(tree, {.address = "0000:1c:00.0",
             .where = "pci0000:17",
             .class_code = "0x010802",
             .vendor = "0x144d",
             .numa_node = "0",
             .driver = "vfio-pci"});
  Put(tree, {.address = "0000:17:00.0",
             .where = "pci0000:17",
             .class_code = "0x060400",
             .vendor = "0x8086",
             .numa_node = "0",
             .driver = "vfio-pci"});
  const Found found = Read(tree);
  ASSERT_THAT(found.devices, SizeIs(2));
  EXPECT_EQ(found.devices[0].kind, DeviceKind::kGpu);
  EXPECT_EQ(found.devices[0].uuid, std::nullopt);
  EXPECT_EQ(found.devices[1].kind, DeviceKind::kOther);
  EXPECT_THAT(found.diagnostics, IsEmpty()) << "NVIDIA's driver does not hold it";
}

TEST(PciDevices, SaysWhichGpuDoesNotTellItsUuidYet) {
  test::TempTree tree;
  Put(tree, {.address = "0000:1b:00.0",
             .where = "pci0000:17",
             .class_code = "0x030200",
             .numa_node = "0",
             .driver = "nvidia"});
  tree.Put("proc/driver/nvidia/gpus/0000:1b:00.0/information",
           "Model: \t NVIDIA H100\nGPU UUID: \t GPU-" + std::string(8, '?') + "-" +
               std::string(12, '?') +
               "\n"
               "Device Minor: \t 0\n");
  const Found found = Read(tree);
  ASSERT_THAT(found.devices, SizeIs(1));
  EXPECT_EQ(found.devices[0].uuid, std::nullopt);
  EXPECT_EQ(found.devices[0].minor, 0);
  EXPECT_THAT(found.diagnostics,
              ElementsAre(Says("NvidiaUuidUnknown", "0000:1b:00.0", "before the GPU's first use")));
}

TEST(PciDevices, SaysWhenTheFilesOfNvidiasDriverAreHidden) {
  test::TempTree tree;
  Put(tree, {.address = "0000:1b:00.0",
             .where = "pci0000:17",
             .class_code = "0x030200",
             .numa_node = "0",
             .driver = "nvidia"});
  EXPECT_THAT(Read(tree).diagnostics, ElementsAre(Says("NvidiaInformationMissing", "0000:1b:00.0",
                                                       "information: No such")));
}

TEST(PciDevices, SurvivesFunctionsThatLackTheirFilesAndSaysWhich) {
  test::TempTree tree;
  tree.Folder("sys/bus/pci/devices/0000:01:00.0")
      .Put("sys/bus/pci/devices/0000:02:00.0/class", "0x030200\n")
      .Put("sys/bus/pci/devices/0000:03:00.0/class", "rubbish\n")
      .Put("sys/bus/pci/devices/0000:04:00.0", "no folder")
      .Folder("sys/bus/pci/devices/somewhere");
  const Found found = Read(tree);
  ASSERT_THAT(found.devices, SizeIs(1));
  EXPECT_EQ(ToString(found.devices[0].address), "0000:02:00.0");
  EXPECT_EQ(found.devices[0].vendor, 0);
  EXPECT_EQ(found.devices[0].sysfs_numa_node, std::nullopt);
  EXPECT_THAT(found.diagnostics,
              ElementsAre(Says("PciFunctionSkipped", "0000:01:00.0", "class: No such file"),
                          Says("PciFunctionIncomplete", "0000:02:00.0", "vendor: No such file"),
                          Says("PciFunctionIncomplete", "0000:02:00.0", "device: No such file"),
                          Says("PciFunctionSkipped", "0000:03:00.0", "holds \"rubbish\""),
                          Says("PciFunctionSkipped", "0000:04:00.0", "class: "),
                          Says("PciUnreadable", "somewhere", "no PCI address")));
}

TEST(PciDevices, TellsAMachineWithoutPciFromOneWithoutDevices) {
  const test::TempTree without;
  EXPECT_THAT(Read(without).diagnostics, ElementsAre(Says("PciUnreadable", "", "No such file")));
  test::TempTree empty;
  empty.Folder("sys/bus/pci/devices");
  EXPECT_THAT(Read(empty).diagnostics, IsEmpty());
}

TEST(PciDevices, ReadsTheMaskOfLocalCpusWhereThereIsNoList) {
  test::TempTree tree;
  const std::string folder =
      Put(tree, {.address = "0000:1b:00.0", .where = "pci0000:17", .class_code = "0x030200"});
  tree.Put(folder + "/local_cpus", "0000,000000ff,ff000000,00000001\n");
  EXPECT_EQ(Read(tree).devices.at(0).local_cpus.ToString(), "0,56-71");
}

TEST(PciDevices, TellsLocalCpusThatItCannotReadFromNone) {
  test::TempTree tree;
  const std::string folder =
      Put(tree, {.address = "0000:1b:00.0", .where = "pci0000:17", .class_code = "0x030200"});
  tree.Folder(folder + "/local_cpulist");
  const Found found = Read(tree);
  EXPECT_THAT(found.devices.at(0).local_cpus, IsEmpty());
  EXPECT_THAT(found.diagnostics,
              Contains(Says("PciFunctionIncomplete", "0000:1b:00.0", "local_cpulist: it is no")));
}

TEST(PciDevices, FindsTheInterfaceOfAVirtioCardBelowItsVirtioDevice) {
  test::TempTree tree;
  const std::string folder = Put(tree, {.address = "0000:00:03.0",
                                        .where = "pci0000:00",
                                        .class_code = "0x020000",
                                        .vendor = "0x1af4"});
  tree.Folder(folder + "/virtio1/net/eth0");
  EXPECT_THAT(Read(tree).devices.at(0).names, ElementsAre("eth0"));
}

// A partition has no PCI function of its own: its render node leads to KFD, and KFD to the GPU. KFD
// writes the partition's number where the function would be: 1283 is bus 5, partition 3.
TEST(PciDevices, AttachesAmdsPartitionsToTheirGpu) {
  test::TempTree tree;
  for (const char* address : {"0000:05:00.0", "0000:27:00.0"}) {
    Put(tree, {.address = address,
               .where = "pci0000:00",
               .class_code = "0x120000",
               .vendor = "0x1002",
               .numa_node = "0"});
  }
  const std::string kfd = "sys/class/kfd/kfd/topology/nodes/";
  tree.Folder("sys/devices/platform/amdgpu_xcp_0/drm/renderD131")
      .Folder("sys/devices/platform/amdgpu_xcp_1/drm/renderD139")
      .Folder("sys/devices/platform/amdgpu_xcp_2/drm/renderD140")
      .Folder("sys/devices/platform/amdgpu_xcp_3")
      .Put(kfd + "0/properties", "cpu_cores_count 96\nlocation_id 0\ndrm_render_minor 0\n")
      .Put(kfd + "5/properties", "location_id 1283\ndomain 0\ndrm_render_minor 131\n")
      .Put(kfd + "6/properties", "location_id 9987\ndomain 0\ndrm_render_minor 139\n");
  const Found found = Read(tree);
  ASSERT_THAT(found.devices, SizeIs(2));
  EXPECT_THAT(found.devices[0].partitions, ElementsAre("amdgpu_xcp_0"));
  EXPECT_THAT(found.devices[1].partitions, ElementsAre("amdgpu_xcp_1"));
  EXPECT_THAT(found.diagnostics,
              ElementsAre(Says("PartitionUnresolved", "amdgpu_xcp_2", "render minor 140"),
                          Says("PartitionUnresolved", "amdgpu_xcp_3", "no render node")));
}

TEST(NvidiaMemoryNodes, AreTheGpusOwnMemoryAndNotWhereTheGpuIs) {
  test::TempTree tree;
  tree.Put("proc/driver/nvidia/gpus/0004:05:00.0/numa_status",
           "Node:      255\nStatus:    online\nAddress:   40000000000\nSize:      3f0000000\n")
      .Put("proc/driver/nvidia/gpus/0035:05:00.0/numa_status", "Node: -1\nStatus: offline\n");
  EXPECT_THAT(ReadNvidiaMemoryNodes(tree.Open()),
              ElementsAre(std::pair(255, Address("0004:05:00.0"))));
}

}  // namespace
}  // namespace hwinfo
