#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <set>
#include <sstream>
#include <string>

#include "hwinfo/read.h"
#include "test/hwinfo/machine_tree.h"
#include "test/hwinfo/plain_sysfs.h"
#include "test/support/status.h"

// This host, against the tools that people trust. Each test skips where its tool is not installed.
namespace hwinfo {
namespace {

Topology ReadHost() {
  absl::StatusOr<Topology> topology = Read({});
  EXPECT_OK(topology);
  return topology.ok() ? *std::move(topology) : Topology{};
}

std::set<int> ToStd(const base::CpuSet& cpus) { return {cpus.begin(), cpus.end()}; }

TEST(LiveHost, HasTheCpusThatLscpuShows) {
  const std::optional<test::Lscpu> lscpu = test::RunLscpu("/");
  if (!lscpu) GTEST_SKIP() << "lscpu is not installed";
  const Topology topology = ReadHost();
  EXPECT_EQ(topology.source, "live");
  ASSERT_EQ(topology.cpus.size(), lscpu->cpus.size());
  for (const Cpu& cpu : topology.cpus) {
    ASSERT_TRUE(lscpu->cpus.contains(cpu.id));
    EXPECT_EQ(cpu.socket, lscpu->cpus.at(cpu.id).socket);
    EXPECT_EQ(cpu.core, lscpu->cpus.at(cpu.id).core);
  }
  for (const auto& [id, cpus] : lscpu->nodes) {
    ASSERT_NE(topology.FindNumaNode(id), nullptr) << id;
    EXPECT_EQ(ToStd(topology.FindNumaNode(id)->cpus), cpus) << id;
  }
}

TEST(LiveHost, HasTheNodesThatNumactlShows) {
  const std::optional<std::string> output = test::Run("LC_ALL=C numactl -H");
  if (!output || output->find("No NUMA") != std::string::npos) {
    GTEST_SKIP() << "numactl is not installed, or the kernel has no NUMA";
  }
  const Topology topology = ReadHost();
  std::set<int> nodes;
  std::vector<int> columns;
  std::istringstream lines(*output);
  for (std::string line; std::getline(lines, line);) {
    int id = -1;
    long mebibytes = 0;
    int used = 0;
    if (std::sscanf(line.c_str(), "node %d cpus:%n", &id, &used) == 1 && used > 0) {
      std::istringstream ids(line.substr(static_cast<std::size_t>(used)));
      std::set<int> cpus;
      for (int cpu = 0; ids >> cpu;) cpus.insert(cpu);
      ASSERT_NE(topology.FindNumaNode(id), nullptr) << id;
      EXPECT_EQ(ToStd(topology.FindNumaNode(id)->cpus), cpus) << id;
      nodes.insert(id);
    } else if (std::sscanf(line.c_str(), "node %d size: %ld MB", &id, &mebibytes) == 2) {
      ASSERT_NE(topology.FindNumaNode(id), nullptr) << id;
      EXPECT_EQ(topology.FindNumaNode(id)->memory_bytes.value_or(0) >> 20, mebibytes) << id;
    } else if (line.starts_with("node ") && columns.empty()) {
      std::istringstream ids(line.substr(5));
      for (int column = 0; ids >> column;) columns.push_back(column);
    } else if (std::sscanf(line.c_str(), "%d:%n", &id, &used) == 1 && used > 0) {
      std::istringstream row(line.substr(static_cast<std::size_t>(used)));
      std::map<int, int> distances;
      for (const int column : columns) row >> distances[column];
      EXPECT_EQ(topology.FindNumaNode(id)->distances, distances) << id;
    }
  }
  EXPECT_EQ(nodes.size(), topology.numa_nodes.size());
}

TEST(LiveHost, HasTheDevicesThatLspciShows) {
  const std::optional<std::string> output = test::Run("LC_ALL=C lspci -D -n");
  if (!output) GTEST_SKIP() << "lspci is not installed";
  const Topology topology = ReadHost();
  std::map<PciAddress, std::pair<int, int>> shown;
  std::set<PciAddress> wanted;  // NICs and 3D controllers: the classes without exceptions
  std::istringstream lines(*output);
  for (std::string line; std::getline(lines, line);) {
    unsigned device_class = 0;
    unsigned vendor = 0;
    unsigned device = 0;
    const std::string name = line.substr(0, line.find(' '));
    const std::optional<PciAddress> address = ParsePciAddress(name);
    ASSERT_TRUE(address.has_value()) << line;
    ASSERT_EQ(
        std::sscanf(line.c_str() + name.size(), " %4x: %4x:%4x", &device_class, &vendor, &device),
        3)
        << line;
    shown[*address] = {static_cast<int>(vendor), static_cast<int>(device)};
    if (device_class == 0x0200 || device_class == 0x0302) wanted.insert(*address);
  }
  for (const PciDevice& device : topology.devices) {
    ASSERT_TRUE(shown.contains(device.address)) << ToString(device.address);
    EXPECT_EQ(shown[device.address], std::make_pair(int{device.vendor}, int{device.device}));
    wanted.erase(device.address);
  }
  EXPECT_TRUE(wanted.empty()) << ToString(*wanted.begin());
}

TEST(LiveHost, IsSeenByLibnumaAndHwlocAsBySysfs) {
  const Topology topology = ReadHost();
  for (const char* code : {"LibnumaDiffers", "HwlocFailed", "HwlocNodesDiffer", "HwlocCpusDiffer",
                           "HwlocCoresDiffer"}) {
    EXPECT_EQ(test::FindDiagnostic(topology.diagnostics, code).message, "");
  }
  EXPECT_NE(topology.architecture, "");
  EXPECT_NE(topology.boot_id, "");
}

}  // namespace
}  // namespace hwinfo
