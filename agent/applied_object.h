#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "agent/api_access.h"
#include "agent/metrics.h"
#include "base/clock.h"
#include "kube/client.h"
#include "kube/metadata.h"
#include "kube/watch.h"

namespace agent {

// What the writers of the two objects have in common.
struct ApiAccess {
  kube::Client& client;
  base::Clock& clock;
  Metrics& metrics;
  std::string node_name;
  std::function<void()> poke;  // called on any thread: what is published has to be looked at
  std::stop_token stop = {};
  // A request that would begin later is not made: DeadlineExceeded.
  base::Instant ask_until = base::Instant::max();
};

// One object of the node's name, which we write by server-side apply. A watch of it, metadata
// alone, tells what others do to it: they are those whose versions are newer than our last write.
// One thread calls; the watch has another.
class AppliedObject {
 public:
  // How long what the definition did not declare is left out before all is tried again.
  static constexpr std::chrono::hours kLeftOutFor{1};

  // How long after a refusal (a missing permission, a missing kind) it is watched again.
  static constexpr std::chrono::minutes kNotWatchedFor{1};

  using Seen = std::shared_ptr<const kube::Metadata>;  // nullptr: there is no such object

  // `essential`: the fields that every definition of the kind has, and without which the object
  // would say nothing, or the wrong. They are never left out. `api` outlives it.
  AppliedObject(ApiAccess& api, kube::Resource resource, std::vector<std::string> essential);
  ~AppliedObject();

  // What is there. Asks only if nobody said it yet.
  absl::StatusOr<Seen> Look();
  // The same, without asking; nullopt if nobody said it.
  std::optional<Seen> Known() const;
  // Somebody deleted it since our last write, or set fields that we had written.
  bool Lost() const;

  // Errors are the client's. What the definition does not declare is left out, unless it is
  // essential: then the refusal is the error.
  absl::Status Apply(const std::string& json, bool force, const std::string& subresource = "");
  // A merge patch.
  absl::Status Patch(const std::string& json);

  // The object as it is applied: without what the definition does not declare.
  std::string Declared(const std::string& json) const;
  const std::set<std::string>& left_out() const { return left_out_; }
  bool HasToBeTriedWhole() const;

 private:
  using Request = std::function<absl::StatusOr<kube::Object>(const kube::ObjectName&)>;

  absl::Status Write(const std::string& subresource, const Request& request);
  absl::Status MayAsk() const;
  bool MayBeLeftOut(const std::string& field, const std::string& json) const;
  bool LeaveOut(const absl::Status& refusal, const std::string& json);
  void Count(const std::string& subresource, const absl::StatusOr<kube::Object>& reply);
  // On the watch's thread.
  void Heard(const kube::WatchEvent& event);
  // Whether that is news; under the mutex.
  bool Take(const kube::WatchEvent& event);
  bool TakeObject(const kube::Object& object);

  ApiAccess& api_;
  const kube::ObjectName name_;
  const std::vector<std::string> essential_;
  std::set<std::string> left_out_;
  base::Instant left_out_since_;

  mutable std::mutex mutex_;
  // Guarded by it:
  std::optional<Seen> seen_;
  std::optional<std::string> written_;     // our fields, as they were after our last write
  bool writing_ = false;                   // events wait for the reply
  std::vector<kube::WatchEvent> waiting_;  // those that came meanwhile

  std::unique_ptr<kube::Watch> watch_;  // last: it calls Heard
};

}  // namespace agent
