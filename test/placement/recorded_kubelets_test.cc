#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidjson/document.h>

#include <map>
#include <sstream>
#include <string>

#include "hwinfo/enforced.h"
#include "podresources/replay.h"
#include "test/placement/scene.h"
#include "test/support/shared.h"
#include "test/support/status.h"
#include "test/support/temp_tree.h"

// What real kubelets said, observed on the machines that they ran on, must agree with what the
// runtime was told, what the kernel enforced, and what the containers printed.
namespace placement {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Not;

const std::string kSamples = "kube/samples/podresources/";

std::vector<std::string> Lines(const std::string& file) {
  std::istringstream in(test::ReadShared(kSamples + file));
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

Facts FactsOf(const std::string& list, const std::string& allocatable,
              const hwinfo::Topology& topology) {
  Facts facts;
  facts.node_name = "recorded";
  facts.topology = topology;
  facts.assignments = podresources::ParseRecording(
      fmt::format(R"({{"list": {}, "allocatable": {}}})", test::ReadShared(kSamples + list),
                  test::ReadShared(kSamples + allocatable)));
  return facts;
}

// Four NUMA nodes of four cores with two threads: core c has CPUs c and c + 16.
hwinfo::Topology FourNodes() {
  return Machine({{.id = 0, .cpus = "0-3,16-19", .memory = 32 * kGiB, .socket = 0},
                  {.id = 1, .cpus = "4-7,20-23", .memory = 32 * kGiB, .socket = 0},
                  {.id = 2, .cpus = "8-11,24-27", .memory = 32 * kGiB, .socket = 1},
                  {.id = 3, .cpus = "12-15,28-31", .memory = 32 * kGiB, .socket = 1}});
}

// "0 4-6,20-22 memory 8589934592 gpu1": what a pod of one container holds.
std::string Holdings(const PlacedPod& pod) {
  const PlacedContainer& container = pod.containers.at(0);
  std::string text =
      fmt::format("on {}: cpus {}", pod.numa_nodes.ToString(), container.cpus.ToString());
  for (const PlacedMemory& memory : container.memory) {
    text += fmt::format(" {} {}", memory.type, memory.bytes >> 20);
  }
  for (const HeldDevices& held : container.devices) {
    for (const std::string& id : held.ids) text += " " + id;
  }
  return text;
}

std::map<std::string, std::string> Pods(const Observation& seen) {
  std::map<std::string, std::string> pods;
  for (const PlacedPod& pod : seen.placement.pods) pods[pod.name] = Holdings(pod);
  return pods;
}

std::int64_t FreeOf(const Observation& seen, const std::string& zone, const std::string& resource) {
  const NrtResource* found = FindResource(seen, zone, resource);
  return found == nullptr ? -1 : found->available.value_or(-1);
}

TEST(RecordedKubelet, OfFourNumaNodesHasPodsAndFreeResourcesWhereItPutThem) {
  SKIP_WITHOUT_SHARED();
  const Facts facts = FactsOf("fake4-list.json", "fake4-alloc.json", FourNodes());
  ASSERT_OK(facts.assignments.status());
  const Observation seen = Observe(facts);
  using Pod = std::pair<const std::string, std::string>;
  EXPECT_THAT(
      Pods(seen),
      ElementsAre(Pod("a-fake-node", "on 0: cpus 1-2,17-18 memory 4096 gpu0 gpu4"),
                  Pod("b-fake-node", "on 1: cpus 4-6,20-22 hugepages-2Mi 64 memory 8192 gpu1"),
                  Pod("c-fake-node", "on 2: cpus 8-11,24-27 memory 4096 gpu2 gpu6"),
                  Pod("shared-fake-node", "on 0: cpus  memory 1024")));
  EXPECT_EQ(seen.placement.summary.aligned, 4);
  EXPECT_EQ(seen.placement.summary.free,
            "0: 0 gpu 2 cpu · 1: 1 gpu 2 cpu · 2: 0 gpu 0 cpu · 3: 2 gpu 8 cpu");
  EXPECT_EQ(seen.placement.kubelet.reserved_cpus, Cpus("0,16"));
  EXPECT_EQ(FreeOf(seen, "node-0", "memory"), 33017561088 - 5 * kGiB);
  EXPECT_EQ(FreeOf(seen, "node-1", "hugepages-2Mi"), kGiB - (64 << 20));
  EXPECT_EQ(FreeOf(seen, "node-3", "example.com/gpu"), 2);
}

TEST(RecordedKubelet, GaveTheRuntimeTheCpusThatAreShown) {
  SKIP_WITHOUT_SHARED();
  const Observation seen = Observe(FactsOf("fake4-list.json", "fake4-alloc.json", FourNodes()));
  base::CpuSet free = *seen.placement.kubelet.reserved_cpus;
  for (const NumaNodePlacement& node : seen.placement.numa_nodes) free |= *node.free_cpus;
  int compared = 0;
  for (const std::string& line : Lines("fake4-cri.ndjson")) {
    rapidjson::Document told;
    ASSERT_FALSE(told.Parse(line.c_str()).HasParseError()) << line;
    const PlacedPod* pod = FindPod(seen, told["pod"].GetString());
    ASSERT_NE(pod, nullptr) << line;
    const base::CpuSet& own = pod->containers.at(0).cpus;
    EXPECT_EQ((own.empty() ? free : own).ToString(), told["cpus"].GetString()) << line;
    EXPECT_EQ(pod->numa_nodes.ToString(), told["mems"].GetString()) << line;
    ++compared;
  }
  EXPECT_EQ(compared, 4);
}

TEST(RecordedKubelet, OfOneNumaNodeKeepsDevicesWhoseClaimsCannotBe) {
  SKIP_WITHOUT_SHARED();
  const hwinfo::Topology topology =
      Machine({{.id = 0, .cpus = "0-1", .memory = 24 * kGiB, .socket = 0}});
  for (const char* list : {"vm-list.json", "vm-list-with-shared.json"}) {
    const Observation seen = Observe(FactsOf(list, "vm-alloc.json", topology));
    using Pod = std::pair<const std::string, std::string>;
    EXPECT_THAT(Pods(seen), ElementsAre(Pod("pinned-vm-node", "on 0: cpus 1 memory 64 gpu0")));
    EXPECT_EQ(seen.placement.summary.free, "0: 1 gpu 0 cpu");
    EXPECT_EQ(seen.placement.devices.size(), 4U);
    EXPECT_EQ(FreeOf(seen, "node-0", "memory"), 20629901312 - (64 << 20));
    EXPECT_EQ(FreeOf(seen, "node-0", "example.com/gpu"), 1);
    EXPECT_EQ(FindZone(seen, "node-1"), nullptr);
    EXPECT_THAT(Codes(seen), Contains("DeviceClaimsUnknownNumaNode"));
  }
}

// The guest had two sockets and two NUMA nodes; its cgroups, log folders and the containers' own
// output were recorded beside the kubelet's answers.
class RecordedGuest : public testing::Test {
 protected:
  void SetUp() override {
    SKIP_WITHOUT_SHARED();
    facts_ = FactsOf("guest-list.json", "guest-alloc.json",
                     Machine({{.id = 0, .cpus = "0-3", .memory = 2 * kGiB, .socket = 0},
                              {.id = 1, .cpus = "4-7", .memory = 2 * kGiB, .socket = 1}}));
    ASSERT_OK(facts_.assignments.status());
    ReadPrinted();
    LayDownCgroups();
    facts_.enforced = hwinfo::ReadEnforced(tree_.Open());
    ASSERT_OK(facts_.enforced.status());
    FillState();
  }

  // The log folders, and below each name what the container said of itself.
  void ReadPrinted() {
    facts_.state.pod_logs.emplace();
    std::string pod;
    for (const std::string& line : Lines("guest-applogs")) {
      const std::string folder = "/var/log/pods/default_";
      if (line.starts_with(folder)) {
        const std::string rest = line.substr(folder.size());
        pod = rest.substr(0, rest.find('_'));
        const std::string uid = rest.substr(pod.size() + 1, 32);
        facts_.state.pod_logs->push_back({.namespace_name = "default", .name = pod, .uid = uid});
        uids_[pod] = uid;
      } else if (const auto at = line.find("stdout F "); at != std::string::npos) {
        printed_[pod] += line.substr(at + 9) + "\n";
      }
    }
  }

  // "/sys/fs/cgroup/…/cpuset.cpus 1-2 mems=0"
  void LayDownCgroups() {
    tree_.Put("sys/fs/cgroup/cgroup.controllers", "cpuset cpu memory\n");
    tree_.Put("sys/fs/cgroup/kubepods/cpuset.cpus.effective", "0-7\n");
    tree_.Put("sys/fs/cgroup/kubepods/cpuset.mems.effective", "0-1\n");
    for (const std::string& line : Lines("guest-cgroups")) {
      const auto file = line.find("/cpuset.cpus ");
      const auto mems = line.find(" mems=");
      ASSERT_NE(file, std::string::npos) << line;
      ASSERT_NE(mems, std::string::npos) << line;
      const std::string folder = line.substr(1, file - 1);
      const std::string cpus = line.substr(file + 13, mems - file - 13);
      tree_.Folder(folder);
      if (cpus.empty()) continue;
      tree_.Put(folder + "/cpuset.cpus.effective", cpus + "\n");
      tree_.Put(folder + "/cpuset.mems.effective", line.substr(mems + 6) + "\n");
    }
  }

  // The state file was not recorded. The kernel's sets stand for it: they are what it would say,
  // told by somebody else than the list.
  void FillState() {
    facts_.state.cpu.emplace();
    facts_.state.cpu->policy = "static";
    facts_.state.cpu->default_cpus = Cpus("0-7");
    for (const hwinfo::ContainerCgroup& cgroup : facts_.enforced->containers) {
      if (!cgroup.cpus || *cgroup.cpus == Cpus("0-7")) continue;  // a sandbox
      facts_.state.cpu->entries[cgroup.pod_uid]["app"] = *cgroup.cpus;
      facts_.state.cpu->default_cpus -= *cgroup.cpus;
    }
  }

  test::TempTree tree_;
  Facts facts_;
  std::map<std::string, std::string> uids_;
  std::map<std::string, std::string> printed_;
};

TEST_F(RecordedGuest, RunsEveryContainerWhereTheKubeletSays) {
  if (uids_.empty()) GTEST_SKIP();
  const Observation seen = Observe(facts_);
  ASSERT_EQ(seen.placement.pods.size(), 3U);
  for (const PlacedPod& pod : seen.placement.pods) {
    SCOPED_TRACE(pod.name);
    EXPECT_EQ(pod.alignment, Alignment::kAligned);
    EXPECT_EQ(pod.kubelet_uid, uids_[pod.name]);
    EXPECT_EQ(pod.uid, "");  // static pods have another one in the API
    const PlacedContainer& container = pod.containers.at(0);
    ASSERT_TRUE(container.kernel);
    EXPECT_EQ(container.kernel->cpus, container.cpus);
    EXPECT_EQ(container.kernel->memory_nodes, pod.numa_nodes);
    std::string expected = fmt::format("Cpus_allowed_list:\t{}\nMems_allowed_list:\t{}\n",
                                       container.cpus.ToString(), pod.numa_nodes.ToString());
    for (const HeldDevices& held : container.devices) {
      expected += fmt::format("FAKE_VISIBLE_DEVICES={}\n", fmt::join(held.ids, ","));
    }
    EXPECT_EQ(printed_[pod.name], expected);
  }
  EXPECT_EQ(ConditionOf(seen, "KernelAgrees"), "True AllAgree");
  EXPECT_THAT(Codes(seen), Not(Contains("PodUidUnknown")));
}

TEST_F(RecordedGuest, HasFreeWhatItsThreePodsLeft) {
  if (uids_.empty()) GTEST_SKIP();
  const Observation seen = Observe(facts_);
  EXPECT_EQ(seen.placement.summary.free, "0: 1 gpu 0 cpu · 1: 0 gpu 0 cpu");
  EXPECT_EQ(FreeOf(seen, "node-0", "memory"), 1507557376 - (384 << 20));
  EXPECT_EQ(FreeOf(seen, "node-0", "hugepages-2Mi"), (256 - 32) << 20);
  EXPECT_EQ(FreeOf(seen, "node-1", "memory"), 1540833280 - (256 << 20));
  EXPECT_EQ(seen.placement.kubelet.reserved_cpus, Cpus("0,4"));
  EXPECT_THAT(seen.placement.known_pods, IsEmpty());  // all are static pods
}

TEST_F(RecordedGuest, ShowsNoPodThatTheKubeletRejected) {
  if (uids_.empty()) GTEST_SKIP();
  rapidjson::Document pods;
  ASSERT_FALSE(pods.Parse(test::ReadShared(kSamples + "guest-pods").c_str()).HasParseError());
  const Observation seen = Observe(facts_);
  int rejected = 0;
  for (const auto& pod : pods["items"].GetArray()) {
    const bool running = std::string(pod["status"]["phase"].GetString()) == "Running";
    const PlacedPod* shown = FindPod(seen, pod["metadata"]["name"].GetString());
    EXPECT_EQ(shown != nullptr, running);
    EXPECT_EQ(shown == nullptr ? "" : shown->kubelet_uid,
              running ? pod["metadata"]["uid"].GetString() : "");
    rejected += running ? 0 : 1;
  }
  EXPECT_EQ(rejected, 1);
}

}  // namespace
}  // namespace placement
