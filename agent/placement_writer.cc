#include "agent/placement_writer.h"

#include <spdlog/spdlog.h>

#include <cstdint>
#include <utility>

#include "base/status_macros.h"
#include "base/text_layout.h"
#include "kube/json.h"
#include "placement/decode.h"
#include "placement/encode.h"

namespace agent {
namespace {

using placement::NodePlacement;

const kube::Resource kPlacements = {"plumbline.dev", "v1alpha1", "nodeplacements"};

// What a scheduler predicts by.
const std::vector<std::string> kEssential = {
    "status.revision",
    "status.observedAt",
    "status.kubelet.topologyManager.policy",
    "status.kubelet.cpuManager.policy",
    "status.kubelet.memoryManager.policy",
    "status.numaNodes.id",
    "status.numaNodes.freeCPUs",
    "status.numaNodes.memory.free",
    "status.devices.id",
    "status.devices.numaNodes",
    "status.devices.healthy",
    "status.pods.uid",
    "status.pods.containers.cpus",
    "status.pods.containers.memory.size",
    "status.pods.containers.devices.ids",
    "status.conditions.status",
};

// What of an object can be read that has something in it which cannot.
absl::StatusOr<std::int64_t> ReadRevision(const std::string& json) {
  ASSIGN_OR_RETURN(const kube::JsonObject object, kube::JsonObject::Parse(json));
  ASSIGN_OR_RETURN(const kube::JsonObject status, object.Object("status"));
  ASSIGN_OR_RETURN(const std::optional<std::int64_t> revision, status.Number("revision"));
  return revision.value_or(0);
}

}  // namespace

PlacementWriter::PlacementWriter(ApiAccess& api)
    : api_(api), object_(api, kPlacements, kEssential) {}

absl::Status PlacementWriter::Write(const NodePlacement& placement, const std::string& node_uid) {
  const bool anew = object_.Lost();
  if (!node_uid.empty() && node_uid != owner_uid_) {
    RETURN_IF_ERROR(WriteObject(placement, node_uid));
  }
  Fitted fitted = Fit(placement);
  absl::Status status = WriteStatus(fitted.json);
  if (absl::IsNotFound(status)) {  // there is no object (any more)
    RETURN_IF_ERROR(WriteObject(placement, node_uid));
    status = WriteStatus(fitted.json);
  }
  RETURN_IF_ERROR(status);
  if (anew) rewrites_.Rewritten(api_.clock.Steady());
  cut_ = std::move(fitted.left_out);
  fits_ = fitted.fits;
  return absl::OkStatus();
}

absl::Status PlacementWriter::WriteObject(const NodePlacement& placement,
                                          const std::string& node_uid) {
  RETURN_IF_ERROR(object_.Apply(placement::ToOwnedJson(placement, node_uid), /*force=*/true));
  owner_uid_ = node_uid;
  return absl::OkStatus();
}

absl::Status PlacementWriter::WriteStatus(const std::string& json) {
  return object_.Apply(json, /*force=*/true, "status");
}

bool PlacementWriter::Stale(const std::string& node_uid) const {
  if (object_.Lost()) return rewrites_.MayRewrite(api_.clock.Steady());
  return (!node_uid.empty() && node_uid != owner_uid_) || object_.HasToBeTriedWhole();
}

absl::StatusOr<std::optional<NodePlacement>> ReadPublished(kube::Client& client,
                                                           const std::string& node_name,
                                                           const std::stop_token& stop) {
  const absl::StatusOr<kube::Object> object =
      client.Get({.resource = kPlacements, .name = node_name}, stop);
  if (absl::IsNotFound(object.status()) || absl::IsUnimplemented(object.status())) {
    return std::nullopt;
  }
  RETURN_IF_ERROR(object.status());
  absl::StatusOr<NodePlacement> published = placement::ParseNodePlacement(object->json);
  if (published.ok()) return std::optional(*std::move(published));
  spdlog::warn("event=published_not_understood error={}",
               base::OneLine(std::string(published.status().message())));
  NodePlacement revision_alone;
  revision_alone.node_name = node_name;
  revision_alone.revision = ReadRevision(object->json).value_or(0);
  return std::optional(std::move(revision_alone));
}

}  // namespace agent
