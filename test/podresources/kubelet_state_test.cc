#include "podresources/kubelet_state.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <string>

#include "test/support/status.h"
#include "test/support/temp_tree.h"

namespace podresources {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;
using testing::SizeIs;

constexpr const char* kRootDir = "/var/lib/kubelet";
constexpr const char* kLogs = "/var/log/pods";

const base::Diagnostic* Find(const base::Diagnostics& diagnostics, const std::string& code,
                             const std::string& subject) {
  for (const base::Diagnostic& diagnostic : diagnostics) {
    if (diagnostic.code == code && diagnostic.subject == subject) return &diagnostic;
  }
  return nullptr;
}

TEST(CpuManagerState, GivesPolicySharedPoolAndExclusiveCpusByUidAndContainer) {
  ASSERT_OK_AND_ASSIGN(const CpuManagerState state, ParseCpuManagerState(R"({
    "policyName":"static","defaultCpuSet":"1,3,15-31,47-63",
    "entries":{"uid2":{"init-container":"35"},
               "uid1":{"app":"0,2,4-14,32,34,36-46","init-container":"33"}},
    "checksum":123})"));
  EXPECT_EQ(state.policy, "static");
  EXPECT_EQ(state.default_cpus.ToString(), "1,3,15-31,47-63");
  ASSERT_THAT(state.entries, SizeIs(2));
  EXPECT_EQ(state.entries.at("uid2").at("init-container"), (base::CpuSet{35}));
  EXPECT_EQ(state.entries.at("uid1").at("app").ToString(), "0,2,4-14,32,34,36-46");
  EXPECT_EQ(state.entries.at("uid1").at("init-container"), (base::CpuSet{33}));
}

TEST(CpuManagerState, OfPolicyNoneHasNothingElse) {
  ASSERT_OK_AND_ASSIGN(
      const CpuManagerState state,
      ParseCpuManagerState(R"({"policyName":"none","defaultCpuSet":"","checksum":1353318690})"));
  EXPECT_EQ(state.policy, "none");
  EXPECT_TRUE(state.default_cpus.empty());
  EXPECT_THAT(state.entries, IsEmpty());
}

TEST(CpuManagerState, OfKubelet137GoesByItsNestedCopyAndHasPodLevelCpus) {
  ASSERT_OK_AND_ASSIGN(const CpuManagerState state, ParseCpuManagerState(R"({
    "policyName":"static","defaultCpuSet":"0-3","entries":{"u":{"c":"4"}},"checksum":1,
    "data":"{\"policyName\":\"static\",\"defaultCpuSet\":\"0-1\",\"entries\":{\"u\":{\"c\":\"4\"}},\"podEntries\":{\"u\":{\"cpuSet\":\"4-7\"}}}",
    "dataChecksum":2})"));
  EXPECT_EQ(state.default_cpus.ToString(), "0-1");
  EXPECT_EQ(state.entries.at("u").at("c"), (base::CpuSet{4}));
  EXPECT_THAT(state.pod_entries, ElementsAre(Pair("u", base::CpuSet{4, 5, 6, 7})));
}

TEST(CpuManagerState, SaysWhatIsWrongAndWhere) {
  const auto wrong = [](const std::string& json, const std::string& what) {
    EXPECT_THAT(ParseCpuManagerState(json),
                test::StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(what)))
        << json;
  };
  wrong("", "the file is empty");
  wrong("[]", "not an object");
  wrong(R"({"policyName":"static","defaultCp)", "at byte 33 of 33");
  wrong(R"({"defaultCpuSet":"0"})", "policyName: is missing");
  wrong(R"({"policyName":7})", "policyName: is not a string");
  wrong(R"({"policyName":"static","defaultCpuSet":"0-x"})", "defaultCpuSet");
  wrong(R"({"policyName":"static"})", "defaultCpuSet: is missing");
  wrong(R"({"policyName":"static","defaultCpuSet":null})", "defaultCpuSet: is not a string");
  wrong(R"({"policyName":"static","defaultCpuSet":"","entries":{"u":{"c":3}}})",
        "entries.u.c: is not a string");
  wrong(R"({"policyName":"static","defaultCpuSet":"","entries":[]})", "entries: is not an object");
  wrong(R"({"policyName":"static","policyName":"none"})", "\"policyName\" appears twice");
  wrong(R"({"policyName":"static","entries":{"u":{"c":"1","c":"2"}}})", "\"c\" appears twice");
  wrong(R"({"policyName":"static"} trailing)", "at byte 24");
}

