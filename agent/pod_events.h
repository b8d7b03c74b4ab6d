#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "absl/status/status.h"
#include "agent/metrics.h"
#include "agent/publisher.h"
#include "base/clock.h"
#include "kube/client.h"
#include "placement/node_placement.h"

namespace agent {

// The pods that are Misaligned or Drifted, by (namespace, name, alignment, reason), with their
// UIDs.
using Findings =
    std::map<std::tuple<std::string, std::string, placement::Alignment, std::string>, std::string>;
Findings FindingsOf(const placement::NodePlacement& placement);

// Those that were not known, or for another reason.
std::vector<placement::PlacedPod> NewFindings(const placement::NodePlacement& now,
                                              const Findings& known);

// A core/v1 Event about a finding, as JSON. Its name is made of the pod and the finding, so that
// who creates it again is refused and nobody is told twice. A pod whose UID is not known is named
// without: kubectl get events shows it, kubectl describe pod does not.
std::string EventJson(const placement::PlacedPod& pod, const std::string& node_name,
                      base::Time now);

// Tells on pods, as Events, that they are misaligned; once for each finding. On a thread of its
// own, so that nobody waits for it; what is too much at once is dropped and counted. One thread
// calls.
class PodEvents {
 public:
  static constexpr std::size_t kMostWaiting = 256;
  static constexpr std::chrono::milliseconds kPause{200};  // between two of them

  // All of them outlive it.
  PodEvents(kube::Client& client, base::Clock& clock, Metrics& metrics, std::string node_name);

  // What is new of a publication, once it has been written: against the one that was told before,
  // the first time against what the publication says was published before. Returns at once.
  void Tell(const Publication& publication);

 private:
  struct Event {
    std::string namespace_name;
    std::string json;
  };

  void Enqueue(const placement::PlacedPod& pod);
  // On the thread.
  void Run(const std::stop_token& stop);
  void Create(const Event& event, const std::stop_token& stop);

  kube::Client& client_;
  base::Clock& clock_;
  Metrics& metrics_;
  const std::string node_name_;
  std::optional<Findings> known_;                     // as they were told last
  absl::StatusCode trouble_ = absl::StatusCode::kOk;  // as it was logged; of the thread

  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<Event> waiting_;  // guarded by it

  std::jthread thread_;  // last: it uses the others
};

}  // namespace agent
