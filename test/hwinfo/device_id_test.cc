#include "hwinfo/device_id.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string_view>

#include "test/hwinfo/pci_tree.h"
#include "test/support/temp_tree.h"

namespace hwinfo {
namespace {

using testing::HasSubstr;

constexpr char kUuid0[] = "GPU-8a7b1c2d-0000-1111-2222-333344445555";
constexpr char kUuid1[] = "GPU-91ffc0de-0000-1111-2222-333344445555";

PciDevice Device(std::string_view address, DeviceKind kind, std::uint16_t vendor,
                 std::uint16_t id) {
  PciDevice device;
  device.address = ParsePciAddress(address).value();
  device.kind = kind;
  device.vendor = vendor;
  device.device = id;
  return device;
}

PciDevice NvidiaGpu(std::string_view address, const std::string& uuid, int minor) {
  PciDevice gpu = Device(address, DeviceKind::kGpu, 0x10de, 0x2330);
  gpu.uuid = uuid;
  gpu.minor = minor;
  return gpu;
}

// Two NVIDIA GPUs whose minors are not in the order of their addresses, a partitioned AMD GPU, an
// Intel GPU, a NIC with a virtual function.
Topology Node() {
  Topology topology;
  PciDevice intel = Device("0000:03:00.0", DeviceKind::kGpu, 0x8086, 0x56c0);
  intel.names = {"card0", "renderD128"};
  PciDevice amd = Device("0000:05:00.0", DeviceKind::kGpu, 0x1002, 0x74a1);
  amd.names = {"card1", "renderD129"};
  amd.partitions = {"amdgpu_xcp_0", "amdgpu_xcp_30"};
  topology.devices = {intel,
                      amd,
                      NvidiaGpu("0000:1b:00.0", kUuid0, 1),
                      NvidiaGpu("0000:3b:00.0", kUuid1, 0),
                      Device("0000:5e:00.0", DeviceKind::kNic, 0x15b3, 0x1021),
                      Device("0000:5e:00.2", DeviceKind::kNic, 0x15b3, 0x101e),
                      Device("10000:01:00.0", DeviceKind::kNic, 0x8086, 0x1592)};
  return topology;
}

ResolvedDevice Resolve(const std::string& id, const base::FileTree* root = nullptr) {
  return ResolveDeviceId(Node(), root, "example.com/device", id);
}

ResolvedDevice At(std::string_view address, std::optional<int> replica = std::nullopt,
                  const std::optional<std::string>& partition = std::nullopt) {
  ResolvedDevice device;
  device.address = ParsePciAddress(address);
  device.replica = replica;
  device.partition = partition;
  return device;
}

void ExpectUnresolved(const ResolvedDevice& device, const std::string& reason) {
  EXPECT_EQ(device.address, std::nullopt);
  EXPECT_THAT(device.reason, HasSubstr(reason));
  EXPECT_FALSE(device.reason.empty());
}

TEST(DeviceId, ResolvesNvidiasUuids) {
  EXPECT_EQ(Resolve(kUuid0), At("0000:1b:00.0"));
  EXPECT_EQ(Resolve(kUuid1), At("0000:3b:00.0"));
  ExpectUnresolved(Resolve("GPU-00000000-dead-beef-0000-000000000000"),
                   "no GPU of this machine has the UUID GPU-00000000-dead");
}

TEST(DeviceId, SaysHowManyGpusKeepTheirUuidToThemselves) {
  Topology topology = Node();
  topology.devices[3].uuid.reset();
  ExpectUnresolved(ResolveDeviceId(topology, nullptr, "nvidia.com/gpu", kUuid1),
                   "; 1 NVIDIA GPUs do not tell theirs");
}

TEST(DeviceId, TakesSharesByTimeOrMpsForTheirGpu) {
  EXPECT_EQ(Resolve(std::string(kUuid0) + "::0"), At("0000:1b:00.0", 0));
  EXPECT_EQ(Resolve(std::string(kUuid0) + "::13"), At("0000:1b:00.0", 13));
}

TEST(DeviceId, TakesHamisSharesForTheirGpu) {
  EXPECT_EQ(Resolve(std::string(kUuid0) + "-7"), At("0000:1b:00.0", 7));
  ExpectUnresolved(Resolve(std::string(kUuid0) + "-x"), "no GPU of this machine has the UUID");
}

TEST(DeviceId, ResolvesTheOldFormOfMigThatNamesItsGpu) {
  const std::string mig = "MIG-" + std::string(kUuid1) + "/3/0";
  EXPECT_EQ(Resolve(mig), At("0000:3b:00.0", std::nullopt, mig));
  EXPECT_EQ(Resolve(mig + "::2"), At("0000:3b:00.0", 2, mig));
}

TEST(DeviceId, LeavesAMigUuidUnresolvedSinceTheKernelTiesItToNoGpu) {
  const std::string mig = "MIG-5f3c1a2b-1111-2222-3333-444455556666";
  const ResolvedDevice device = Resolve(mig + "::1");
  ExpectUnresolved(device, "does not tie a MIG instance's UUID to a GPU");
  EXPECT_EQ(device.partition, mig);
  EXPECT_EQ(device.replica, 1);
}

TEST(DeviceId, ResolvesAMigUuidWhereASingleGpuHasInstances) {
  const std::string mig = "MIG-5f3c1a2b-1111-2222-3333-444455556666";
  test::TempTree tree;
  const std::string capabilities = "proc/driver/nvidia/capabilities/";
  tree.Put(capabilities + "mig/config", "").Folder(capabilities + "gpu0/mig");
  const base::FileTree root = tree.Open();
  ExpectUnresolved(Resolve(mig, &root), "0 GPUs have instances");
  tree.Put(capabilities + "gpu0/mig/gi3/ci0/access", "DeviceFileMinor: 30\n");
  EXPECT_EQ(Resolve(mig, &root), At("0000:3b:00.0", std::nullopt, mig)) << "minor 0";
  tree.Put(capabilities + "gpu1/mig/gi1/ci0/access", "DeviceFileMinor: 165\n");
  ExpectUnresolved(Resolve(mig, &root), "2 GPUs have instances");
}

TEST(DeviceId, LeavesAMigUuidUnresolvedWhereAnotherGpuMayHaveInstances) {
  const std::string mig = "MIG-5f3c1a2b-1111-2222-3333-444455556666";
  test::TempTree tree;
  const std::string capabilities = "proc/driver/nvidia/capabilities/";
  tree.Put(capabilities + "gpu0/mig/gi3/ci0/access", "DeviceFileMinor: 30\n")
      .Link(capabilities + "gpu1/mig", "mig");  // a link to itself cannot be looked into
  const base::FileTree root = tree.Open();
  ExpectUnresolved(Resolve(mig, &root), "gpu1/mig");
}

TEST(DeviceId, ResolvesGkesNamesByTheMinorAndNotByTheOrderOfAddresses) {
  EXPECT_EQ(Resolve("nvidia0"), At("0000:3b:00.0"));
  EXPECT_EQ(Resolve("nvidia1"), At("0000:1b:00.0"));
  EXPECT_EQ(Resolve("nvidia0/gi3"), At("0000:3b:00.0", std::nullopt, "gi3"));
  EXPECT_EQ(Resolve("nvidia0/vgpu1"), At("0000:3b:00.0", 1));
  EXPECT_EQ(Resolve("nvidia1/gi3/vgpu0"), At("0000:1b:00.0", 0, "gi3"));
  ExpectUnresolved(Resolve("nvidia9"), "minor 9");
  for (const char* id : {"nvidia", "nvidia-1", "nvidia0/", "nvidia0//vgpu1", "nvidia0/vgpu1/gi3",
                         "nvidia0/gi3/vgpu1/x", "nvidia99999999999999999999"}) {
    ExpectUnresolved(Resolve(id), "none of the forms");
  }
}

TEST(DeviceId, ResolvesPciAddressesInEveryWritingOfThem) {
  EXPECT_EQ(Resolve("0000:3b:00.0"), At("0000:3b:00.0"));
  EXPECT_EQ(Resolve("00000000:3B:00.0"), At("0000:3b:00.0"));
  EXPECT_EQ(Resolve("3b:00.0"), At("0000:3b:00.0"));
  EXPECT_EQ(Resolve("0000:5e:00.2"), At("0000:5e:00.2")) << "a virtual function";
  EXPECT_EQ(Resolve("10000:01:00.0"), At("10000:01:00.0"));
  EXPECT_EQ(Resolve("00010000:01:00.0"), At("10000:01:00.0"));
  ExpectUnresolved(Resolve("0000:99:00.0"), "no PCI function 0000:99:00.0");
}

TEST(DeviceId, ResolvesTheAddressOfADeviceThatTheInventoryLeavesOut) {
  test::TempTree tree;
  Put(tree, {.address = "0000:99:00.0", .where = "pci0000:98", .class_code = "0x010802"});
  const base::FileTree root = tree.Open();
  EXPECT_EQ(Resolve("0000:99:00.0", &root), At("0000:99:00.0"));
}

TEST(DeviceId, ResolvesAmdsPartitionsToTheGpuTheyArePartsOf) {
  EXPECT_EQ(Resolve("amdgpu_xcp_30"), At("0000:05:00.0", std::nullopt, "amdgpu_xcp_30"));
  const ResolvedDevice unknown = Resolve("amdgpu_xcp_31");
  ExpectUnresolved(unknown, "partition amdgpu_xcp_31");
  EXPECT_EQ(unknown.partition, "amdgpu_xcp_31");
}

TEST(DeviceId, ResolvesIntelsCardsAndKeepsTheShare) {
  EXPECT_EQ(Resolve("card0-0"), At("0000:03:00.0", 0));
  EXPECT_EQ(Resolve("card1-2"), At("0000:05:00.0", 2));
  ExpectUnresolved(Resolve("card7-0"), "called card7");
  test::TempTree tree;
  const std::string folder =
      Put(tree, {.address = "0000:00:02.0", .where = "pci0000:00", .class_code = "0x030000"});
  tree.Link("sys/class/drm/card7/device", "../../../../" + folder);
  const base::FileTree root = tree.Open();
  EXPECT_EQ(Resolve("card7-0", &root), At("0000:00:02.0", 0)) << "graphics in the processor";
}

TEST(DeviceId, ResolvesPartsOfANicOnTheAuxiliaryBus) {
  test::TempTree tree;
  const std::string nic = Put(
      tree,
      {.address = "0000:5e:00.0", .where = "pci0000:5d/0000:5d:00.0", .class_code = "0x020000"});
  tree.Folder(nic + "/mlx5_core.sf.4")
      .Link("sys/bus/auxiliary/devices/mlx5_core.sf.4", "../../../../" + nic + "/mlx5_core.sf.4");
  const base::FileTree root = tree.Open();
  EXPECT_EQ(Resolve("mlx5_core.sf.4", &root), At("0000:5e:00.0", std::nullopt, "mlx5_core.sf.4"));
  ExpectUnresolved(Resolve("mlx5_core.sf.5", &root), "mlx5_core.sf.5: No such file");
  ExpectUnresolved(Resolve("mlx5_core.sf.4"), "known to sysfs alone");
  ExpectUnresolved(Resolve("../../x.sf.4", &root), "none of the forms");
}

TEST(DeviceId, SaysWhyNamesThatStandForNoFunctionStayUnresolved) {
  ExpectUnresolved(Resolve("tegra"), "Tegra");
  ExpectUnresolved(Resolve("tegra::1"), "Tegra");
  ExpectUnresolved(Resolve("all"), "every device of the plugin");
  ExpectUnresolved(Resolve("neuron3"), "\"neuron3\" of example.com/device has none of the forms");
  ExpectUnresolved(Resolve(""), "none of the forms");
  EXPECT_LT(Resolve(std::string(100'000, 'x')).reason.size(), 200u);
}

ResolvedDevice ResolveDra(const std::string& driver, const std::string& name,
                          const base::FileTree* root = nullptr,
                          const DraAttributes& attributes = {}) {
  return ResolveDraDevice(Node(), root, driver, name, attributes);
}

TEST(DraDevice, ResolvesNvidiasNamesByTheMinor) {
  const std::string driver = "gpu.nvidia.com";
  EXPECT_EQ(ResolveDra(driver, "gpu-0"), At("0000:3b:00.0"));
  EXPECT_EQ(ResolveDra(driver, "gpu-1"), At("0000:1b:00.0"));
  EXPECT_EQ(ResolveDra(driver, "gpu-0-mig-1g5gb-19-0"),
            At("0000:3b:00.0", std::nullopt, "mig-1g5gb-19-0"));
  ExpectUnresolved(ResolveDra(driver, "gpu-9"), "minor 9");
  ExpectUnresolved(ResolveDra(driver, "gpu-vfio-0"), "a list of its own");
  for (const char* name : {"gpu-", "gpu-x", "gpu-0-", "gpu-0-x", "channel-0", ""}) {
    ExpectUnresolved(ResolveDra(driver, name), "no device name of gpu.nvidia.com");
  }
}

TEST(DraDevice, ResolvesAmdsNamesByTheRenderNode) {
  const std::string driver = "gpu.amd.com";
  EXPECT_EQ(ResolveDra(driver, "gpu-1-129"), At("0000:05:00.0"));
  ExpectUnresolved(ResolveDra(driver, "gpu-1-130"), "called renderD130");
  ExpectUnresolved(ResolveDra(driver, "gpu-129"), "no device name of gpu.amd.com");
  test::TempTree tree;
  tree.Folder("sys/devices/platform/amdgpu_xcp_30/drm/renderD130")
      .Link("sys/devices/platform/amdgpu_xcp_30/drm/renderD130/device", "../..")
      .Link("sys/class/drm/renderD130", "/sys/devices/platform/amdgpu_xcp_30/drm/renderD130");
  const base::FileTree root = tree.Open();
  EXPECT_EQ(ResolveDra(driver, "gpu-2-130", &root),
            At("0000:05:00.0", std::nullopt, "amdgpu_xcp_30"));
}

TEST(DraDevice, ResolvesIntelsNamesIfTheDeviceIsStillTheSame) {
  const std::string driver = "gpu.intel.com";
  EXPECT_EQ(ResolveDra(driver, "0000-03-00-0-0x56c0"), At("0000:03:00.0"));
  ExpectUnresolved(ResolveDra(driver, "0000-03-00-0-0x56c1"), "device 56c0 now, not 56c1");
  ExpectUnresolved(ResolveDra(driver, "0000-99-00-0-0x56c0"), "no PCI function 0000:99:00.0");
  for (const char* name : {"", "-0x56c0", "0000-03-00-0", "03-00-0-0x", "0000:03:00.0-x"}) {
    ExpectUnresolved(ResolveDra(driver, name), "no device name of gpu.intel.com");
  }
}

TEST(DraDevice, GoesByWhatTheDriverPublishedBeforeItsName) {
  const DraAttributes at_3b = {.address = ParsePciAddress("0000:3b:00.0")};
  EXPECT_EQ(ResolveDra("dra.net", "eth1", nullptr, at_3b), At("0000:3b:00.0"));
  EXPECT_EQ(ResolveDra("gpu.nvidia.com", "gpu-vfio-0", nullptr, at_3b), At("0000:3b:00.0"));
  EXPECT_EQ(ResolveDra("gpu.nvidia.com", "gpu-0-mig-19-0-1", nullptr, at_3b),
            At("0000:3b:00.0", std::nullopt, "mig-19-0-1"));
}

TEST(DraDevice, GoesByTheUuidWhereNoAddressIsPublished) {
  EXPECT_EQ(ResolveDra("gpu.nvidia.com", "gpu-9", nullptr, {.gpu_uuid = kUuid1}), Resolve(kUuid1));
}

TEST(DraDevice, GoesByItsNameWhereWhatIsPublishedIsNotOfThisMachine) {
  const DraAttributes elsewhere = {.address = ParsePciAddress("0000:99:00.0")};
  EXPECT_EQ(ResolveDra("gpu.nvidia.com", "gpu-0", nullptr, elsewhere), At("0000:3b:00.0"));
  ExpectUnresolved(ResolveDra("dra.net", "eth1", nullptr, elsewhere),
                   "no PCI function 0000:99:00.0");
}

TEST(DraDevice, LeavesOtherDriversUnresolvedByName) {
  ExpectUnresolved(ResolveDra("dra.cpu", "cpudev004"), "the driver dra.cpu are not known");
}

}  // namespace
}  // namespace hwinfo