TEST(CpuManagerState, TakesDeepNestingWithoutDeepRecursion) {
  const std::string deep = std::string(500000, '[') + std::string(500000, ']');
  EXPECT_OK(
      ParseCpuManagerState(R"({"policyName":"static","defaultCpuSet":"","other":)" + deep + "}"));
}

// As seen on disk, one state after the other, while a kubelet cleaned up after a container with
// CPUs 2 and 18.
TEST(CpuManagerState, IsHalfOfAChangeWhileCpusAreOnTheirWayToThePool) {
  const auto read = [](const std::string& json) {
    auto state = ParseCpuManagerState(json);
    EXPECT_OK(state);
    return state.value_or(CpuManagerState());
  };
  const base::CpuSet allocatable = {1, 2, 17, 18};
  const CpuManagerState before =
      read(R"({"policyName":"static","defaultCpuSet":"0-1,16-17","entries":{"u":{"c1":"2,18"}}})");
  const CpuManagerState between = read(R"({"policyName":"static","defaultCpuSet":"0-1,16-17"})");
  const CpuManagerState after = read(R"({"policyName":"static","defaultCpuSet":"0-2,16-18"})");
  EXPECT_FALSE(IsHalfOfAChange(before, allocatable));
  EXPECT_TRUE(IsHalfOfAChange(between, allocatable));
  EXPECT_FALSE(IsHalfOfAChange(after, allocatable));
}

TEST(CpuManagerState, IsWholeWithEachCpuInThePoolOrSomebodys) {
  CpuManagerState state;
  state.policy = "static";
  state.default_cpus = {0, 1};
  state.entries["u"]["c"] = {2};
  state.pod_entries["v"] = {3, 4};
  state.entries["v"]["c"] = {3};
  EXPECT_FALSE(IsHalfOfAChange(state, {1, 2, 3, 4}));
  EXPECT_TRUE(IsHalfOfAChange(state, {1, 2, 3, 4, 5}));
  // Reserved ones are not to be had, nor those that came online after the kubelet started.
  state.default_cpus = {1};
  EXPECT_FALSE(IsHalfOfAChange(state, {1, 2, 3, 4}));
}

TEST(CpuManagerState, IsNeverHalfOfAChangeUnderAPolicyThatKeepsNoAccount) {
  CpuManagerState state;
  state.policy = "none";
  EXPECT_FALSE(IsHalfOfAChange(state, {0, 1}));
}

TEST(MemoryManagerState, GivesNodesWithTheirGroupsAndTables) {
  ASSERT_OK_AND_ASSIGN(const MemoryManagerState state, ParseMemoryManagerState(R"({
    "policyName":"Static","machineState":{
      "0":{"numberOfAssignments":1,"memoryMap":{"memory":{"total":99759243264,
        "systemReserved":10538188800,"allocatable":78483636224,"reserved":78215200768,
        "free":268435456}},"cells":[0,1]},
      "8":{"numberOfAssignments":1,"memoryMap":{"memory":{"total":99283886080,
        "systemReserved":1101004800,"allocatable":87445463040,"reserved":13052854272,
        "free":74392608768}},"cells":[0,8]}}})"));
  EXPECT_EQ(state.policy, "Static");
  ASSERT_THAT(state.nodes, SizeIs(2));
  EXPECT_EQ(state.nodes.at(0).group, (base::NumaMask{0, 1}));
  EXPECT_EQ(state.nodes.at(8).group, (base::NumaMask{0, 8}));
  EXPECT_EQ(state.nodes.at(0).assignments, 1);
  EXPECT_EQ(state.nodes.at(0).memory.at("memory"),
            (MemoryTable{99759243264, 10538188800, 78483636224, 78215200768, 268435456}));
}

