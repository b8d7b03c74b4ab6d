#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "agent/settling.h"
#include "kube/client.h"
#include "kube/object.h"
#include "kube/watch.h"

namespace agent {

// What matters here of a Node object.
struct NodeObject {
  bool exists = false;  // false: not registered, or deleted; all else is empty then
  std::string uid;
  Capacity capacity;                        // status.capacity, whole units
  std::vector<std::string> not_understood;  // of the capacity: which and why, for people
  // Of its kubelet: internal IPs first, then internal names, then what leads around outside.
  std::vector<std::string> addresses;
  int kubelet_port = 0;         // 0: not said
  std::string kubelet_version;  // "v1.37.2"
  bool operator==(const NodeObject&) const = default;
};

// InvalidArgument names the field that makes no sense; one quantity of many is no reason.
absl::StatusOr<NodeObject> ReadNode(const kube::Object& object);

// Follows the one Node that this agent is on. While the API server is away, what it said last
// stands. Safe for concurrent use.
class ThisNode {
 public:
  // `changed` is called on a thread of the watch when one of NodeObject's members is another one,
  // or the refusal is; heartbeats alone are no change. The client outlives this.
  ThisNode(kube::Client& client, const std::string& name, std::function<void()> changed);

  // Why it may not be read: the missing permission. OK otherwise.
  absl::Status refusal() const;
  // nullptr until the API server has said something.
  std::shared_ptr<const NodeObject> Get() const;
  // Waits until it has; nullptr if told to stop.
  std::shared_ptr<const NodeObject> Await(const std::stop_token& stop) const;

  // nullopt: not known, or there is no such Node.
  std::optional<std::string> uid() const;
  std::optional<Capacity> capacity() const;
  std::string kubelet_version() const;  // "" likewise

 private:
  void Take(const kube::WatchEvent& event);
  void Set(NodeObject node);
  void Lost(const kube::WatchEvent& event);
  void SetRefusal(absl::Status refusal);

  const std::function<void()> changed_;
  mutable std::mutex mutex_;
  mutable std::condition_variable_any known_;
  std::shared_ptr<const NodeObject> node_;  // guarded by mutex_, as this:
  absl::Status refusal_;
  kube::Watch watch_;  // the last: it calls Take
};

}  // namespace agent
