#pragma once

#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "agent/applied_object.h"
#include "agent/fit.h"
#include "agent/rewrites.h"
#include "placement/node_placement.h"

namespace agent {

// Writes the node's NodePlacement: the object with its owner by the main resource, which ignores
// the status, and then the status, which ignores all else and needs the object. One thread calls.
class PlacementWriter {
 public:
  // `api` outlives it.
  explicit PlacementWriter(ApiAccess& api);

  // `node_uid`: "" if it is not known; the owner that is there stays then.
  absl::Status Write(const placement::NodePlacement& placement, const std::string& node_uid);

  bool Stale(const std::string& node_uid) const;
  const std::set<std::string>& left_out() const { return object_.left_out(); }
  // What was too much of the last one written.
  const std::vector<std::string>& cut() const { return cut_; }
  bool fits() const { return fits_; }

 private:
  absl::Status WriteObject(const placement::NodePlacement& placement, const std::string& node_uid);
  absl::Status WriteStatus(const std::string& json);

  ApiAccess& api_;
  AppliedObject object_;
  std::string owner_uid_;  // as it was written
  Rewrites rewrites_;
  std::vector<std::string> cut_;
  bool fits_ = true;
};

// What is published of a node at the moment, by whichever agent; nothing if nothing is. Of what
// cannot be understood, since another release or a person wrote it, only the revision is known: it
// is to be gone on from, and the rest to be written over.
absl::StatusOr<std::optional<placement::NodePlacement>> ReadPublished(
    kube::Client& client, const std::string& node_name, const std::stop_token& stop = {});

}  // namespace agent