TEST(MemoryManagerState, GivesBlocksByUidAndContainerSorted) {
  ASSERT_OK_AND_ASSIGN(const MemoryManagerState state, ParseMemoryManagerState(R"({
    "policyName":"Static","machineState":null,"entries":{"u":{"c":[
      {"numaAffinity":[1,0],"type":"memory","size":268435456},
      {"numaAffinity":[1],"type":"hugepages-2Mi","size":33554432}]}},
    "podEntries":{"v":{"memoryBlocks":[{"numaAffinity":[0],"type":"memory","size":1024}]}},
    "checksum":7})"));
  EXPECT_THAT(state.entries.at("u").at("c"),
              ElementsAre(MemoryBlock{"hugepages-2Mi", 33554432, {1}},
                          MemoryBlock{"memory", 268435456, {0, 1}}));
  EXPECT_THAT(state.pod_entries.at("v"), ElementsAre(MemoryBlock{"memory", 1024, {0}}));
}

MemoryManagerState StateOfMemory(std::int64_t reserved) {
  MemoryManagerState state;
  state.policy = "Static";
  state.nodes[0].memory["memory"] = {
      .total = 32, .allocatable = 30, .reserved = reserved, .free = 30 - reserved};
  return state;
}

TEST(MemoryManagerState, IsHalfOfAChangeWhileAContainersMemoryIsReservedForNobody) {
  MemoryManagerState state = StateOfMemory(7);
  state.entries["u"] = {{"c0", {{"memory", 3, {0}}}}, {"c1", {{"memory", 4, {0}}}}};
  EXPECT_FALSE(IsHalfOfAChange(state));
  state.entries["u"].erase("c1");
  EXPECT_TRUE(IsHalfOfAChange(state));
  state.nodes = StateOfMemory(3).nodes;
  EXPECT_FALSE(IsHalfOfAChange(state));
}

TEST(MemoryManagerState, IsHalfOfAChangeWhileAPodHasWhatIsNotReserved) {
  MemoryManagerState state = StateOfMemory(9);
  state.entries["u"]["c0"] = {{"memory", 3, {0}}};  // a part of the pod's
  state.pod_entries["u"] = {{"memory", 9, {0}}};
  EXPECT_FALSE(IsHalfOfAChange(state));
  state.entries.clear();
  EXPECT_FALSE(IsHalfOfAChange(state));
  state.nodes = StateOfMemory(0).nodes;
  EXPECT_TRUE(IsHalfOfAChange(state));
  state.pod_entries.clear();
  EXPECT_FALSE(IsHalfOfAChange(state));
}

TEST(MemoryManagerState, IsWholeWithMemoryOfTwoNumaNodesAndBlocksThatWereEmptied) {
  MemoryManagerState state = StateOfMemory(30);
  state.nodes[1] = StateOfMemory(10).nodes[0];
  state.entries["u"] = {{"init", {{"memory", 0, {0, 1}}}}, {"c", {{"memory", 40, {0, 1}}}}};
  EXPECT_FALSE(IsHalfOfAChange(state));
  state.nodes[1].memory["hugepages-2Mi"].reserved = 2;
  EXPECT_TRUE(IsHalfOfAChange(state));
}

TEST(MemoryManagerState, IsNeverHalfOfAChangeUnderAPolicyThatKeepsNoAccount) {
  MemoryManagerState state = StateOfMemory(1);
  state.policy = "None";
  EXPECT_FALSE(IsHalfOfAChange(state));
}

TEST(MemoryManagerState, SaysWhatIsWrongAndWhere) {
  const auto wrong = [](const std::string& json, const std::string& what) {
    EXPECT_THAT(ParseMemoryManagerState(R"({"policyName":"Static")" + json + "}"),
                test::StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(what)))
        << json;
  };
  const auto wrong_node = [&wrong](const std::string& node, const std::string& what) {
    wrong(R"(,"machineState":{"0":{"numberOfAssignments":0,)" + node + "}}", what);
  };
  const auto wrong_entry = [&wrong](const std::string& entry, const std::string& what) {
    wrong(R"(,"machineState":{},"entries":{"u":{"c":)" + entry + "}}", what);
  };
  const std::string node = R"({"numberOfAssignments":0,"memoryMap":null,"cells":[1]})";
  wrong("", "machineState: is missing");
  wrong(R"(,"machineState":{"a":{}})", "machineState.a: is no NUMA node id");
  wrong(R"(,"machineState":{"-1":{}})", "machineState.-1: is no NUMA node id");
  wrong(R"(,"machineState":{"1":)" + node + R"(,"01":)" + node + "}", "named before");
  wrong(R"(,"machineState":{"0":null})", "machineState.0: is not an object");
  wrong_node(R"("memoryMap":{},"cells":[0,"1"])", "machineState.0.cells");
  wrong_node(R"("memoryMap":{})", "machineState.0.cells: is missing");
  wrong_node(R"("cells":[0],"memoryMap":{"memory":{"total":-1}})",
             "machineState.0.memoryMap.memory.total: is not a number");
  wrong_node(R"("cells":[0],"memoryMap":{"memory":{"total":9223372036854775808}})", "2^63-1");
  wrong_node(R"("cells":[0],"memoryMap":{"memory":{"total":1}})", "systemReserved: is missing");
  wrong_entry(R"([{"size":1}])", "entries.u.c.type: is missing");
  wrong_entry(R"([{"type":"memory","size":1}])", "entries.u.c.numaAffinity: is missing");
  wrong_entry("{}", "entries.u.c: is not a list");
}

