#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "absl/status/statusor.h"
#include "agent/dra_devices.h"
#include "kube/client.h"
#include "kube/object.h"
#include "kube/watch.h"

namespace agent {

// What matters here of a ResourceSlice: a part of one pool of one driver.
struct ResourceSlice {
  std::string driver = {};
  std::string pool = {};
  std::int64_t generation = 0;  // of the pool; only slices of its newest one count
  std::map<std::string, hwinfo::DraAttributes> devices = {};
  bool operator==(const ResourceSlice&) const = default;
};

// Of resource.k8s.io/v1, v1beta2 or v1beta1. InvalidArgument names the field that makes no sense.
absl::StatusOr<ResourceSlice> ReadResourceSlice(const kube::Object& object);

// Follows the ResourceSlices of one node. While the API server is away, what it said last stands.
// Where it refuses (no permission, or no such kind), nothing is known: that is said once, and asked
// again every 10 minutes. Safe for concurrent use.
class ResourceSlices {
 public:
  // Or why they are not known; nullptr: not answered yet.
  using Devices = std::shared_ptr<const absl::StatusOr<DraDevices>>;

  // `changed` is called on a thread of the watch when Get returns something else. The client
  // outlives this.
  ResourceSlices(kube::Client& client, const std::string& node_name, std::function<void()> changed);

  Devices Get() const;

 private:
  void Take(const kube::WatchEvent& event);
  void Put(const kube::Object& object);
  void Lost(const kube::WatchEvent& event);
  void Publish();
  void Set(absl::StatusOr<DraDevices> devices);

  const std::function<void()> changed_;
  // Used by the watch's thread alone.
  std::map<std::string, ResourceSlice> known_;  // by name
  bool complete_ = false;                       // all of them have been named

  mutable std::mutex mutex_;
  Devices devices_;    // guarded by mutex_
  kube::Watch watch_;  // the last: it calls Take
};

}  // namespace agent
