#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "agent/dra_devices.h"
#include "agent/followed.h"
#include "kube/client.h"
#include "kube/object.h"

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

// Follows the ResourceSlices of one node; what they come to are its devices. After a refusal it
// asks again every 10 minutes.
class ResourceSlices : public Followed<ResourceSlice, DraDevices> {
 public:
  using Devices = Answer;

  // As of Followed.
  ResourceSlices(kube::Client& client, const std::string& node_name, std::function<void()> changed);
};

}  // namespace agent