TEST(DeviceCheckpoint, GivesDevicesWithTheUnionOfTheirNumaNodes) {
  ASSERT_OK_AND_ASSIGN(const DeviceCheckpoint checkpoint, ParseDeviceCheckpoint(R"({
    "Data":{"PodDeviceEntries":[
      {"PodUID":"u","ContainerName":"c","ResourceName":"nvidia.com/gpu",
       "DeviceIDs":{"0":["GPU-1"],"1":["GPU-1","GPU-0"]},"AllocResp":"Cg=="},
      {"PodUID":"u","ContainerName":"c","ResourceName":"example.com/nic",
       "DeviceIDs":{"-1":["n0"]},"AllocResp":null},
      {"PodUID":"u","ContainerName":"c","ResourceName":"nvidia.com/gpu",
       "DeviceIDs":{"0":["GPU-1"]},"AllocResp":"Cg=="},
      {"PodUID":"v","ContainerName":"old","ResourceName":"example.com/nic",
       "DeviceIDs":["n2","n1"],"AllocResp":""}],
     "RegisteredDevices":{"nvidia.com/gpu":["GPU-1","GPU-0","GPU-1"],"gone.com/x":null}},
    "Checksum":3166431064})"));
  EXPECT_THAT(checkpoint.entries.at("u").at("c"),
              ElementsAre(Device{"example.com/nic", "n0", {}, false},
                          Device{"nvidia.com/gpu", "GPU-0", {1}, false},
                          Device{"nvidia.com/gpu", "GPU-1", {0, 1}, false}));
  EXPECT_THAT(checkpoint.entries.at("v").at("old"),
              ElementsAre(Device{"example.com/nic", "n1", {}, false},
                          Device{"example.com/nic", "n2", {}, false}));
  EXPECT_THAT(checkpoint.registered,
              ElementsAre(Pair("gone.com/x", IsEmpty()),
                          Pair("nvidia.com/gpu", ElementsAre("GPU-0", "GPU-1"))));
}

TEST(DeviceCheckpoint, MarksADeviceOnANodeThatCannotBe) {
  ASSERT_OK_AND_ASSIGN(const DeviceCheckpoint checkpoint, ParseDeviceCheckpoint(R"({"Data":{
    "PodDeviceEntries":[{"PodUID":"u","ContainerName":"c","ResourceName":"r",
      "DeviceIDs":{"4294967295":["d"]}}],"RegisteredDevices":null},"Checksum":1})"));
  EXPECT_THAT(checkpoint.entries.at("u").at("c"), ElementsAre(Device{"r", "d", {}, true}));
}

TEST(DeviceCheckpoint, SaysWhatIsWrongAndWhere) {
  const auto wrong = [](const std::string& json, const std::string& what) {
    EXPECT_THAT(ParseDeviceCheckpoint(json),
                test::StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(what)))
        << json;
  };
  wrong("{}", "Data: is missing");
  wrong(R"({"Data":{"PodDeviceEntries":[]}})", "Data.RegisteredDevices: is missing");
  wrong(R"({"Data":{"PodDeviceEntries":{},"RegisteredDevices":null}})",
        "Data.PodDeviceEntries: is not a list");
  wrong(R"({"Data":{"PodDeviceEntries":[{"PodUID":"u","ContainerName":"c"}],
         "RegisteredDevices":null}})",
        "ResourceName: is missing");
  wrong(R"({"Data":{"PodDeviceEntries":[{"PodUID":"u","ContainerName":"c","ResourceName":"r",
         "DeviceIDs":{"x":[]}}],"RegisteredDevices":null}})",
        "[u/c].DeviceIDs.x: is no NUMA node id");
}

