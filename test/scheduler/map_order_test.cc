#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "cli/recording.h"
#include "test/reference/naive_admit.h"
#include "test/support/shared.h"
#include "test/support/status.h"

// The kubelet walks Go maps, in an order that is new each time: resources of a provider, memory
// types, containers whose state is released, devices that an init container left. Here the plain
// kubelet walks them in one order and in the reverse of it.
namespace reference {
namespace {

// The plain kubelet takes minutes under the sanitizers: there it does every 16th sequence.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int kEvery = 16;
#else
constexpr int kEvery = 1;
#endif

struct Counts {
  int events = 0;
  int ambiguous = 0;          // by the recording
  int random = 0;             // by the plain kubelet
  int differ_beyond_ids = 0;  // between the two orders, in more than which devices
  int plain = 0;              // events that are not ambiguous
  int as_recorded = 0;        // of those, with the recorded verdict, reason, hints and CPUs
};

NaiveVerdict WithoutDeviceIds(NaiveVerdict verdict) {
  for (NaiveContainer& container : verdict.containers) container.devices.clear();
  return verdict;
}

// Of two resources that both cannot be had the first ends the admission: whether a plugin was asked
// before depends on the order, the answer does not.
bool SameAnswer(NaiveVerdict a, NaiveVerdict b) {
  a.plugin_chose = b.plugin_chose = false;
  return a == b;
}

bool Same(const std::optional<Ids>& a, const std::optional<base::NumaMask>& b) {
  return a.has_value() == b.has_value() && (!a || *a == Ids(b->begin(), b->end()));
}

bool IsAsRecorded(const NaiveVerdict& ours, const cli::RecordedVerdict& theirs) {
  if (ours.reason != theirs.reason || ours.containers.size() != theirs.containers.size()) {
    return false;
  }
  if (!theirs.admitted) {
    return Same(ours.affinity, theirs.rejected_affinity) &&
           ours.preferred == theirs.rejected_preferred;
  }
  for (std::size_t i = 0; i < ours.containers.size(); ++i) {
    const NaiveContainer& a = ours.containers[i];
    const cli::RecordedContainer& b = theirs.containers[i];
    if (!Same(a.affinity, b.affinity) || a.preferred != b.preferred) return false;
    if (a.cpus != Ids(b.cpus.begin(), b.cpus.end())) return false;
    if (a.memory.size() != b.memory.size() || a.devices.size() != b.devices.size()) return false;
  }
  return true;
}

void Add(const cli::RecordedEvent& event, NaiveKubelet& one, NaiveKubelet& other, Counts& counts) {
  const NaiveVerdict a = one.Add(event.pod);
  const NaiveVerdict b = other.Add(event.pod);
  ++counts.events;
  counts.random += a.random_devices ? 1 : 0;
  if (event.verdict.ambiguous_devices) {
    ++counts.ambiguous;
    counts.differ_beyond_ids += WithoutDeviceIds(a) == WithoutDeviceIds(b) ? 0 : 1;
  } else {
    ++counts.plain;
    counts.as_recorded += IsAsRecorded(a, event.verdict) ? 1 : 0;
    EXPECT_TRUE(SameAnswer(a, b)) << event.pod.uid << a.reason << b.reason;
  }
  if (event.not_started) return;
  one.Start(event.pod);
  other.Start(event.pod);
}

void Replay(const cli::Recording& recording, Counts& counts) {
  NaiveKubelet one(recording.node, recording.device_order, MapOrder::kAscending);
  NaiveKubelet other(recording.node, recording.device_order, MapOrder::kDescending);
  for (const cli::RecordedEvent& event : recording.events) {
    if (event.kind == cli::RecordedEvent::Kind::kAdd) Add(event, one, other, counts);
    for (NaiveKubelet* kubelet : {&one, &other}) {
      if (event.kind == cli::RecordedEvent::Kind::kRemove) kubelet->Remove(event.pod.uid);
      if (event.kind == cli::RecordedEvent::Kind::kDeviceHealth) {
        kubelet->SetUnhealthy(event.resource, {event.unhealthy.begin(), event.unhealthy.end()});
      }
    }
  }
}

TEST(MapOrder, DecidesOnlyWhichDevicesOfAnInitContainerAreUsedAgain) {
  SKIP_WITHOUT_SHARED();
  Counts counts;
  const std::string path = *test::SharedFolder() + "/admission/public.jsonl.gz";
  EXPECT_OK(cli::ForEachLine(path, [&](int number, const std::string& line) -> absl::Status {
    if (number % kEvery != 0) return absl::OkStatus();
    const absl::StatusOr<cli::Recording> recording = cli::ParseRecording(line);
    if (recording.ok()) Replay(*recording, counts);
    return recording.status();
  }));
  EXPECT_EQ(counts.events, kEvery == 1 ? 27120 : 1630);
  EXPECT_EQ(counts.ambiguous, kEvery == 1 ? 50 : 4);
  EXPECT_EQ(counts.random, counts.ambiguous);
  EXPECT_EQ(counts.differ_beyond_ids, 0);
  EXPECT_EQ(counts.as_recorded, counts.plain);
}

}  // namespace
}  // namespace reference
