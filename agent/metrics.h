#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "base/clock.h"
#include "placement/observation.h"

namespace agent {

// The agent's Prometheus metrics; docs/agent.md lists them. Safe for concurrent use.
class Metrics {
 public:
  Metrics();
  ~Metrics();
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  // A look at the node has ended.
  void Asked(const absl::Status& answer, double seconds);
  // More changed at once than the kernel keeps hints of.
  void LostHints();
  // A watch of these objects ("nodes") is not up to date; the code is that of kube::WatchEvent.
  void LostWatch(std::string_view objects, absl::StatusCode cause);
  // A good observation, and when the kubelet gave it. What it says is read when somebody asks.
  void Observed(std::shared_ptr<const placement::Observation> observation);
  void GoodAt(base::Time time);
  // Those of now, also while an older observation stays.
  void Holds(std::vector<placement::Condition> conditions);
  void Published(const absl::Status& status, double seconds);
  // One write of one object: "noderesourcetopology", "created"; of the publisher.
  void Wrote(std::string_view object, std::string_view result);
  // An Event about a pod that was not told.
  void DroppedEvent();

  // All of them, in Prometheus' text format.
  std::string Text() const;

 private:
  class Families;
  std::unique_ptr<Families> families_;
};

}  // namespace agent
