#include "agent/applied_object.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "agent/left_out.h"
#include "base/status_macros.h"
#include "base/text.h"
#include "base/text_layout.h"

namespace agent {
namespace {

using kube::WatchEvent;

// The fields that are ours, as text that is equal if they are.
std::string FieldsOf(const kube::Metadata& metadata) {
  std::string fields;
  for (const kube::ManagedFields& managed : metadata.managed) {
    if (managed.manager == kFieldManager) fields += managed.subresource + managed.fields;
  }
  return fields;
}

// Versions of one object grow.
bool IsNoNewer(const kube::Object& object, const kube::Metadata& than) {
  const auto version = base::ParseNumber<std::uint64_t>(object.resource_version);
  const auto other = base::ParseNumber<std::uint64_t>(than.resource_version);
  return object.uid == than.uid && version && other && *version <= *other;
}

absl::StatusOr<AppliedObject::Seen> Read(const absl::StatusOr<kube::Object>& reply) {
  RETURN_IF_ERROR(reply.status());
  ASSIGN_OR_RETURN(kube::Metadata metadata, kube::ReadMetadata(*reply));
  return std::make_shared<const kube::Metadata>(std::move(metadata));
}

}  // namespace

AppliedObject::AppliedObject(ApiAccess& api, kube::Resource resource,
                             std::vector<std::string> essential)
    : api_(api),
      name_{.resource = std::move(resource), .name = api.node_name},
      essential_(std::move(essential)) {
  kube::WatchOptions options;
  options.selection = {.resource = name_.resource,
                       .field_selector = "metadata.name=" + name_.name,
                       .metadata_only = true};
  options.refused_pause = kNotWatchedFor;
  watch_ = std::make_unique<kube::Watch>(api_.client, std::move(options),
                                         [this](const WatchEvent& event) { Heard(event); });
}

AppliedObject::~AppliedObject() = default;

std::optional<AppliedObject::Seen> AppliedObject::Known() const {
  const std::lock_guard lock(mutex_);
  return seen_;
}

absl::StatusOr<AppliedObject::Seen> AppliedObject::Look() {
  if (std::optional<Seen> known = Known()) return *std::move(known);
  RETURN_IF_ERROR(MayAsk());
  const absl::StatusOr<kube::Object> object = api_.client.GetMetadata(name_, api_.stop);
  Seen found;
  if (!absl::IsNotFound(object.status())) {
    ASSIGN_OR_RETURN(found, Read(object));
  }
  const std::lock_guard lock(mutex_);
  if (!seen_) seen_ = found;
  return *seen_;
}

bool AppliedObject::Lost() const {
  const std::lock_guard lock(mutex_);
  if (!written_ || !seen_) return false;
  return !*seen_ || FieldsOf(**seen_) != *written_;
}

// Write.

absl::Status AppliedObject::MayAsk() const {
  if (api_.clock.Steady() <= api_.ask_until) return absl::OkStatus();
  return absl::DeadlineExceededError(
      fmt::format("{}: the API server is too slow to write it this time", ToString(name_)));
}

absl::Status AppliedObject::Write(const std::string& subresource, const Request& request) {
  RETURN_IF_ERROR(MayAsk());
  kube::ObjectName name = name_;
  name.subresource = subresource;
  {
    const std::lock_guard lock(mutex_);
    writing_ = true;
  }
  const absl::StatusOr<kube::Object> reply = request(name);
  Count(subresource, reply);
  const absl::StatusOr<Seen> written = Read(reply);
  bool news = false;
  {
    const std::lock_guard lock(mutex_);
    writing_ = false;
    if (written.ok()) {
      seen_ = *written;
      written_ = FieldsOf(**written);
    } else if (absl::IsAborted(written.status()) || absl::IsNotFound(written.status())) {
      seen_.reset();  // a conflict, or nothing there: what was known of it is wrong
    }
    for (const WatchEvent& event : std::exchange(waiting_, {})) news = Take(event) || news;
  }
  if (news) api_.poke();
  return written.status();
}

absl::Status AppliedObject::Apply(const std::string& json, bool force,
                                  const std::string& subresource) {
  if (HasToBeTriedWhole()) left_out_.clear();
  for (;;) {
    absl::Status status = Write(subresource, [&](const kube::ObjectName& name) {
      return api_.client.Apply(
          name, Declared(json),
          {.field_manager = kFieldManager, .force = force, .metadata_only = true}, api_.stop);
    });
    // Each time it is less, so this ends.
    if (!absl::IsInvalidArgument(status) || !LeaveOut(status, json)) return status;
  }
}

absl::Status AppliedObject::Patch(const std::string& json) {
  return Write("", [&](const kube::ObjectName& name) {
    return api_.client.MergePatch(name, json, kFieldManager, api_.stop);
  });
}

std::string AppliedObject::Declared(const std::string& json) const {
  return Without(json, left_out_);
}

bool AppliedObject::HasToBeTriedWhole() const {
  return !left_out_.empty() && api_.clock.Steady() - left_out_since_ >= kLeftOutFor;
}

// What was not sent is none of ours, and what is essential, or holds something that is, stays.
bool AppliedObject::MayBeLeftOut(const std::string& field, const std::string& json) const {
  const auto is_in = [](const std::string& inner, const std::string& outer) {
    return inner == outer || inner.starts_with(outer + ".");
  };
  const bool essential = std::ranges::any_of(essential_, [&](const std::string& kept) {
    return is_in(kept, field) || is_in(field, "metadata");
  });
  return !essential && Has(json, field);
}

// Whether there is something new to leave out.
bool AppliedObject::LeaveOut(const absl::Status& refusal, const std::string& json) {
  const std::size_t before = left_out_.size();
  if (before == 0) left_out_since_ = api_.clock.Steady();
  for (const std::string& field : UndeclaredFields(std::string(refusal.message()))) {
    if (MayBeLeftOut(field, json)) left_out_.insert(field);
  }
  return left_out_.size() > before;
}

void AppliedObject::Count(const std::string& subresource,
                          const absl::StatusOr<kube::Object>& reply) {
  const std::string object =
      fmt::format("{}{}{}", name_.resource.plural, subresource.empty() ? "" : "/", subresource);
  if (!reply.ok()) return api_.metrics.Wrote(object, ResultOf(reply.status()));
  const std::optional<Seen> before = Known();
  if (before && !*before) return api_.metrics.Wrote(object, "created");
  const bool same = before && (*before)->resource_version == reply->resource_version;
  api_.metrics.Wrote(object, same ? "unchanged" : "updated");
}

// Watch.

void AppliedObject::Heard(const WatchEvent& event) {
  if (event.kind == WatchEvent::Kind::kLost) {
    spdlog::warn("event=watch_lost object={} error={}", name_.resource.plural,
                 base::OneLine(event.reason));
  }
  bool news = false;
  {
    const std::lock_guard lock(mutex_);
    if (writing_) return waiting_.push_back(event);
    news = Take(event);
  }
  if (news) api_.poke();
}

bool AppliedObject::Take(const WatchEvent& event) {
  switch (event.kind) {
    case WatchEvent::Kind::kAdded:
    case WatchEvent::Kind::kModified:
      return TakeObject(event.object);
    case WatchEvent::Kind::kDeleted:
      if (!seen_ || !*seen_ || (*seen_)->uid != event.object.uid) return false;
      seen_ = Seen();
      return true;
    case WatchEvent::Kind::kSynced:  // without a word of the object: there is none
      if (!seen_) seen_ = Seen();
      return false;
    case WatchEvent::Kind::kLost:
      return false;
  }
  return false;
}

bool AppliedObject::TakeObject(const kube::Object& object) {
  if (seen_ && *seen_ && IsNoNewer(object, **seen_)) return false;
  const absl::StatusOr<Seen> seen = Read(object);
  if (!seen.ok()) {
    spdlog::warn("event=watch_misread object={} error={}", name_.resource.plural,
                 base::OneLine(std::string(seen.status().message())));
    return false;
  }
  seen_ = *seen;
  return true;
}

}  // namespace agent
