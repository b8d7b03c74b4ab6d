#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <functional>
#include <string>
#include <vector>

#include "hwinfo/read.h"
#include "test/hwinfo/machine_tree.h"
#include "test/support/status.h"

// Damaged machines: each is refused with a clear error, or read in part with a diagnostic that
// names the gap; none crashes, hangs or turns into a machine that looks whole.
namespace hwinfo {
namespace {

using absl::StatusCode;
using testing::HasSubstr;

struct Damage {
  std::string name;
  std::function<void(test::TempTree&)> inflict;
  std::string code;     // of the diagnostic that must be there
  std::string subject;  // and what it is about; "" for any
  std::string message;  // and a part of what it says
  std::string nodes = "0-1";
  std::string cpus = "0-7";
};

std::string Cpus(const std::string& name) { return test::kCpuFolder + name; }
std::string Nodes(const std::string& name) { return test::kNodeFolder + name; }

std::function<void(test::TempTree&)> Put(const std::string& path, const std::string& content) {
  return [=](test::TempTree& tree) { tree.Put(path, content); };
}
std::function<void(test::TempTree&)> Remove(const std::string& path) {
  return [=](test::TempTree& tree) { tree.Remove(path); };
}
std::function<void(test::TempTree&)> Replace(const std::string& path,
                                             const std::function<void(test::TempTree&)>& by) {
  return [=](test::TempTree& tree) {
    tree.Remove(path);
    by(tree);
  };
}
void MakeFifo(const test::TempTree& tree, const std::string& path) {
  ASSERT_EQ(mkfifo(tree.Path(path).c_str(), 0600), 0);
}

std::vector<Damage> CpuDamages() {
  const std::string online = Cpus("online");
  return {
      {"CpuOnlineIsEmpty", Put(online, ""), "SysfsUnreadable", online, "names no CPU"},
      {"CpuOnlineIsBinaryGarbage", Put(online, std::string("\x00\xff\x01\x80", 4)),
       "SysfsUnreadable", online, "is no id"},
      {"CpuOnlineIsBeyondAllLimits", Put(online, "0-4294967295\n"), "SysfsUnreadable", online,
       "4294967295"},
      {"CpuOnlineHasNegativeNumbers", Put(online, "-1-7\n"), "SysfsUnreadable", online, "is no id"},
      {"CpuOnlineRunsBackwards", Put(online, "7-0\n"), "SysfsUnreadable", online, "backwards"},
      {"CpuOnlineIsHuge", Put(online, std::string(9 << 20, '0')), "SysfsUnreadable", online,
       "larger than"},
      {"CpuOnlineIsAFolder", Replace(online, [=](test::TempTree& tree) { tree.Folder(online); }),
       "SysfsUnreadable", online, "no regular file"},
      {"CpuOnlineIsAFifo", Replace(online, [=](test::TempTree& tree) { MakeFifo(tree, online); }),
       "SysfsUnreadable", online, "no regular file"},
      {"CpuOnlineIsALinkLoop",
       Replace(online, [=](test::TempTree& tree) { tree.Link(online, "online"); }),
       "SysfsUnreadable", online, "/online"},
      {"CpuOnlineNamesAbsentCpus", Put(online, "0-9\n"), "CpuTopologyUnknown", "",
       "CPUs 8-9:", "0-1", "0-9"},
      {"CpuHasNoTopology", Remove(Cpus("cpu3/topology")), "CpuTopologyUnknown", "", "CPUs 3:"},
      {"CoreIdIsGarbage", Put(Cpus("cpu3/topology/core_id"), "three\n"), "CpuTopologyUnknown", "",
       "\"three"},
      {"SiblingsAreGarbage",
       [](test::TempTree& tree) {
         tree.Put(Cpus("cpu3/topology/thread_siblings_list"), "3-\n");
         tree.Put(Cpus("cpu3/topology/thread_siblings"), "xyz\n");
       },
       "CpuTopologyUnknown", "", "CPUs 3"},
      {"PresentIsGarbage", Put(Cpus("present"), "all of them\n"), "SysfsUnreadable",
       Cpus("present"), "is no id"},
      {"IsolatedIsGarbage", Put(Cpus("isolated"), "1,,2\n"), "SysfsUnreadable", Cpus("isolated"),
       "is no id"},
  };
}

std::vector<Damage> NodeDamages() {
  const std::string online = Nodes("online");
  return {
      {"NodeOnlineIsGarbage", Put(online, "none\n"), "SysfsUnreadable", online, "is no id"},
      {"NodeOnlineIsEmpty", Put(online, ""), "NumaNodesAbsent", "", "shows 0-1"},
      {"NodeOnlineNamesAbsentNodes", Put(online, "0-65535\n"), "NumaNodesAbsent", "", "0-65535"},
      {"NodeOnlineNamesOnlyAbsentNodes", Put(online, "5\n"), "NumaNodesAbsent", "", "\"5\""},
      {"NodeFolderIsAFile",
       Replace("sys/devices/system/node", Put("sys/devices/system/node", "no folder")),
       "NumaNodesInvisible", "", "node 0 stands", "0"},
      {"NodeHasNoCpulist",
       [](test::TempTree& tree) {
         tree.Remove(Nodes("node1/cpulist"));
         tree.Remove(Nodes("node1/cpumap"));
       },
       "SysfsUnreadable", Nodes("node1/cpulist"), "No such file"},
      {"CpulistIsBeyondAllLimits",
       [](test::TempTree& tree) {
         tree.Put(Nodes("node1/cpulist"), "2-99999999\n");
         tree.Remove(Nodes("node1/cpumap"));
       },
       "SysfsUnreadable", Nodes("node1/cpulist"), "99999999"},
      {"CpulistsContradictEachOther", Put(Nodes("node1/cpulist"), "0-7\n"), "NumaCpusOverlap", "",
       "0-1,4-5"},
      {"CpulistNamesCpusThatAreNotOnline", Put(Nodes("node1/cpulist"), "2-3,6-9\n"),
       "NumaCpusNotOnline", "node 1", "8-9"},
      {"CpulistLeavesCpusOut", Put(Nodes("node1/cpulist"), "2-3,6\n"), "CpusOnNoNumaNode", "",
       "CPUs 7"},
      {"MeminfoIsMissing", Remove(Nodes("node1/meminfo")), "SysfsUnreadable",
       Nodes("node1/meminfo"), "No such file"},
      {"MeminfoIsGarbage", Put(Nodes("node1/meminfo"), "MemTotal: lots kB\n"), "SysfsUnreadable",
       Nodes("node1/meminfo"), "no MemTotal"},
      {"MeminfoIsNegative", Put(Nodes("node1/meminfo"), "Node 1 MemTotal: -5 kB\n"),
       "SysfsUnreadable", Nodes("node1/meminfo"), "no MemTotal"},
      {"MeminfoOverflows", Put(Nodes("node1/meminfo"), "Node 1 MemTotal: 9223372036854775807 kB\n"),
       "SysfsUnreadable", Nodes("node1/meminfo"), "no MemTotal"},
      {"DistanceRowIsTooShort", Put(Nodes("node1/distance"), "21\n"), "DistancesMalformed",
       "node 1", "\"21\""},
      {"DistanceRowIsTooLong", Put(Nodes("node1/distance"), "21 10 21\n"), "DistancesMalformed",
       "node 1", "2 online"},
      {"DistanceIsNegative", Put(Nodes("node1/distance"), "21 -10\n"), "DistancesMalformed",
       "node 1", "-10"},
      {"DistanceIsMissing", Remove(Nodes("node1/distance")), "SysfsUnreadable",
       Nodes("node1/distance"), "No such file"},
      {"HugePagesAreNegative",
       [](test::TempTree& tree) {
         tree.Put(Nodes("node1/hugepages/hugepages-2048kB/nr_hugepages"), "-3\n");
         tree.Put(Nodes("node1/hugepages/hugepages-2048kB/free_hugepages"), "0\n");
       },
       "SysfsUnreadable", Nodes("node1/hugepages/hugepages-2048kB"), "negative"},
      {"HugePagesHaveNoCount",
       [](test::TempTree& tree) { tree.Folder(Nodes("node1/hugepages/hugepages-2048kB")); },
       "SysfsUnreadable", Nodes("node1/hugepages/hugepages-2048kB"), "nr_hugepages"},
  };
}

class DamagedTree : public testing::TestWithParam<Damage> {};
INSTANTIATE_TEST_SUITE_P(Cpus, DamagedTree, testing::ValuesIn(CpuDamages()),
                         [](const auto& test) { return test.param.name; });
std::vector<Damage> HwlocDamages() {
  return {
      {"HwlocWouldHangOnAFifo",
       [](test::TempTree& tree) {
         tree.Folder("sys/bus/pci/devices/0000:00:01.0");
         MakeFifo(tree, "sys/bus/pci/devices/0000:00:01.0/class");
       },
       "HwlocFailed", "", "no regular file"},
      {"HwlocWouldHangBehindALinkToAFolder",
       [](test::TempTree& tree) {
         tree.Folder("elsewhere/0000:00:01.0").Folder("sys/bus/pci");
         MakeFifo(tree, "elsewhere/0000:00:01.0/class");
         tree.Link("sys/bus/pci/devices", "../../../elsewhere");
       },
       "HwlocFailed", "", "it is damaged"},
      {"HwlocWouldAbortOverNodesThatCannotBe", Put(Nodes("online"), "4000000000\n"), "HwlocFailed",
       "", "it is damaged"},
      {"HwlocWouldReadAnEndlessFile",
       [](test::TempTree& tree) { tree.Link("sys/class/dax", "/dev/zero"); }, "HwlocFailed", "",
       "no regular file"},
      {"HwlocWouldReadAHugeFile",
       [](test::TempTree& tree) {
         tree.Put("proc/cpuinfo", "");
         ASSERT_EQ(truncate(tree.Path("proc/cpuinfo").c_str(), off_t{1} << 33), 0);
       },
       "HwlocFailed", "", "8589934592 bytes"},
  };
}

INSTANTIATE_TEST_SUITE_P(Nodes, DamagedTree, testing::ValuesIn(NodeDamages()),
                         [](const auto& test) { return test.param.name; });
INSTANTIATE_TEST_SUITE_P(Hwloc, DamagedTree, testing::ValuesIn(HwlocDamages()),
                         [](const auto& test) { return test.param.name; });

TEST_P(DamagedTree, IsReadInPartWithADiagnostic) {
  test::TempTree tree;
  test::PutTwoSocketMachine(tree);
  GetParam().inflict(tree);
  ASSERT_OK_AND_ASSIGN(const Topology topology, Read({.root = tree.root(), .xml = {}}));
  EXPECT_EQ(topology.NumaNodeIds().ToString(), GetParam().nodes);
  EXPECT_EQ(topology.OnlineCpus().ToString(), GetParam().cpus);
  const base::Diagnostic found =
      test::FindDiagnostic(topology.diagnostics, GetParam().code, GetParam().subject);
  EXPECT_THAT(found.message, HasSubstr(GetParam().message)) << [&] {
    std::string all;
    for (const base::Diagnostic& diagnostic : topology.diagnostics) {
      all += fmt::format("{} [{}] {}\n", diagnostic.code, diagnostic.subject, diagnostic.message);
    }
    return all;
  }();
}

TEST(MalformedRoot, ThatIsNotThereIsNotFound) {
  EXPECT_THAT(Read({.root = "/no/such/root", .xml = {}}),
              test::StatusIs(StatusCode::kNotFound, HasSubstr("/no/such/root")));
}

TEST(MalformedRoot, ThatIsAFileIsNotFound) {
  test::TempTree tree;
  tree.Put("file", "");
  EXPECT_THAT(Read({.root = tree.Path("file"), .xml = {}}),
              test::StatusIs(StatusCode::kNotFound, HasSubstr("/file")));
}

TEST(MalformedRoot, ThatIsEmptyNamesWhatIsMissing) {
  const test::TempTree tree;
  EXPECT_THAT(Read({.root = tree.root(), .xml = {}}),
              test::StatusIs(StatusCode::kNotFound, HasSubstr("sys/devices/system/cpu")));
}

TEST(MalformedRoot, WithoutAnyCpuIsNotFound) {
  test::TempTree tree;
  tree.Folder("sys/devices/system/cpu");
  EXPECT_THAT(Read({.root = tree.root(), .xml = {}}),
              test::StatusIs(StatusCode::kNotFound, HasSubstr("no online CPU")));
}

TEST(MalformedRoot, ThatIsAllOnesIsNotTakenForAMachineOf65536Cpus) {
  test::TempTree tree;
  tree.Put(Cpus("online"), "0-65536\n").Put(Cpus("kernel_max"), "65536\n");
  EXPECT_THAT(Read({.root = tree.root(), .xml = {}}),
              test::StatusIs(StatusCode::kNotFound, HasSubstr("no online CPU")));
}

// Root reads everything, so the files are read as nobody.
TEST(MalformedRoot, UnreadableFilesAreToldFromMissingOnes) {
  test::TempTree tree;
  test::PutTwoSocketMachine(tree);
  ASSERT_EQ(chmod(tree.root().c_str(), 0755), 0);
  ASSERT_EQ(chmod(tree.Path(Nodes("node1/meminfo")).c_str(), 0), 0);
  ASSERT_EQ(chmod(tree.Path(Nodes("node1/cpulist")).c_str(), 0), 0);
  const uid_t self = geteuid();
  if (self == 0) {
    ASSERT_EQ(seteuid(65534), 0);
  }
  const absl::StatusOr<Topology> topology = Read({.root = tree.root(), .xml = {}});
  ASSERT_EQ(seteuid(self), 0);
  ASSERT_OK(topology);
  EXPECT_THAT(test::FindDiagnostic(topology->diagnostics, "SysfsUnreadable", Nodes("node1/meminfo"))
                  .message,
              HasSubstr("Permission denied"));
  EXPECT_EQ(topology->numa_nodes[1].memory_bytes, std::nullopt);
  EXPECT_EQ(topology->numa_nodes[1].kind, NumaNodeKind::kDram) << "unknown is not 0";
  EXPECT_EQ(topology->numa_nodes[1].cpus.ToString(), "2-3,6-7") << "by the mask";
}

struct BadXml {
  std::string name;
  std::string content;
};
class MalformedXml : public testing::TestWithParam<BadXml> {};
INSTANTIATE_TEST_SUITE_P(
    All, MalformedXml,
    testing::Values(BadXml{"Empty", ""}, BadXml{"Text", "no XML at all"},
                    BadXml{"OtherXml", "<system version=\"1\"><cpu numaid=\"0\"/></system>"},
                    BadXml{"Version3",
                           "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!DOCTYPE topology "
                           "SYSTEM \"hwloc2.dtd\">\n<topology version=\"3.0\">\n</topology>\n"},
                    BadXml{"NoObjects",
                           "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!DOCTYPE topology "
                           "SYSTEM \"hwloc2.dtd\">\n<topology version=\"2.0\">\n</topology>\n"},
                    BadXml{"Unclosed",
                           "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!DOCTYPE topology "
                           "SYSTEM \"hwloc2.dtd\">\n<topology version=\"2.0\">\n<object "
                           "type=\"Machine\" cpuset=\"0x1\">\n"},
                    BadXml{"Binary", std::string("\x7f"
                                                 "ELF\0\0\0\xff",
                                                 8)}),
    [](const auto& test) { return test.param.name; });

TEST_P(MalformedXml, IsRefused) {
  test::TempTree tree;
  tree.Put("machine.xml", GetParam().content);
  EXPECT_THAT(Read({.root = "/", .xml = tree.Path("machine.xml")}),
              test::StatusIs(StatusCode::kInvalidArgument, HasSubstr("machine.xml")));
}

// hwloc sets bit 4,000,000,000 of a bitmap: half a gigabyte for each of its sets.
TEST(MalformedXml, ThatWouldEatOurMemoryIsTriedElsewhere) {
  test::TempTree tree;
  tree.Put("machine.xml", R"(<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE topology SYSTEM "hwloc2.dtd">
<topology version="2.0">
  <object type="Machine" os_index="0" cpuset="0x1" complete_cpuset="0x1" allowed_cpuset="0x1" nodeset="0x1" complete_nodeset="0x1" allowed_nodeset="0x1" gp_index="1">
    <object type="NUMANode" os_index="0" cpuset="0x1" complete_cpuset="0x1" nodeset="0x1" complete_nodeset="0x1" gp_index="2" local_memory="1024"/>
    <object type="PU" os_index="4000000000" cpuset="0x1" complete_cpuset="0x1" nodeset="0x1" complete_nodeset="0x1" gp_index="3"/>
  </object>
</topology>
)");
  EXPECT_THAT(Read({.root = "/", .xml = tree.Path("machine.xml")}),
              test::StatusIs(StatusCode::kInvalidArgument, HasSubstr("it is damaged")));
}

TEST(MalformedXml, ThatIsNotThereIsNotFound) {
  EXPECT_THAT(Read({.root = "/", .xml = "/no/such/machine.xml"}),
              test::StatusIs(StatusCode::kNotFound, HasSubstr("/no/such")));
}

TEST(MalformedXml, ThatIsAFifoDoesNotStopUs) {
  test::TempTree tree;
  MakeFifo(tree, "fifo");
  EXPECT_THAT(Read({.root = "/", .xml = tree.Path("fifo")}),
              test::StatusIs(StatusCode::kInvalidArgument, HasSubstr("no regular file")));
}

}  // namespace
}  // namespace hwinfo
