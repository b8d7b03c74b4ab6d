#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "kube/client.h"
#include "kube/object.h"
#include "kube/watch.h"
#include "placement/api_pods.h"

namespace agent {

// InvalidArgument names the field that makes no sense.
absl::StatusOr<placement::ApiPod> ReadApiPod(const kube::Object& object);

// Follows the pods of one node, and of each keeps only what placement::ApiPod has. While the API
// server is away, what it said last stands. Where it refuses (no permission), the pods are not
// known: that is said once, and asked again every 10 minutes. Safe for concurrent use.
class NodePods {
 public:
  // Sorted by namespace and name; or why they are not known; nullptr: not answered yet.
  using Pods = std::shared_ptr<const absl::StatusOr<std::vector<placement::ApiPod>>>;

  // `changed` is called on a thread of the watch when Get returns something else. The client
  // outlives this.
  NodePods(kube::Client& client, const std::string& node_name, std::function<void()> changed);

  Pods Get() const;

 private:
  using Key = std::pair<std::string, std::string>;  // namespace, name

  void Take(const kube::WatchEvent& event);
  void Put(const kube::Object& object);
  void Lost(const kube::WatchEvent& event);
  void Publish();
  void Set(absl::StatusOr<std::vector<placement::ApiPod>> pods);

  const std::function<void()> changed_;
  // Used by the watch's thread alone.
  std::map<Key, placement::ApiPod> known_;
  bool complete_ = false;  // all of them have been named

  mutable std::mutex mutex_;
  Pods pods_;          // guarded by mutex_
  kube::Watch watch_;  // the last: it calls Take
};

}  // namespace agent
