#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>

#include "base/status_macros.h"
#include "cli/recording.h"
#include "placement/decode.h"
#include "placement/encode.h"
#include "scheduler/admission/admit.h"
#include "scheduler/admission/coarse.h"
#include "test/scheduler/nrt_of.h"
#include "test/support/shared.h"
#include "test/support/status.h"

// How far counts per NUMA node get us: the kubelet's recorded verdicts against predictions from the
// NodeResourceTopology that the agent would have published just before.
namespace scheduler::admission {
namespace {

// Publishing and reading an object for each of 27,000 events takes minutes under the sanitizers:
// there every 4th sequence is enough. Without them it is all.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int kEvery = 4;
#else
constexpr int kEvery = 1;
#endif

struct Count {
  int events = 0;
  int verdicts = 0;        // admitted or not
  int reasons = 0;         // the kubelet's reason
  int false_refusals = 0;  // the kubelet admitted
  int PerMille(int part) const { return events == 0 ? 0 : part * 1000 / events; }
};
using Counts = std::map<std::string, Count>;  // by policy
using Publisher = placement::NodeResourceTopology (*)(placement::NodePlacement, const NodeState&);

bool Admits(const cli::RecordedEvent& event) { return event.verdict.admitted; }

void Compare(const Verdict& coarse, const cli::RecordedEvent& event, Count& count) {
  ++count.events;
  count.verdicts += coarse.admitted() == Admits(event) ? 1 : 0;
  count.reasons += KubeletReason(coarse) == event.verdict.reason ? 1 : 0;
  count.false_refusals += Admits(event) && !coarse.admitted() ? 1 : 0;
}

// What Node Feature Discovery and the resource-topology-exporter would publish instead: no groups
// of memory, no options, and of the devices only the healthy ones.
placement::NodeResourceTopology AsOthersPublish(placement::NodePlacement node,
                                                const NodeState& state) {
  placement::NodeResourceTopology nrt = NrtOf(std::move(node), state);
  std::erase_if(nrt.attributes, [](const placement::NrtAttribute& attribute) {
    return attribute.name != "topologyManagerPolicy" && attribute.name != "topologyManagerScope";
  });
  for (placement::NrtZone& zone : nrt.zones) {
    zone.attributes.clear();
    for (placement::NrtResource& resource : zone.resources) {
      if (resource.name.find('/') != std::string::npos) resource.capacity = resource.allocatable;
    }
  }
  return nrt;
}

// The object as it comes back from the API server.
absl::StatusOr<CoarseState> SeenThrough(const placement::NodeResourceTopology& published) {
  ASSIGN_OR_RETURN(const placement::NodeResourceTopology nrt,
                   placement::ParseNodeResourceTopology(placement::ToJson(published)));
  return CoarseStateFrom(nrt, {.allocatable = {}, .kubelet_version = "v1.37.2"});
}

absl::Status Replay(const cli::Recording& recording, Publisher publisher, Counts& counts) {
  ASSIGN_OR_RETURN(NodeState state, StateFrom(recording.node, recording.device_order));
  for (const cli::RecordedEvent& event : recording.events) {
    if (event.kind == cli::RecordedEvent::Kind::kRemove) Remove(state, event.pod.uid);
    if (event.kind == cli::RecordedEvent::Kind::kDeviceHealth) {
      SetDevices(state, event.resource, event.unhealthy);
    }
    if (event.kind != cli::RecordedEvent::Kind::kAdd) continue;
    const Request request = MakeRequest(event.pod);
    ASSIGN_OR_RETURN(const CoarseState coarse, SeenThrough(publisher(recording.node, state)));
    Compare(Admit(coarse.state, request), event, counts[recording.node.kubelet.topology_policy]);
    Verdict verdict = Admit(state, request);
    const bool admitted = verdict.admitted();
    Commit(event.pod.uid, std::move(verdict), state);
    if (admitted && !event.not_started) Started(state, event.pod);
  }
  return absl::OkStatus();
}

Counts CountOf(Publisher publisher) {
  Counts counts;
  EXPECT_OK(cli::ForEachLine(*test::SharedFolder() + "/admission/public.jsonl.gz",
                             [&](int number, const std::string& line) -> absl::Status {
                               if (number % kEvery != 0) return absl::OkStatus();
                               ASSIGN_OR_RETURN(const cli::Recording recording,
                                                cli::ParseRecording(line));
                               return Replay(recording, publisher, counts);
                             }));
  return counts;
}

// Of each policy so many in a thousand at least, and of refusals where the kubelet admitted so many
// at most.
struct Bounds {
  int verdicts;
  int reasons;
  int false_refusals;
};

void ExpectWithin(const Bounds& bounds, const Counts& counts) {
  ASSERT_EQ(counts.size(), 4U);
  for (const auto& [policy, count] : counts) {
    EXPECT_GE(count.events, 1500 / kEvery) << policy;
    EXPECT_GE(count.PerMille(count.verdicts), bounds.verdicts) << policy;
    EXPECT_GE(count.PerMille(count.reasons), bounds.reasons) << policy;
    EXPECT_LE(count.PerMille(count.false_refusals), bounds.false_refusals) << policy;
  }
  EXPECT_EQ(counts.at("single-numa-node").false_refusals, 0);
}

TEST(CoarsePrediction, AgreesWithMostRecordedVerdictsByTheAgentsObject) {
  SKIP_WITHOUT_SHARED();
  const Counts counts = CountOf(NrtOf);
  ExpectWithin({.verdicts = 989, .reasons = 987, .false_refusals = 0}, counts);
}

TEST(CoarsePrediction, AgreesWithMostRecordedVerdictsByTheObjectOfOthers) {
  SKIP_WITHOUT_SHARED();
  const Counts counts = CountOf(AsOthersPublish);
  ExpectWithin({.verdicts = 981, .reasons = 959, .false_refusals = 4}, counts);
}

}  // namespace
}  // namespace scheduler::admission
