#include "scheduler/ledger/event_json.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "scheduler/ledger/ledger.h"
#include "test/scheduler/cluster.h"
#include "test/scheduler/nrt_of.h"
#include "test/scheduler/room.h"
#include "test/support/status.h"

namespace scheduler::ledger {
namespace {

const base::Time kNow{std::chrono::hours(24 * 365 * 50)};

PodFacts SomePod() {
  PodFacts facts;
  facts.pod = admission::PodOf("uid-1", "sidecar 500m CPU 1Gi; init 1 CPU 1Gi; 4 CPU 8Gi 1 GPU");
  facts.pod.namespace_name = "ml";
  facts.pod.node_name = "gpu-7";
  facts.pod.overhead = {{"cpu", 250}};
  facts.pod.pod_requests = kube::Resources{{"cpu", 6000}};
  facts.phase = Phase::kFailed;
  facts.reason = "TopologyAffinityError";
  facts.terminating = true;
  facts.created = kNow;
  facts.started = kNow + std::chrono::seconds(1);
  return facts;
}

TEST(EventLog, WritesOneLineAnEvent) {
  EXPECT_EQ(ToJson(Event{kNow, PodGone{"uid-1"}}),
            R"({"at":"2019-12-20T00:00:00.000Z","kind":"PodGone","uid":"uid-1"})");
}

TEST(EventLog, ReadsPodsAsTheyWere) {
  for (const bool listed : {false, true}) {
    const Event event{kNow, PodChanged{SomePod(), listed}};
    ASSERT_OK_AND_ASSIGN(const Event back, ParseEvent(ToJson(event)));
    const auto* changed = std::get_if<PodChanged>(&back.what);
    ASSERT_NE(changed, nullptr);
    EXPECT_EQ(changed->pod, SomePod());
    EXPECT_EQ(changed->listed, listed);
    EXPECT_EQ(back.at, kNow);
  }
}

TEST(EventLog, ReadsEveryKindAsItWas) {
  Room room({.numa = admission::Alike(2, {.gpus = 2})});
  placement::NodeResourceTopology nrt = admission::NrtOf(room.facts, room.kubelet.state);
  nrt.name = "n";
  NodeChanged node{"n", "uid", "boot", {}};
  node.facts.allocatable = kube::Resources{{"cpu", 31500}, {"memory", 1024}};
  node.facts.kubelet_version = "v1.37.2";
  const std::vector<Event> events = {
      {kNow, node},
      {kNow, NodeGone{"n"}},
      {kNow, TopologyChanged{nrt}},
      {kNow, TopologyGone{"n"}},
      {kNow, PlacementChanged{room.Published()}},
      {kNow, PlacementGone{"n"}},
      {kNow, AgentAlive{"n", kNow}},
      {kNow, PodBound{SomePod()}},
      {kNow, PodGone{"uid-1"}},
      {kNow, PodRejected{"uid-1", "OutOfcpu"}},
      {kNow, LeaseTaken{SomePod(), {"n", "m"}, kNow + std::chrono::seconds(2)}},
      {kNow, LeaseEnded{"uid-1"}},
      {kNow, TimePassed{}},
  };
  for (const Event& event : events) {
    const std::string line = ToJson(event);
    EXPECT_EQ(line.find('\n'), std::string::npos) << line;
    ASSERT_OK_AND_ASSIGN(const Event back, ParseEvent(line));
    EXPECT_EQ(ToJson(back), line);
    EXPECT_EQ(KindOf(back), KindOf(event));
  }
}

TEST(EventLog, NamesWhatIsWrong) {
  const auto why = [](const std::string& line) {
    return std::string(ParseEvent(line).status().message());
  };
  EXPECT_EQ(why("{"), "no JSON object, at byte 1");
  EXPECT_EQ(why(R"({"kind":"PodGone"})"), "at: is missing");
  EXPECT_EQ(why(R"({"at":"2019-12-20T00:00:00Z","kind":"PodGone"})"), "uid: is missing");
  EXPECT_EQ(why(R"({"at":"2019-12-20T00:00:00Z","kind":"Moon"})"), "kind: \"Moon\" is not known");
  EXPECT_EQ(why(R"({"at":"2019-12-20T00:00:00Z","kind":"PodChanged"})"), "object: is missing");
  EXPECT_EQ(why(R"({"at":"2019-12-20T00:00:00Z","kind":"PodChanged","object":{}})"),
            "spec: there is none");
}

TEST(EventLog, ReadsAPodOfTheApiServerWithItsTimes) {
  ASSERT_OK_AND_ASSIGN(const PodFacts facts, ParsePodFacts(R"({
    "metadata": {"uid": "u", "name": "p", "namespace": "ns", "creationTimestamp": "2026-11-29T12:00:00Z"},
    "spec": {"nodeName": "n", "containers": [{"name": "a", "resources": {"limits": {"cpu": "2", "memory": "1Gi"}}}]},
    "status": {"phase": "Running", "startTime": "2026-11-29T12:00:01Z"}})"));
  EXPECT_EQ(facts.phase, Phase::kRunning);
  EXPECT_FALSE(facts.terminating);
  EXPECT_EQ(base::FormatTime(*facts.created), "2026-11-29T12:00:00.000Z");
  EXPECT_EQ(base::FormatTime(*facts.started), "2026-11-29T12:00:01.000Z");
}

std::string InWords(const Snapshot& snapshot) {
  std::string words;
  for (const NodeViewPtr& view : snapshot.nodes()) {
    words += view->name + " " + ToString(view->confidence) + "\n";
    for (const Waiting& pod : view->waiting) {
      words += pod.uid + " " + ToString(pod.standing) + " " + pod.numa_nodes.ToString() + "\n";
    }
    if (view->expected == nullptr) continue;
    words += ToCpuSet(view->expected->pool.cpus).ToString() + "\n";
    for (const auto& [uid, held] : view->expected->pods) words += uid + "\n";
  }
  return words;
}

TEST(EventLog, ReplaysToTheSameState) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    std::vector<Event> events;
    ASSERT_EQ(test::Run(test::AnyInterleaving(seed), nullptr, &events), "");
    Ledger live;
    Ledger replayed;
    for (const Event& event : events) {
      live.Apply(event);
      ASSERT_OK_AND_ASSIGN(const Event back, ParseEvent(ToJson(event)));
      replayed.Apply(back);
      ASSERT_EQ(InWords(replayed.Take()), InWords(live.Take())) << "seed " << seed;
    }
    EXPECT_EQ(replayed.divergences(), live.divergences());
  }
}

