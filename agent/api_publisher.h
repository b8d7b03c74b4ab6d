#pragma once

#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "agent/applied_object.h"
#include "agent/metrics.h"
#include "agent/nrt_writer.h"
#include "agent/placement_writer.h"
#include "agent/publisher.h"
#include "base/clock.h"
#include "kube/client.h"

namespace agent {

struct ApiPublisherOptions {
  std::string node_name = {};
  NrtMode nrt = NrtMode::kAuto;
  NodeOwner::Uid node_uid = [] { return std::nullopt; };  // called on the loop's thread
  // Wakes the loop: something has to be written again, or a condition is another. Called on any
  // thread.
  std::function<void()> poke = [] {};
  // What was written of NodePlacement. Called on the loop's thread, which it must not delay.
  std::function<void(const Publication&)> written = [](const Publication&) {};
  std::stop_token stop = {};  // ends what is being asked
};

// Writes both objects to the API server. What they say of each other's trouble is in conditions:
//   NRTPublished  whether NodeResourceTopology is, and if not, why (nrt_writer.h)
//   CRDTooOld     only if the API server's definitions lack fields that would be written
//   Truncated     only if NodePlacement was too large (fit.h)
//
// Objects belong to the Node by its UID. As long as that is not known they are written without;
// when it becomes known, or another, they are stale. After the Node was deleted nothing is written
// until it is back: its objects go with it, and made anew they would belong to nobody.
//
// One thread calls.
class ApiPublisher : public Publisher {
 public:
  // A publication lasts at most both together: a request that began in time is given its deadline,
  // in which a webhook that fails to answer (10 s by default, then ignored) is over.
  static constexpr std::chrono::milliseconds kAskFor{4'000};
  static constexpr std::chrono::milliseconds kDeadline{11'000};
  // For the client that it is given: the loop does the repeating.
  static kube::ClientOptions ForClient() { return {.deadline = kDeadline, .attempts = 1}; }

  // All of them outlive it.
  ApiPublisher(kube::Client& client, base::Clock& clock, Metrics& metrics,
               const ApiPublisherOptions& options);

  absl::StatusOr<std::optional<placement::NodePlacement>> Former() override;
  absl::Status Publish(const Publication& publication) override;
  std::vector<placement::Condition> Conditions() const override;
  Objects Stale() const override;

 private:
  absl::Status WriteNrt(const Publication& publication, const std::string& node_uid);
  absl::Status WritePlacement(const Publication& publication, const std::string& node_uid);
  void TellConditions();

  ApiAccess api_;
  mutable NodeOwner owner_;
  NrtWriter nrt_;
  PlacementWriter placement_;
  const std::function<void(const Publication&)> written_;
  bool knows_nrt_ = false;        // the last content had one
  bool placement_waits_ = false;  // the other one took the time of the last publication
  std::vector<placement::Condition> told_;
};

}  // namespace agent