class ReadKubeletStateTest : public testing::Test {
 protected:
  KubeletState Read() { return ReadKubeletState(tree_.Open(), kRootDir, kLogs); }
  void PutAll() {
    tree_.Put("var/lib/kubelet/cpu_manager_state", R"({"policyName":"none","defaultCpuSet":""})")
        .Put("var/lib/kubelet/memory_manager_state", R"({"policyName":"None","machineState":{}})")
        .Put("var/lib/kubelet/device-plugins/kubelet_internal_checkpoint",
             R"({"Data":{"PodDeviceEntries":null,"RegisteredDevices":{}}})")
        .Folder("var/log/pods/ml_llm-0_0c1e");
  }
  test::TempTree tree_;
};

TEST_F(ReadKubeletStateTest, ReadsAllFourWithoutADiagnostic) {
  PutAll();
  const KubeletState state = Read();
  EXPECT_TRUE(state.cpu && state.memory && state.devices && state.pod_logs);
  EXPECT_THAT(state.diagnostics, IsEmpty());
}

TEST_F(ReadKubeletStateTest, NamesEachFileThatIsAbsent) {
  const KubeletState state = Read();
  EXPECT_FALSE(state.cpu || state.memory || state.devices || state.pod_logs);
  for (const char* path :
       {"/var/lib/kubelet/cpu_manager_state", "/var/lib/kubelet/memory_manager_state",
        "/var/lib/kubelet/device-plugins/kubelet_internal_checkpoint", "/var/log/pods"}) {
    EXPECT_NE(Find(state.diagnostics, "KubeletFileAbsent", path), nullptr) << path;
  }
}

TEST_F(ReadKubeletStateTest, NamesADamagedFileAndReadsTheOthers) {
  PutAll();
  tree_.Put("var/lib/kubelet/cpu_manager_state", R"({"policyName":"static","entr)");
  const KubeletState state = Read();
  EXPECT_FALSE(state.cpu);
  EXPECT_TRUE(state.memory && state.devices);
  const base::Diagnostic* damaged =
      Find(state.diagnostics, "KubeletFileDamaged", "/var/lib/kubelet/cpu_manager_state");
  ASSERT_NE(damaged, nullptr);
  EXPECT_THAT(damaged->message, HasSubstr(tree_.Path("var/lib/kubelet/cpu_manager_state")));
  EXPECT_THAT(damaged->message, HasSubstr("at byte 28"));
}

TEST_F(ReadKubeletStateTest, TellsAForbiddenFileFromAnAbsentOne) {
  PutAll();
  ASSERT_EQ(chmod(tree_.root().c_str(), 0755), 0);
  ASSERT_EQ(chmod(tree_.Path("var/lib/kubelet/cpu_manager_state").c_str(), 0), 0);
  const base::FileTree tree = tree_.Open();
  const uid_t before = geteuid();
  constexpr uid_t kNobody = 65534;
  const bool root = before == 0;
  ASSERT_EQ(root ? seteuid(kNobody) : 0, 0);
  const KubeletState state = ReadKubeletState(tree, kRootDir, kLogs);
  ASSERT_EQ(root ? seteuid(before) : 0, 0);
  EXPECT_FALSE(state.cpu);
  EXPECT_TRUE(state.memory);
  EXPECT_NE(Find(state.diagnostics, "KubeletFileForbidden", "/var/lib/kubelet/cpu_manager_state"),
            nullptr);
}

TEST_F(ReadKubeletStateTest, RefusesAFileThatIsTooLarge) {
  PutAll();
  tree_.Put("var/lib/kubelet/memory_manager_state",
            std::string(base::FileTree::kMaxFileBytes + 1, ' '));
  const KubeletState state = Read();
  EXPECT_FALSE(state.memory);
  EXPECT_NE(
      Find(state.diagnostics, "KubeletFileUnreadable", "/var/lib/kubelet/memory_manager_state"),
      nullptr);
}

