#pragma once

#include <chrono>
#include <functional>
#include <stop_token>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "agent/api_access.h"
#include "agent/health.h"
#include "agent/metrics.h"
#include "base/clock.h"
#include "kube/client.h"
#include "kube/object.h"

namespace agent {

struct HeartbeatOptions {
  std::string node_name = {};
  std::string namespace_name = {};                        // Plumbline's own
  NodeOwner::Uid node_uid = [] { return std::nullopt; };  // called on the heartbeat's thread
  // Evenly from [0, 1), must be given: agents that started together shall not stay together.
  std::function<double()> random = nullptr;
};

// The sign of life: a Lease of the node's name. Who finds it renewed may go by what is published,
// so it is renewed only while that is current: the loop is alive, the last observation was good,
// and the API server has it. Who does not find it renewed for 90 s takes the agent for stale; two
// renewals may fail before.
class Heartbeat {
 public:
  static constexpr std::chrono::seconds kInterval{30};  // give or take a tenth
  static constexpr std::chrono::seconds kRetry{10};     // give or take half
  // How often to see whether what is published is current again. Nobody is asked for that.
  static constexpr std::chrono::seconds kUntilCurrent{1};
  static constexpr std::chrono::seconds kLease{90};

  // All of them outlive it.
  Heartbeat(kube::Client& client, base::Clock& clock, Metrics& metrics, const Health& health,
            HeartbeatOptions options);

  // Renews it if it may be, and says when to do so again.
  std::chrono::milliseconds Beat(const std::stop_token& stop);
  // Beats until told to stop.
  void Run(const std::stop_token& stop);

 private:
  absl::Status Renew(const std::string& node_uid, const std::stop_token& stop);
  absl::StatusOr<std::string> OwnerOf(const kube::ObjectName& lease, const std::stop_token& stop);
  bool MayRenew(base::Instant now);
  void Tell(const std::string& trouble);

  kube::Client& client_;
  base::Clock& clock_;
  Metrics& metrics_;
  const Health& health_;
  const HeartbeatOptions options_;
  NodeOwner owner_;
  base::Instant current_at_;  // when what was published was last seen to be current
  std::string trouble_;       // as it was told; "" if there is none
};

}  // namespace agent
