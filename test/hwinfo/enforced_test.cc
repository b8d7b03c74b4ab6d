#include "hwinfo/enforced.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "hwinfo/cgroup_names.h"
#include "test/support/status.h"
#include "test/support/temp_tree.h"

namespace hwinfo {
namespace {

using absl::StatusCode;
using base::CpuSet;
using base::NumaMask;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;
using testing::SizeIs;

constexpr char kTop[] = "sys/fs/cgroup/";
constexpr char kUid[] = "0c1e7a52-1111-2222-3333-444455556666";
constexpr char kUidOfSystemd[] = "0c1e7a52_1111_2222_3333_444455556666";

std::string Id(char digit) { return std::string(64, digit); }

// A v2 cgroup, as a kernel with cpuset and memory enabled shows it.
void PutV2(test::TempTree& tree, const std::string& path, const std::string& cpus,
           const std::string& mems, const std::string& numa_stat = "anon N0=0\n") {
  const std::string folder = kTop + path;
  tree.Put(folder + "/cgroup.procs", "")
      .Put(folder + "/cpuset.cpus.effective", cpus + "\n")
      .Put(folder + "/cpuset.mems.effective", mems + "\n")
      .Put(folder + "/memory.numa_stat", numa_stat);
}

test::TempTree& MakeV2(test::TempTree& tree) {
  tree.Put(std::string(kTop) + "cgroup.controllers", "cpuset cpu io memory hugetlb pids\n")
      .Put(std::string(kTop) + "cpuset.cpus.effective", "0-15\n")
      .Put(std::string(kTop) + "cpuset.mems.effective", "0-1\n");
  return tree;
}

Enforced Read(const test::TempTree& tree) { return ReadEnforced(tree.Open()).value(); }

const std::string kSlice = fmt::format("kubepods.slice/kubepods-pod{}.slice", kUidOfSystemd);

TEST(Enforced, ReadsV2UnderSystemdsNames) {
  test::TempTree tree;
  MakeV2(tree);
  const std::string scope = fmt::format("{}/cri-containerd-{}.scope", kSlice, Id('a'));
  PutV2(tree, scope, "4-11", "0", "anon N0=61203283968 N1=0\nfile N0=1000 N1=24\n");
  const Enforced enforced = Read(tree);
  ASSERT_THAT(enforced.containers, SizeIs(1));
  const ContainerCgroup& container = enforced.containers[0];
  EXPECT_EQ(container.path, scope);
  EXPECT_EQ(container.pod_uid, kUid);
  EXPECT_EQ(container.container_id, Id('a'));
  EXPECT_EQ(container.cpus, (CpuSet{4, 5, 6, 7, 8, 9, 10, 11}));
  EXPECT_EQ(container.memory_nodes, NumaMask{0});
  EXPECT_TRUE(container.resident_known);
  EXPECT_THAT(container.resident_bytes, ElementsAre(Pair(0, 61203284968), Pair(1, 24)));
  EXPECT_THAT(enforced.diagnostics, IsEmpty());
}

TEST(Enforced, ReadsV1UnderTheCgroupfsDriversNamesAndCountsPages) {
  test::TempTree tree;
  const std::string path = fmt::format("kubepods/burstable/pod{}/{}", kUid, Id('b'));
  tree.Put(kTop + std::string("cpuset/") + path + "/cpuset.effective_cpus", "2-3\n")
      .Put(kTop + std::string("cpuset/") + path + "/cpuset.effective_mems", "1\n")
      .Put(kTop + std::string("cpuset/") + path + "/cpuset.cpus", "2-5\n")
      .Put(kTop + std::string("memory/") + path + "/memory.numa_stat",
           "total=1 N0=1 N1=0\nhierarchical_total=5 N0=2 N1=3\n");
  const Enforced enforced = Read(tree);
  ASSERT_THAT(enforced.containers, SizeIs(1));
  EXPECT_EQ(enforced.containers[0].path, path);
  EXPECT_EQ(enforced.containers[0].pod_uid, kUid);
  EXPECT_EQ(enforced.containers[0].cpus, (CpuSet{2, 3})) << "effective, not what was asked for";
  EXPECT_EQ(enforced.containers[0].memory_nodes, NumaMask{1});
  const std::int64_t page = sysconf(_SC_PAGESIZE);
  EXPECT_THAT(enforced.containers[0].resident_bytes,
              ElementsAre(Pair(0, 2 * page), Pair(1, 3 * page)));
}

TEST(Enforced, FallsBackToThePlainFilesOnOldV1Kernels) {
  test::TempTree tree;
  const std::string path = fmt::format("kubepods/pod{}/{}", kUid, Id('b'));
  tree.Put(kTop + std::string("cpuset/") + path + "/cpuset.cpus", "2-5\n")
      .Put(kTop + std::string("cpuset/") + path + "/cpuset.mems", "0\n");
  const Enforced enforced = Read(tree);
  ASSERT_THAT(enforced.containers, SizeIs(1));
  EXPECT_EQ(enforced.containers[0].cpus, (CpuSet{2, 3, 4, 5}));
  EXPECT_FALSE(enforced.containers[0].resident_known) << "no memory controller: not known";
}

TEST(Enforced, ReadsTheHybridLayoutWhereMemoryIsInTheUnifiedTree) {
  test::TempTree tree;
  const std::string path = fmt::format("kubepods/pod{}/{}", kUid, Id('c'));
  tree.Put(kTop + std::string("cpuset,cpu/") + path + "/cpuset.effective_cpus", "7\n")
      .Put(kTop + std::string("unified/cgroup.controllers"), "memory hugetlb\n")
      .Put(kTop + std::string("unified/") + path + "/memory.numa_stat", "anon N1=4096\n");
  const Enforced enforced = Read(tree);
  ASSERT_THAT(enforced.containers, SizeIs(1));
  EXPECT_EQ(enforced.containers[0].cpus, CpuSet{7});
  EXPECT_EQ(enforced.containers[0].memory_nodes, std::nullopt) << "no file up to the top";
  EXPECT_THAT(enforced.containers[0].resident_bytes, ElementsAre(Pair(1, 4096)));
}

TEST(Enforced, FindsPodsUnderAnyCgroupRoot) {
  test::TempTree tree;
  MakeV2(tree);
  PutV2(tree,
        fmt::format("kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-besteffort.slice/"
                    "kubelet-kubepods-besteffort-pod{}.slice/cri-containerd-{}.scope",
                    kUidOfSystemd, Id('d')),
        "0-15", "0-1");
  PutV2(tree, fmt::format("system.slice/k3s.service/kubepods/pod{}/{}", kUid, Id('e')), "1", "0");
  const Enforced enforced = Read(tree);
  ASSERT_THAT(enforced.containers, SizeIs(2));
  EXPECT_EQ(enforced.containers[0].container_id, Id('d'));
  EXPECT_EQ(enforced.containers[0].pod_uid, kUid);
  EXPECT_EQ(enforced.containers[1].container_id, Id('e'));
}

TEST(Enforced, GoesDownToTheCgroupThatCrunPutsTheProcessesIn) {
  test::TempTree tree;
  MakeV2(tree);
  const std::string scope = fmt::format("{}/crio-{}.scope", kSlice, Id('a'));
  PutV2(tree, scope, "0-15", "0-1", "anon N0=5\n");
  PutV2(tree, scope + "/container", "8-9", "1", "anon N0=4\n");
  const Enforced enforced = Read(tree);
  ASSERT_THAT(enforced.containers, SizeIs(1));
  EXPECT_EQ(enforced.containers[0].path, scope + "/container");
  EXPECT_EQ(enforced.containers[0].cpus, (CpuSet{8, 9}));
  EXPECT_EQ(enforced.containers[0].memory_nodes, NumaMask{1});
  EXPECT_THAT(enforced.containers[0].resident_bytes, ElementsAre(Pair(0, 5)))
      << "memory of the whole container";
}

TEST(Enforced, LeavesOutCrioSMonitorsAndWhatContainersNestThemselves) {
  test::TempTree tree;
  MakeV2(tree);
  const std::string scope = fmt::format("{}/crio-{}.scope", kSlice, Id('a'));
  PutV2(tree, scope, "4", "0");
  PutV2(tree, fmt::format("{}/crio-conmon-{}.scope", kSlice, Id('a')), "0-15", "0-1");
  PutV2(tree, fmt::format("{}/docker/{}", scope, Id('f')), "4", "0");
  const Enforced enforced = Read(tree);
  ASSERT_THAT(enforced.containers, SizeIs(1));
  EXPECT_EQ(enforced.containers[0].path, scope);
}

TEST(Enforced, TakesTheNearestAncestorsSetWhereTheCpusetControllerIsNotEnabled) {
  test::TempTree tree;
  MakeV2(tree);
  const std::string scope = fmt::format("{}/cri-containerd-{}.scope", kSlice, Id('a'));
  tree.Put(kTop + std::string("kubepods.slice/cpuset.cpus.effective"), "0-7\n")
      .Put(kTop + scope + "/cgroup.procs", "");
  const Enforced enforced = Read(tree);
  ASSERT_THAT(enforced.containers, SizeIs(1));
  EXPECT_EQ(enforced.containers[0].cpus->ToString(), "0-7") << "from kubepods.slice";
  EXPECT_EQ(enforced.containers[0].memory_nodes->ToString(), "0-1") << "from the top";
}

TEST(Enforced, BelievesTheEffectiveSetAfterSystemdEmptiedTheOneAskedFor) {
  test::TempTree tree;
  MakeV2(tree);
  const std::string scope = fmt::format("{}/cri-containerd-{}.scope", kSlice, Id('a'));
  PutV2(tree, scope, "0-15", "0-1");
  tree.Put(kTop + scope + "/cpuset.cpus", "\n").Put(kTop + scope + "/cpuset.mems", "\n");
  EXPECT_EQ(Read(tree).containers.at(0).cpus->ToString(), "0-15");
}

TEST(Enforced, TakesAnEmptyListForTheEmptySetAndNotForCpu0) {
  test::TempTree tree;
  MakeV2(tree);
  PutV2(tree, fmt::format("{}/cri-containerd-{}.scope", kSlice, Id('a')), "", "");
  const Enforced enforced = Read(tree);
  ASSERT_THAT(enforced.containers, SizeIs(1));
  EXPECT_EQ(enforced.containers[0].cpus, CpuSet());
  EXPECT_EQ(enforced.containers[0].memory_nodes, NumaMask());
}

TEST(Enforced, ShowsTheBoundOfAllPodsWhichMayBeLessThanTheMachine) {
  test::TempTree tree;
  MakeV2(tree);
  PutV2(tree, "kubepods.slice", "0-11", "0");
  const Enforced enforced = Read(tree);
  EXPECT_EQ(enforced.all_pods_cpus->ToString(), "0-11");
  EXPECT_EQ(enforced.all_pods_memory_nodes, NumaMask{0});
  EXPECT_THAT(enforced.containers, IsEmpty());
}

TEST(Enforced, RaisesNoAlarmForExclusivityFlagsThatKubeletsNeverSet) {
  test::TempTree tree;
  MakeV2(tree);
  const std::string scope = fmt::format("{}/cri-containerd-{}.scope", kSlice, Id('a'));
  PutV2(tree, scope, "4-5", "0");
  tree.Put(kTop + scope + "/cpuset.cpus.partition", "member\n")
      .Put(kTop + scope + "/cpuset.cpu_exclusive", "0\n");
  EXPECT_THAT(Read(tree).diagnostics, IsEmpty());
}

TEST(Enforced, TellsNoCgroupsFromNoPods) {
  test::TempTree none;
  none.Folder("sys");
  EXPECT_THAT(ReadEnforced(none.Open()),
              test::StatusIs(StatusCode::kNotFound, HasSubstr("cgroup")));
  test::TempTree strange;
  strange.Folder("sys/fs/cgroup/freezer");
  EXPECT_THAT(ReadEnforced(strange.Open()),
              test::StatusIs(StatusCode::kNotFound, HasSubstr("no cgroups with cpuset")));
  test::TempTree empty;
  MakeV2(empty);
  Enforced nothing;
  nothing.folders = {"sys/fs/cgroup"};
  EXPECT_EQ(Read(empty), nothing);
}

TEST(Enforced, KeepsWhatItCanReadOfADamagedCgroupAndNamesTheRest) {
  test::TempTree tree;
  MakeV2(tree);
  const std::string scope = fmt::format("{}/cri-containerd-{}.scope", kSlice, Id('a'));
  PutV2(tree, scope, "4-x", "0", "anon N0=lots\n");
  const Enforced enforced = Read(tree);
  ASSERT_THAT(enforced.containers, SizeIs(1));
  EXPECT_EQ(enforced.containers[0].cpus, std::nullopt) << "not the parent's: this one is damaged";
  EXPECT_EQ(enforced.containers[0].memory_nodes, NumaMask{0});
  EXPECT_FALSE(enforced.containers[0].resident_known);
  ASSERT_THAT(enforced.diagnostics, SizeIs(2));
  EXPECT_EQ(enforced.diagnostics[0].subject, scope);
  EXPECT_THAT(enforced.diagnostics[0].message, HasSubstr("\"N0=lots\""));
  EXPECT_THAT(enforced.diagnostics[1].message, HasSubstr("cpuset.cpus.effective: "));
}

TEST(Enforced, EndsOnATreeThatIsEndless) {
  test::TempTree tree;
  MakeV2(tree);
  tree.Link(std::string(kTop) + "again", ".").Link(std::string(kTop) + "loop", "loop");
  EXPECT_THAT(Read(tree).containers, IsEmpty());
}

TEST(CgroupNames, ReadUidsAndIdsOfEveryRuntimeAndDriver) {
  EXPECT_EQ(PodUidOf(fmt::format("pod{}", kUid)), kUid);
  EXPECT_EQ(PodUidOf(fmt::format("kubepods-burstable-pod{}.slice", kUidOfSystemd)), kUid);
  EXPECT_EQ(PodUidOf("pod" + std::string(32, '7')), std::string(32, '7')) << "a static pod";
  for (const char* name : {"burstable", "kubepods-burstable.slice", "pod", "poda/b"}) {
    EXPECT_EQ(PodUidOf(name), std::nullopt) << name;
  }
  for (const std::string prefix : {"", "crio-", "cri-containerd-", "docker-"}) {
    EXPECT_EQ(ContainerIdOf(prefix + Id('a')), Id('a'));
    EXPECT_EQ(ContainerIdOf(prefix + Id('a') + ".scope"), Id('a'));
  }
  EXPECT_EQ(ContainerIdOf("crio-conmon-" + Id('a') + ".scope"), std::nullopt);
  EXPECT_EQ(ContainerIdOf("crio-" + Id('a').substr(1) + ".scope"), std::nullopt);
  EXPECT_TRUE(IsControlFile("cpuset.cpus.effective"));
  EXPECT_TRUE(IsControlFile("tasks"));
  EXPECT_FALSE(IsControlFile("system.slice"));
  EXPECT_FALSE(IsControlFile("kubepods"));
}

TEST(Enforced, NamesTheFoldersInWhichPodsAndContainersComeAndGo) {
  test::TempTree tree;
  MakeV2(tree);
  const std::string scope = fmt::format("{}/cri-containerd-{}.scope", kSlice, Id('a'));
  PutV2(tree, scope, "4-11", "0");
  PutV2(tree, "kubepods.slice/kubepods-burstable.slice", "0-15", "0-1");
  PutV2(tree, "system.slice/sshd.service", "0-15", "0-1");
  EXPECT_THAT(Read(tree).folders,
              ElementsAre("sys/fs/cgroup", std::string(kTop) + "kubepods.slice",
                          std::string(kTop) + "kubepods.slice/kubepods-burstable.slice",
                          kTop + kSlice, kTop + scope));
}

}  // namespace
}  // namespace hwinfo