TEST_F(ReadKubeletStateTest, AcceptsTheFormatByContainerIdWithADiagnostic) {
  PutAll();
  tree_.Put("var/lib/kubelet/cpu_manager_state",
            R"({"policyName":"static","defaultCpuSet":"0","entries":{"4d1f":"1-2"}})");
  const KubeletState state = Read();
  ASSERT_TRUE(state.cpu);
  EXPECT_EQ(state.cpu->entries.at("4d1f").at(""), (base::CpuSet{1, 2}));
  EXPECT_NE(Find(state.diagnostics, "CpuStateByContainerId", "/var/lib/kubelet/cpu_manager_state"),
            nullptr);
}

TEST_F(ReadKubeletStateTest, SplitsPodLogFoldersAndLeavesOutOthers) {
  PutAll();
  tree_.Folder("var/log/pods/kube-system_dns-0.x_d4a0f2").Folder("var/log/pods/9c0ab1");
  tree_.Folder("var/log/pods/a_b_c_d").Folder("var/log/pods/_b_c").Folder("var/log/pods/a__c");
  EXPECT_THAT(*Read().pod_logs, ElementsAre(PodLogFolder{"kube-system", "dns-0.x", "d4a0f2"},
                                            PodLogFolder{"ml", "llm-0", "0c1e"}));
}

TEST_F(ReadKubeletStateTest, HasAFingerprintThatChangesWithEachFile) {
  PutAll();
  const std::string before = Read().fingerprint;
  EXPECT_EQ(Read().fingerprint, before);
  // The kubelet replaces its files: same size, perhaps the same millisecond, another inode.
  tree_.Put("var/lib/kubelet/new", R"({"policyName":"NONE","machineState":{}})");
  ASSERT_EQ(rename(tree_.Path("var/lib/kubelet/new").c_str(),
                   tree_.Path("var/lib/kubelet/memory_manager_state").c_str()),
            0);
  const std::string replaced = Read().fingerprint;
  EXPECT_NE(replaced, before);
  tree_.Remove("var/lib/kubelet/cpu_manager_state");
  EXPECT_NE(Read().fingerprint, replaced);
  EXPECT_EQ(FingerprintKubeletState(tree_.Open(), "/var/lib/kubelet", "/var/log/pods"),
            Read().fingerprint);
}

// Written by the state code of kubelet v1.37.2 itself, with PodLevelResourceManagers on; ctest runs
// in the source folder.
TEST(ReadKubeletState, ReadsWhatKubelet137Wrote) {
  ASSERT_OK_AND_ASSIGN(const base::FileTree tree,
                       base::FileTree::Open("test/podresources/kubelet-1.37.2"));
  const std::string uid = "7e1c2f80-6d0a-4d5c-9b8a-1f2e3d4c5b6a";
  const std::string pod_level = "aa1c2f80-6d0a-4d5c-9b8a-1f2e3d4c5b6a";
  const KubeletState state = ReadKubeletState(tree, "/", "/pods");
  ASSERT_TRUE(state.cpu && state.memory && state.devices);
  EXPECT_EQ(state.cpu->policy, "static");
  EXPECT_EQ(state.cpu->default_cpus, (base::CpuSet{0, 1, 4, 5}));
  EXPECT_THAT(state.cpu->entries.at(uid),
              ElementsAre(Pair("app", base::CpuSet{2, 6}), Pair("init", base::CpuSet{3})));
  EXPECT_THAT(state.cpu->pod_entries, ElementsAre(Pair(pod_level, base::CpuSet{7})));
  EXPECT_EQ(state.memory->policy, "Static");
  EXPECT_EQ(state.memory->nodes.at(1).memory.at("memory"),
            (MemoryTable{4096, 1024, 3072, 1024, 2048}));
  EXPECT_EQ(state.memory->nodes.at(0).group, (base::NumaMask{0, 1}));
  EXPECT_THAT(state.memory->entries.at(uid).at("app"),
              ElementsAre(MemoryBlock{"memory", 4096, {0, 1}}));
  EXPECT_THAT(state.memory->pod_entries.at(pod_level),
              ElementsAre(MemoryBlock{"memory", 512, {1}}));
  EXPECT_THAT(state.devices->entries.at(uid).at("app"),
              ElementsAre(Device{"example.com/gpu", "gpu2", {1}, false},
                          Device{"example.com/gpu", "gpu3", {1}, false},
                          Device{"example.com/gpu", "gpu9", {}, false}));
  EXPECT_THAT(state.devices->registered.at("example.com/gpu"), SizeIs(5));
}

}  // namespace
}  // namespace podresources
