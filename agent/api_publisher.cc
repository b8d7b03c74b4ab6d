#include "agent/api_publisher.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "base/retry_after.h"
#include "base/status_macros.h"
#include "base/text_layout.h"

namespace agent {
namespace {

using placement::Condition;

// Both errors, if there are two.
absl::Status Together(const absl::Status& one, const absl::Status& other) {
  if (one.ok() || other.ok()) return one.ok() ? other : one;
  absl::Status both(
      one.code(), fmt::format("{}; {}", std::string(one.message()), std::string(other.message())));
  const auto pause = std::max(base::RetryAfter(one), base::RetryAfter(other));
  if (pause) base::SetRetryAfter(*pause, both);
  return both;
}

std::optional<Condition> NrtPublished(const placement::NodePlacement& published) {
  const auto found =
      std::ranges::find(published.conditions, NrtWriter::kCondition, &Condition::type);
  if (found == published.conditions.end()) return std::nullopt;
  return *found;
}

Condition Truncated(const PlacementWriter& placement) {
  const std::string message = fmt::format("All would be more than {} KiB. Left out: {}.",
                                          kMostBytes >> 10, fmt::join(placement.cut(), ", "));
  if (placement.fits()) return {"Truncated", "True", "FieldsLeftOut", message};
  return {"Truncated", "True", "StillTooLarge",
          message +
              " The rest is more, too, and it is written as it is: a scheduler needs all of "
              "it."};
}

void AddTo(std::string& fields, const char* object, const std::set<std::string>& left_out) {
  for (const std::string& field : left_out) {
    fields += fmt::format("{}{} {}", fields.empty() ? "" : ", ", object, field);
  }
}

}  // namespace

ApiPublisher::ApiPublisher(kube::Client& client, base::Clock& clock, Metrics& metrics,
                           const ApiPublisherOptions& options)
    : api_{.client = client,
           .clock = clock,
           .metrics = metrics,
           .node_name = options.node_name,
           .poke = options.poke,
           .stop = options.stop},
      owner_(options.node_uid),
      nrt_(api_, options.nrt),
      placement_(api_),
      written_(options.written) {}

absl::StatusOr<std::optional<placement::NodePlacement>> ApiPublisher::Former() {
  ASSIGN_OR_RETURN(auto former, ReadPublished(api_.client, api_.node_name, api_.stop));
  if (former) nrt_.GoOnFrom(NrtPublished(*former));
  return former;
}

absl::Status ApiPublisher::Publish(const Publication& publication) {
  const std::optional<std::string> node_uid = owner_.Now();
  if (!node_uid) {
    return absl::FailedPreconditionError(fmt::format(
        "node {} was deleted, and its objects with it: nothing is written until it is back",
        api_.node_name));
  }
  api_.ask_until = api_.clock.Steady() + kAskFor;
  absl::Status nrt;
  absl::Status placement;
  if (placement_waits_) {
    placement = WritePlacement(publication, *node_uid);
    nrt = WriteNrt(publication, *node_uid);
  } else {
    nrt = WriteNrt(publication, *node_uid);
    placement = WritePlacement(publication, *node_uid);
  }
  placement_waits_ = !placement_waits_ && !placement.ok();
  TellConditions();
  return Together(nrt, placement);
}

absl::Status ApiPublisher::WriteNrt(const Publication& publication, const std::string& node_uid) {
  knows_nrt_ = publication.content.nrt.has_value();
  if (!publication.changed.nrt || !knows_nrt_) return absl::OkStatus();
  return nrt_.Write(*publication.content.nrt, node_uid);
}

absl::Status ApiPublisher::WritePlacement(const Publication& publication,
                                          const std::string& node_uid) {
  if (!publication.changed.placement) return absl::OkStatus();
  RETURN_IF_ERROR(placement_.Write(publication.content.placement, node_uid));
  written_(publication);
  return absl::OkStatus();
}

std::vector<Condition> ApiPublisher::Conditions() const {
  std::vector<Condition> conditions;
  if (auto published = nrt_.Published()) conditions.push_back(*std::move(published));
  std::string fields;
  AddTo(fields, "nodeplacements", placement_.left_out());
  AddTo(fields, "noderesourcetopologies", nrt_.left_out());
  if (!fields.empty()) {
    conditions.push_back({"CRDTooOld", "True", "FieldsLeftOut",
                          fmt::format("The definitions lack, so it is left out: {}.", fields)});
  }
  if (!placement_.cut().empty()) {
    conditions.push_back(Truncated(placement_));
  }
  return conditions;
}

// The loop looks at them when it steps.
void ApiPublisher::TellConditions() {
  std::vector<Condition> conditions = Conditions();
  if (conditions == told_) return;
  for (const Condition& condition : conditions) {
    if (std::ranges::count(told_, condition) > 0) continue;
    spdlog::info("event=condition type={} status={} reason={} message={}", condition.type,
                 condition.status, condition.reason, base::OneLine(condition.message));
  }
  told_ = std::move(conditions);
  api_.poke();
}

Objects ApiPublisher::Stale() const {
  const std::optional<std::string> node_uid = owner_.Now();
  if (!node_uid) return {};
  return {.nrt = knows_nrt_ && nrt_.Stale(*node_uid), .placement = placement_.Stale(*node_uid)};
}

}  // namespace agent
