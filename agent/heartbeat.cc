#include "agent/heartbeat.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <optional>
#include <utility>

#include "base/status_macros.h"
#include "base/text_layout.h"
#include "kube/json.h"
#include "kube/metadata.h"

namespace agent {
namespace {

using kube::JsonQuote;
using std::chrono::milliseconds;

const kube::Resource kLeases = {"coordination.k8s.io", "v1", "leases"};

// Kubernetes' MicroTime has six digits behind the second, no fewer.
std::string MicroTime(base::Time time) {
  std::string text = base::FormatTime(time);
  text.insert(text.size() - 1, "000");
  return text;
}

std::string LeaseJson(const HeartbeatOptions& options, const std::string& node_uid,
                      base::Time now) {
  const std::string node = JsonQuote(options.node_name);
  const std::string owner = fmt::format(R"({{"apiVersion":"v1","kind":"Node","name":{},"uid":{}}})",
                                        node, JsonQuote(node_uid));
  return fmt::format(
      R"({{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{{"name":{},)"
      R"("namespace":{},"ownerReferences":[{}]}},"spec":{{"holderIdentity":{},)"
      R"("leaseDurationSeconds":{},"renewTime":"{}"}}}})",
      node, JsonQuote(options.namespace_name), node_uid.empty() ? "" : owner, node,
      Heartbeat::kLease.count(), MicroTime(now));
}

// So long, give or take that part of it.
milliseconds GiveOrTake(milliseconds pause, double part, double random) {
  const double factor = 1 + part * (2 * random - 1);
  return milliseconds(static_cast<std::int64_t>(static_cast<double>(pause.count()) * factor));
}

}  // namespace

Heartbeat::Heartbeat(kube::Client& client, base::Clock& clock, Metrics& metrics,
                     const Health& health, HeartbeatOptions options)
    : client_(client),
      clock_(clock),
      metrics_(metrics),
      health_(health),
      options_(std::move(options)),
      owner_(options_.node_uid),
      current_at_(clock_.Steady()) {}

void Heartbeat::Run(const std::stop_token& stop) {
  while (clock_.Wait(Beat(stop), stop)) {
  }
}

milliseconds Heartbeat::Beat(const std::stop_token& stop) {
  const std::optional<std::string> node_uid = owner_.Now();
  if (!node_uid) {
    Tell("the Node was deleted");
    return GiveOrTake(kInterval, 0.1, options_.random());
  }
  if (!MayRenew(clock_.Steady())) return kUntilCurrent;
  const absl::Status status = Renew(*node_uid, stop);
  Tell(std::string(status.message()));
  if (!status.ok()) return GiveOrTake(kRetry, 0.5, options_.random());
  return GiveOrTake(kInterval, 0.1, options_.random());
}

// Between a change and its publication it is not current for a moment, which is no news.
bool Heartbeat::MayRenew(base::Instant now) {
  if (!health_.IsAlive(now)) {
    Tell("the agent's loop is stuck");
    return false;
  }
  if (health_.IsCurrent()) {
    current_at_ = now;
    return true;
  }
  if (now - current_at_ >= kInterval) Tell("what is published is not what a good look has found");
  return false;
}

absl::Status Heartbeat::Renew(const std::string& node_uid, const std::stop_token& stop) {
  const kube::ObjectName lease = {
      .resource = kLeases, .namespace_name = options_.namespace_name, .name = options_.node_name};
  std::string owner_uid = node_uid;
  if (node_uid.empty()) {
    ASSIGN_OR_RETURN(owner_uid, OwnerOf(lease, stop));
  }
  absl::Status status =
      client_
          .Apply(lease, LeaseJson(options_, owner_uid, clock_.Now()),
                 {.field_manager = kFieldManager, .force = true, .metadata_only = true}, stop)
          .status();
  metrics_.Wrote("leases", status.ok() ? "updated" : ResultOf(status));
  return status;
}

// As it is by now: an apply without the owner would take it away.
absl::StatusOr<std::string> Heartbeat::OwnerOf(const kube::ObjectName& lease,
                                               const std::stop_token& stop) {
  const absl::StatusOr<kube::Object> object = client_.GetMetadata(lease, stop);
  if (absl::IsNotFound(object.status())) return "";
  RETURN_IF_ERROR(object.status());
  ASSIGN_OR_RETURN(const kube::Metadata metadata, kube::ReadMetadata(*object));
  return OwningNode(metadata);
}

void Heartbeat::Tell(const std::string& trouble) {
  if (trouble == trouble_) return;
  trouble_ = trouble;
  if (trouble.empty()) {
    spdlog::info("event=lease_renewed");
  } else {
    spdlog::warn("event=lease_not_renewed reason={}", base::OneLine(trouble));
  }
}

}  // namespace agent
