#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "hwinfo/read.h"
#include "test/hwinfo/hwloc_digest.h"
#include "test/hwinfo/machine_tree.h"
#include "test/hwinfo/plain_sysfs.h"
#include "test/support/shared.h"
#include "test/support/status.h"

// Every recorded machine, against three other readings of it: a digest of what hwloc said when it
// was recorded, lscpu, and a plain reading of the same files.
namespace hwinfo {
namespace {

namespace fs = std::filesystem;

// Where hwloc is known to mislead, or the recording is known to be odd: machine, fact, reason.
struct Exception {
  std::string machine;
  std::string fact;
  std::string reason;
};
const std::vector<Exception>& Exceptions() {
  static const std::vector<Exception> kExceptions = {
      {"8em64t-2s2ca2c-buggynuma", "nodes", "hwloc merges nodes whose cpumaps are the same"},
      {"8em64t-2s2ca2c-buggynuma", "distances", "of the merged nodes"},
  };
  return kExceptions;
}

bool IsExcepted(const std::string& machine, const std::string& fact) {
  return std::ranges::any_of(Exceptions(), [&](const Exception& exception) {
    return exception.machine == machine && exception.fact == fact;
  });
}

// "machines/synthetic/dgx-h100.tar.xz" -> "dgx-h100"
std::string NameOf(const std::string& file) {
  std::string name = fs::path(file).filename();
  for (const char* ending : {".tar.bz2", ".tar.xz", ".tar.gz", ".xml"}) {
    if (name.ends_with(ending)) name.resize(name.size() - std::string(ending).size());
  }
  return name;
}

// The digest of a machine that hwloc saw as we let it see: with everything that its own cgroup did
// not allow, and with the GPUs' memory.
std::optional<test::HwlocDigest> DigestOf(const std::string& file) {
  const std::string name = NameOf(file);
  const std::string kind = file.ends_with(".xml") ? "xml" : "fsroot";
  for (const std::string& path : {
           fmt::format("machines/hwloc/golden-2.9.0/{}.{}.disallowed.txt", kind, name),
           fmt::format("machines/hwloc/golden-2.9.0/{}.{}.keep.txt", kind, name),
           fmt::format("machines/hwloc/golden-2.9.0/{}.{}.txt", kind, name),
           fmt::format("machines/synthetic/hwloc-digests/{}.keep.txt", name),
           fmt::format("machines/synthetic/hwloc-digests/{}.hwloc290.txt", name),
           fmt::format("machines/real/lstopo-xml/{}.digest.txt", name),
       }) {
    if (fs::exists(fs::path(*test::SharedFolder()) / path)) {
      return test::ParseHwlocDigest(test::ReadShared(path));
    }
  }
  return std::nullopt;
}

std::vector<std::string> Roots() {
  std::vector<std::string> roots;
  for (const char* folder :
       {"machines/hwloc/fsroot", "machines/real/sysfs", "machines/synthetic"}) {
    for (const std::string& file : test::SharedFiles(folder, "")) {
      if (file.find(".tar.") != std::string::npos) roots.push_back(file);
    }
  }
  return roots;
}

std::vector<std::string> Xmls() {
  std::vector<std::string> files = test::SharedFiles("machines/hwloc/xml", ".xml");
  for (const std::string& file : test::SharedFiles("machines/real/lstopo-xml", ".xml")) {
    files.push_back(file);
  }
  return files;
}

std::string TestName(const testing::TestParamInfo<std::string>& info) {
  std::string name = NameOf(info.param);
  std::ranges::replace_if(
      name, [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; }, '_');
  return name;
}

std::set<int> ToStd(const base::CpuSet& cpus) { return {cpus.begin(), cpus.end()}; }

int CountCores(const Topology& topology) {
  std::set<base::CpuSet> cores;
  for (const Cpu& cpu : topology.cpus) cores.insert(cpu.siblings);
  return static_cast<int>(cores.size());
}

int CountKinds(const Topology& topology) {
  std::set<int> kinds;
  for (const Cpu& cpu : topology.cpus) kinds.insert(cpu.kind);
  return static_cast<int>(kinds.size());
}

void ExpectNodesAsInDigest(const Topology& topology, const test::HwlocDigest& digest) {
  ASSERT_EQ(topology.numa_nodes.size(), digest.nodes.size());
  for (const NumaNode& node : topology.numa_nodes) {
    SCOPED_TRACE(fmt::format("node {}", node.id));
    ASSERT_TRUE(digest.nodes.contains(node.id));
    const test::HwlocDigest::Node& expected = digest.nodes.at(node.id);
    EXPECT_EQ(node.nearest_cpus, expected.cpus);
    EXPECT_EQ(node.memory_type, expected.subtype == "DRAM" ? "" : expected.subtype);
    EXPECT_EQ(node.memory_bytes.value_or(0) >> 20, expected.mebibytes);
    if (!expected.gpu.empty()) {
      EXPECT_EQ(node.gpu, ParsePciAddress(expected.gpu));
    }
  }
}

void ExpectPciAsInDigest(const Topology& topology, const test::HwlocDigest& digest) {
  base::NumaMask with_cpus;
  for (const NumaNode& node : topology.numa_nodes) {
    if (!node.cpus.empty()) with_cpus.Insert(node.id);
  }
  for (const PciDevice& device : topology.devices) {
    const auto expected = digest.pci.find(ToString(device.address));
    if (expected == digest.pci.end()) continue;  // digests leave out some classes
    EXPECT_EQ(device.hwloc_numa_nodes, expected->second & with_cpus) << expected->first;
  }
}

void ExpectAsInDigest(const std::string& machine, const Topology& topology,
                      const test::HwlocDigest& digest) {
  EXPECT_EQ(topology.OnlineCpus(), digest.cpus);
  EXPECT_EQ(topology.sockets.size(), digest.packages.size());
  for (const Socket& socket : topology.sockets) {
    ASSERT_TRUE(digest.packages.contains(socket.id)) << socket.id;
    EXPECT_EQ(socket.cpus, digest.packages.at(socket.id).cpus) << socket.id;
  }
  if (digest.cores > 0) {
    EXPECT_EQ(CountCores(topology), digest.cores);
  }
  EXPECT_EQ(CountKinds(topology), digest.cpu_kinds);
  if (!IsExcepted(machine, "nodes")) {
    ExpectNodesAsInDigest(topology, digest);
    ExpectPciAsInDigest(topology, digest);
  }
  if (!digest.distances.empty() && !IsExcepted(machine, "distances")) {
    std::map<int, std::map<int, int>> distances;
    for (const NumaNode& node : topology.numa_nodes) distances[node.id] = node.distances;
    EXPECT_EQ(distances, digest.distances);
  }
}

void ExpectAsPlainlyRead(const Topology& topology, const std::string& root) {
  const std::set<int> online = ToStd(topology.OnlineCpus());
  const std::set<int> listed = test::PlainList(root + "/sys/devices/system/cpu/online");
  if (!listed.empty()) {
    EXPECT_EQ(online, listed);
  }
  const std::map<int, test::PlainNode> nodes = test::PlainNodes(root);
  ASSERT_EQ(topology.numa_nodes.size(), nodes.size());
  std::vector<int> ids;
  for (const auto& [id, node] : nodes) ids.push_back(id);
  for (const NumaNode& node : topology.numa_nodes) {
    SCOPED_TRACE(fmt::format("node {}", node.id));
    ASSERT_TRUE(nodes.contains(node.id));
    const test::PlainNode& plain = nodes.at(node.id);
    std::set<int> cpus;
    std::ranges::set_intersection(plain.cpus, online, std::inserter(cpus, cpus.end()));
    if (fs::exists(fmt::format("{}/sys/devices/system/node/node{}/cpulist", root, node.id))) {
      EXPECT_EQ(ToStd(node.cpus), cpus);
    }
    if (plain.kibibytes) {
      EXPECT_EQ(node.memory_bytes, *plain.kibibytes * 1024);
    }
    if (plain.distances.size() == ids.size()) {
      std::map<int, int> row;
      for (std::size_t k = 0; k < ids.size(); ++k) row[ids[k]] = plain.distances[k];
      EXPECT_EQ(node.distances, row);
    }
  }
  const std::map<std::string, int> pci = test::PlainPciNodes(root);
  for (const PciDevice& device : topology.devices) {
    const auto plain = pci.find(ToString(device.address));
    if (plain == pci.end()) continue;
    EXPECT_EQ(device.sysfs_numa_node, plain->second) << plain->first;
    const bool settled_by_itself = device.locality == LocalitySource::kNumaNode;
    EXPECT_EQ(settled_by_itself, topology.FindNumaNode(plain->second) != nullptr) << plain->first;
    if (settled_by_itself) {
      EXPECT_EQ(device.numa_node, plain->second) << plain->first;
    }
  }
}

// lscpu knows the CPUs by its own reading of the masks; where it cannot read a tree it says
// nothing.
void ExpectAsLscpuSays(const std::string& machine, const Topology& topology,
                       const std::string& root) {
  const std::optional<test::Lscpu> lscpu = test::RunLscpu(root);
  if (!lscpu) {
    GTEST_LOG_(INFO) << "lscpu is not there, or cannot read " << machine;
    return;
  }
  if (IsExcepted(machine, "lscpu")) return;
  std::set<int> online;
  for (const auto& [id, cpu] : lscpu->cpus) online.insert(id);
  EXPECT_EQ(ToStd(topology.OnlineCpus()), online);
  for (const Cpu& cpu : topology.cpus) {
    const auto other = lscpu->cpus.find(cpu.id);
    if (other == lscpu->cpus.end()) continue;
    EXPECT_EQ(cpu.socket, other->second.socket) << "CPU " << cpu.id;
    EXPECT_EQ(cpu.core, other->second.core) << "CPU " << cpu.id;
  }
  for (const auto& [id, cpus] : lscpu->nodes) {
    const NumaNode* node = topology.FindNumaNode(id);
    ASSERT_NE(node, nullptr) << id;
    std::set<int> shown;
    std::ranges::set_intersection(cpus, online, std::inserter(shown, shown.end()));
    EXPECT_EQ(ToStd(node->cpus), shown) << "node " << id;
  }
}

// Trees of thousands of files are unpacked in memory where that can be.
class RecordedRoot : public testing::TestWithParam<std::string> {
 protected:
  RecordedRoot() {
    if (fs::is_directory("/dev/shm")) setenv("TMPDIR", "/dev/shm", 1);
  }
};
class RecordedXml : public testing::TestWithParam<std::string> {};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(RecordedRoot);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(RecordedXml);
INSTANTIATE_TEST_SUITE_P(All, RecordedRoot, testing::ValuesIn(Roots()), TestName);
INSTANTIATE_TEST_SUITE_P(All, RecordedXml, testing::ValuesIn(Xmls()), TestName);

TEST_P(RecordedRoot, AgreesWithHwlocsDigestWithLscpuAndWithAPlainReading) {
  const test::TempTree tree;
  const std::string root = test::UnpackShared(GetParam(), tree);
  const std::string machine = NameOf(GetParam());
  ASSERT_OK_AND_ASSIGN(const Topology topology, Read({.root = root, .xml = {}}));
  EXPECT_EQ(topology.source, "root " + root);
  EXPECT_TRUE(topology.numa_visible);
  EXPECT_EQ(test::FindDiagnostic(topology.diagnostics, "HwlocFailed"), base::Diagnostic{});
  ExpectAsPlainlyRead(topology, root);
  ExpectAsLscpuSays(machine, topology, root);
  if (const auto digest = DigestOf(GetParam())) ExpectAsInDigest(machine, topology, *digest);
}

TEST_P(RecordedXml, AgreesWithHwlocsDigest) {
  const std::string path = *test::SharedFolder() + "/" + GetParam();
  ASSERT_OK_AND_ASSIGN(const Topology topology, Read({.root = "/", .xml = path}));
  EXPECT_EQ(topology.source, "xml " + path);
  EXPECT_NE(test::FindDiagnostic(topology.diagnostics, "HwlocOnly"), base::Diagnostic{});
  const auto digest = DigestOf(GetParam());
  ASSERT_TRUE(digest.has_value());
  ExpectAsInDigest(NameOf(GetParam()), topology, *digest);
}

TEST(RecordedMachines, AreAllThere) {
  SKIP_WITHOUT_SHARED();
  EXPECT_GE(Roots().size(), 33U);
  EXPECT_GE(Xmls().size(), 15U);
}

}  // namespace
}  // namespace hwinfo