TEST(LedgerOfNewerAgents, GoesByWhatItKnowsOfAnObjectThatSaysMore) {
  Room room({.numa = admission::Alike(2, {.gpus = 4})});
  const std::string known = ToJson({room.now, PlacementChanged{room.Published()}});
  const auto with = [&](const std::string& after, const std::string& more) {
    std::string text = known;
    const std::size_t at = text.find(after);
    EXPECT_NE(at, std::string::npos) << after;
    return text.insert(at + after.size(), more);
  };
  for (const std::string& newer : {with(R"("status":{)", R"("seats":[{"id":7}],)"),
                                   with(R"("kubelet":{)", R"("gpuManager":{"policy":"static"},)"),
                                   with(R"("numaNodes":[{)", R"("bandwidth":"460Gi",)"),
                                   with(R"("devices":[{)", R"("partition":{"of":"gpu0"},)")}) {
    SCOPED_TRACE(newer);
    const absl::StatusOr<Event> event = ParseEvent(newer);
    ASSERT_OK(event);
    room.Apply(event->what);
    EXPECT_TRUE(room.view().notes.empty());
    EXPECT_EQ(room.view().base->machine->grade, admission::Grade::kExact);
    EXPECT_EQ(room.Ask("16 CPU 8Gi 4 GPU"), "Yes");
  }
}

}  // namespace
}  // namespace scheduler::ledger
