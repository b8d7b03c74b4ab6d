#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "agent/followed.h"
#include "kube/client.h"
#include "kube/object.h"
#include "placement/api_pods.h"

namespace agent {

// InvalidArgument names the field that makes no sense.
absl::StatusOr<placement::ApiPod> ReadApiPod(const kube::Object& object);

// Follows the pods of one node, and of each keeps only what placement::ApiPod has; sorted by
// namespace and name. After a refusal it asks again every 10 minutes.
class NodePods : public Followed<placement::ApiPod, std::vector<placement::ApiPod>> {
 public:
  using Pods = Answer;

  // As of Followed.
  NodePods(kube::Client& client, const std::string& node_name, std::function<void()> changed);
};

}  // namespace agent
