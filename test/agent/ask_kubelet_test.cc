#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <string>
#include <utility>

#include "agent/sources.h"
#include "test/fakes/clock.h"
#include "test/placement/scene.h"
#include "test/support/status.h"

namespace agent {
namespace {

using podresources::Assignments;
using podresources::KubeletState;

constexpr int kThrice = 3;

// Does `at_read` at each question, as a kubelet does its work while it is asked.
class BusyKubelet : public podresources::Client {
 public:
  explicit BusyKubelet(std::function<absl::StatusOr<Assignments>(int)> at_read)
      : at_read_(std::move(at_read)) {}
  absl::StatusOr<Assignments> Read() override { return at_read_(++reads_); }
  absl::StatusOr<podresources::Pod> Get(const std::string& /*namespace_name*/,
                                        const std::string& /*name*/) override {
    return absl::UnimplementedError("not asked here");
  }
  int reads() const { return reads_; }

 private:
  std::function<absl::StatusOr<Assignments>(int)> at_read_;
  int reads_ = 0;
};

Assignments OnePod(const std::string& name) {
  Assignments assignments;
  assignments.pods = {
      {.namespace_name = "ml", .name = name, .containers = {}, .cpus = {}, .memory = {}}};
  return assignments;
}

KubeletState StateOf(const std::string& fingerprint) {
  KubeletState state;
  state.fingerprint = fingerprint;
  return state;
}

// One socket, NUMA node 0, with CPUs 0-7 and their siblings 16-23; 0 and 16 are reserved. A pod
// with 6 CPUs as a whole lives; one with two containers of 2 CPUs each is gone, and the kubelet
// takes out of its state what it left there, container by container.
constexpr char kAlive[] = "3f8a5a38-7b42-445f-b59c-d0ecfbd06b3a";
constexpr char kGone[] = "ef6a1c52-0b1d-4c3e-9d5b-6a2f9b1f0a11";

Assignments ListedDuringCleanUp() {
  podresources::Container own;
  own.name = "c0";
  own.cpus = placement::Cpus("4,20");
  podresources::Container shares;
  shares.name = "c1";
  Assignments assignments;
  assignments.pods = {placement::PodOf("alive", {own, shares})};
  assignments.pods.front().cpus = placement::Cpus("4-6,20-22");
  assignments.allocatable.emplace().cpus = placement::Cpus("1-7,17-23");
  return assignments;
}

// What is on disk after so many of the clean-up's four writes.
KubeletState OnDisk(int writes) {
  KubeletState state = StateOf(std::to_string(writes));
  state.pod_logs = {{"ml", "alive", kAlive}};
  podresources::CpuManagerState& cpu = state.cpu.emplace();
  cpu.policy = "static";
  cpu.pod_entries[kAlive] = placement::Cpus("4-6,20-22");
  cpu.entries[kAlive] = {{"c0", placement::Cpus("4,20")}, {"c1", placement::Cpus("5-6,21-22")}};
  cpu.default_cpus = placement::Cpus("0,3,7,16,19,23");
  if (writes < 1) cpu.entries[kGone]["c0"] = placement::Cpus("1,17");
  if (writes >= 2) cpu.default_cpus |= placement::Cpus("1,17");
  if (writes < 3) cpu.entries[kGone]["c1"] = placement::Cpus("2,18");
  if (writes >= 4) cpu.default_cpus |= placement::Cpus("2,18");
  return state;
}

// What would be published.
std::string FreeCpus(const Answer& answer) {
  placement::Scene node(placement::Machine({{.id = 0, .cpus = "0-7,16-23"}}), "0,16");
  node.facts.assignments = answer.assignments;
  node.facts.state = answer.state;
  node.facts.settled = answer.settled;
  return node.Look().placement.numa_nodes.at(0).free_cpus->ToString();
}

TEST(AskKubelet, AsksOnceWhenItsFilesStandStill) {
  test::FakeClock clock;
  BusyKubelet kubelet([](int) { return OnePod("llm-0"); });
  const Answer answer = AskKubelet(
      kubelet, [] { return StateOf("same"); }, kThrice, clock);
  EXPECT_TRUE(answer.settled);
  EXPECT_EQ(kubelet.reads(), 1);
  EXPECT_EQ(answer.state.fingerprint, "same");
}

TEST(AskKubelet, AsksAgainWhenAFileChangedMeanwhileAndKeepsTheLaterAnswer) {
  test::FakeClock clock;
  std::string files = "before";
  BusyKubelet kubelet([&files](int read) {
    if (read == 1) files = "after";
    return OnePod(read == 1 ? "old" : "new");
  });
  const Answer answer = AskKubelet(
      kubelet, [&files] { return StateOf(files); }, kThrice, clock);
  EXPECT_TRUE(answer.settled);
  EXPECT_EQ(kubelet.reads(), 2);
  ASSERT_OK(answer.assignments);
  EXPECT_EQ(answer.assignments->pods.front().name, "new");
  EXPECT_EQ(answer.state.fingerprint, "after");
}

TEST(AskKubelet, GivesUpAfterThreeReadingsAndSaysSo) {
  test::FakeClock clock;
  std::string files = "0";
  BusyKubelet kubelet([&files](int read) {
    files = std::to_string(read);
    return OnePod("llm-0");
  });
  const Answer answer = AskKubelet(
      kubelet, [&files] { return StateOf(files); }, kThrice, clock);
  EXPECT_FALSE(answer.settled);
  EXPECT_EQ(kubelet.reads(), 3);
  EXPECT_THAT(clock.pauses(), testing::ElementsAre(kReadingPause, kReadingPause));
  EXPECT_OK(answer.assignments);
  EXPECT_EQ(answer.state.fingerprint, "3");
}

TEST(AskKubelet, DoesNotRepeatAQuestionThatFailed) {
  test::FakeClock clock;
  std::string files = "0";
  BusyKubelet kubelet([&files](int read) {
    files = std::to_string(read);
    return absl::UnavailableError("stopped");
  });
  const Answer answer = AskKubelet(
      kubelet, [&files] { return StateOf(files); }, kThrice, clock);
  EXPECT_EQ(kubelet.reads(), 1);
  EXPECT_THAT(answer.assignments,
              test::StatusIs(absl::StatusCode::kUnavailable, testing::HasSubstr("stopped")));
}

TEST(AskKubelet, SaysTheSameOfWhatIsFreeBeforeACleanUpAndAfterEachOfItsWrites) {
  for (int writes = 0; writes <= 4; ++writes) {
    test::FakeClock clock;
    int written = writes;
    clock.during_pause = [&written] { ++written; };  // the disk has done what was waited for
    BusyKubelet kubelet([](int) { return ListedDuringCleanUp(); });
    const Answer answer = AskKubelet(
        kubelet, [&written] { return OnDisk(written); }, kThrice, clock);
    EXPECT_TRUE(answer.settled) << writes;
    EXPECT_EQ(FreeCpus(answer), "1-3,7,17-19,23") << writes;
  }
}

TEST(AskKubelet, DoesNotCallHalfOfAChangeSettled) {
  for (const int writes : {1, 3}) {
    test::FakeClock clock;
    BusyKubelet kubelet([](int) { return ListedDuringCleanUp(); });
    const Answer answer = AskKubelet(
        kubelet, [writes] { return OnDisk(writes); }, kThrice, clock);
    EXPECT_FALSE(answer.settled) << writes;
    EXPECT_EQ(kubelet.reads(), kThrice);
    // Nothing that nobody can get is told to be free.
    EXPECT_EQ(FreeCpus(answer), writes == 1 ? "2-3,7,18-19,23" : "1,3,7,17,19,23");
  }
}

// A pod that had 9 GiB as a whole is gone: its memory is free again, and its entry still there.
// Taken for the truth, 9 GiB more would be free: those of the pod that lives.
TEST(AskKubelet, AsksAgainWhileAPodThatIsGoneHasMemoryThatIsFree) {
  test::FakeClock clock;
  bool written = false;
  clock.during_pause = [&written] { written = true; };
  BusyKubelet kubelet([](int) { return ListedDuringCleanUp(); });
  const auto read_state = [&written] {
    KubeletState state = OnDisk(4);
    podresources::MemoryManagerState& memory = state.memory.emplace();
    memory.policy = "Static";
    memory.nodes[0].memory["memory"] = {.total = 32, .allocatable = 30, .reserved = 9, .free = 21};
    memory.pod_entries[kAlive] = {{"memory", 9, {0}}};
    if (!written) memory.pod_entries[kGone] = {{"memory", 9, {0}}};
    return state;
  };
  const Answer answer = AskKubelet(kubelet, read_state, kThrice, clock);
  EXPECT_TRUE(answer.settled);
  EXPECT_EQ(kubelet.reads(), 2);
  EXPECT_FALSE(answer.state.memory->pod_entries.contains(kGone));
}

TEST(AskKubelet, TakesFilesForWholeWhereTheKubeletDoesNotSayWhatItCanHandOut) {
  test::FakeClock clock;
  BusyKubelet kubelet([](int) {
    Assignments listed = ListedDuringCleanUp();
    listed.allocatable.reset();
    return listed;
  });
  const Answer answer = AskKubelet(
      kubelet, [] { return OnDisk(3); }, kThrice, clock);
  EXPECT_TRUE(answer.settled);
  EXPECT_EQ(kubelet.reads(), 1);
}

}  // namespace
}  // namespace agent
