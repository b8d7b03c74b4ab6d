#include "agent/nrt_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "agent/other_writers.h"
#include "base/status_macros.h"
#include "kube/json.h"
#include "placement/encode.h"

namespace agent {
namespace {

using placement::NodeResourceTopology;

const kube::Resource kTopologies = {"topology.node.k8s.io", "v1alpha2", "noderesourcetopologies"};

const std::vector<std::string> kEssential = {"zones.name",
                                             "zones.type",
                                             "zones.resources.name",
                                             "zones.resources.capacity",
                                             "zones.resources.allocatable",
                                             "zones.resources.available"};

// Who else writes it.
std::vector<std::string> WritersOf(const AppliedObject::Seen& seen) {
  return seen ? OtherWriters(*seen) : std::vector<std::string>();
}

std::string Names(const std::vector<std::string>& writers) {
  return fmt::format("{}", fmt::join(writers, ", "));
}

bool HasOurs(const AppliedObject::Seen& seen) {
  return seen &&
         std::ranges::count(seen->managed, kFieldManager, &kube::ManagedFields::manager) > 0;
}

}  // namespace

NrtWriter::NrtWriter(ApiAccess& api, NrtMode mode) : api_(api), mode_(mode) {
  if (mode_ == NrtMode::kNever) {
    Note(Outcome::kYielded, "SwitchedOff", "--nrt=never: it is left as it is.");
  } else {
    object_.emplace(api, kTopologies, kEssential);
  }
}

absl::Status NrtWriter::Write(const NodeResourceTopology& nrt, const std::string& node_uid) {
  if (!object_) return absl::OkStatus();
  absl::Status status = TryToWrite(nrt, node_uid);
  switch (status.code()) {
    case absl::StatusCode::kUnimplemented:
      Note(Outcome::kNotServed, "NotServed",
           "The API server does not serve topology.node.k8s.io/v1alpha2, the only version that is "
           "written: the definition of NodeResourceTopology is missing or older.");
      return absl::OkStatus();
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kPermissionDenied:
      Note(Outcome::kRefused, "Refused", std::string(status.message()));
      return status;
    default:
      return status;  // passing, so not in the condition
  }
}

absl::Status NrtWriter::TryToWrite(const NodeResourceTopology& nrt, const std::string& node_uid) {
  ASSIGN_OR_RETURN(const AppliedObject::Seen seen, object_->Look());
  const std::vector<std::string> writers = WritersOf(seen);
  if (mode_ == NrtMode::kAuto && !writers.empty()) return Yield(seen);
  const bool anew = object_->Lost() || (outcome_ == Outcome::kWritten && !writers.empty());
  const std::string owner_uid = node_uid.empty() && seen ? OwningNode(*seen) : node_uid;
  const absl::Status status = WriteOwn(nrt, owner_uid, mode_ == NrtMode::kAlways);
  if (absl::IsAborted(status)) return Resolve(nrt, owner_uid);
  RETURN_IF_ERROR(status);
  if (anew) {
    rewrites_.Rewritten(api_.clock.Steady());
    rivals_ = writers;
  }
  return NoteWritten(owner_uid);
}

// A conflict, so what was known of the object is not all. With a new writer of its content it is
// that one's; else only an annotation or an owner of ours is somebody's, too.
absl::Status NrtWriter::Resolve(const NodeResourceTopology& nrt, const std::string& owner_uid) {
  ASSIGN_OR_RETURN(const AppliedObject::Seen seen, object_->Look());
  if (mode_ == NrtMode::kAuto && !WritersOf(seen).empty()) return Yield(seen);
  RETURN_IF_ERROR(WriteOwn(nrt, owner_uid, /*force=*/true));
  return NoteWritten(owner_uid);
}

absl::Status NrtWriter::NoteWritten(const std::string& owner_uid) {
  owner_uid_ = owner_uid;
  Note(Outcome::kWritten);
  return absl::OkStatus();
}

absl::Status NrtWriter::WriteOwn(const NodeResourceTopology& nrt, const std::string& owner_uid,
                                 bool force) {
  const std::string json = placement::ToOwnedJson(nrt, owner_uid);
  RETURN_IF_ERROR(object_->Apply(json, force));
  return mode_ == NrtMode::kAlways ? RemoveOthers(object_->Declared(json)) : absl::OkStatus();
}

absl::Status NrtWriter::RemoveOthers(const std::string& applied) {
  ASSIGN_OR_RETURN(const AppliedObject::Seen seen, object_->Look());
  const std::vector<std::string> writers = WritersOf(seen);
  if (writers.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::string patch, RemovalOf(writers, *seen, applied));
  return object_->Patch(patch);
}

absl::Status NrtWriter::Yield(const AppliedObject::Seen& seen) {
  if (outcome_ != Outcome::kYielded && HasOurs(seen)) RETURN_IF_ERROR(TakeOutOurs());
  rivals_ = WritersOf(seen);
  Note(Outcome::kYielded, "OtherWriter",
       fmt::format("{} writes it, so it is left alone. To have it written by this agent, switch "
                   "the other off and delete the object, or use --nrt=always.",
                   Names(rivals_)));
  return absl::OkStatus();
}

// An apply of nothing.
absl::Status NrtWriter::TakeOutOurs() {
  const absl::Status status = object_->Apply(
      fmt::format(R"({{"apiVersion":"{}/{}","kind":"NodeResourceTopology",)"
                  R"("metadata":{{"name":{}}}}})",
                  kTopologies.group, kTopologies.version, kube::JsonQuote(api_.node_name)),
      /*force=*/false);
  // Invalid: without our zones it would have none, so they stay.
  return absl::IsInvalidArgument(status) ? absl::OkStatus() : status;
}

std::vector<std::string> NrtWriter::WritersNow() const {
  return WritersOf(object_->Known().value_or(nullptr));
}

bool NrtWriter::Stale(const std::string& node_uid) const {
  if (!object_ || outcome_ == Outcome::kNone) return false;
  const base::Instant now = api_.clock.Steady();
  const std::vector<std::string> writers = WritersNow();
  switch (outcome_) {
    case Outcome::kNotServed:
      return now - outcome_at_ >= kNotServedFor;
    case Outcome::kYielded:  // there are none, or others
      return writers != rivals_;
    default:
      break;
  }
  if (!writers.empty() && mode_ == NrtMode::kAuto) return true;
  if (object_->Lost() || !writers.empty()) return rewrites_.MayRewrite(now);
  return (!node_uid.empty() && node_uid != owner_uid_) || object_->HasToBeTriedWhole();
}

const std::set<std::string>& NrtWriter::left_out() const {
  static const std::set<std::string> kNothing;
  return object_ ? object_->left_out() : kNothing;
}

std::optional<placement::Condition> NrtWriter::Published() const {
  if (outcome_ == Outcome::kNone) return before_;
  if (outcome_ != Outcome::kWritten) return not_published_;
  if (!rewrites_.Contested(api_.clock.Steady())) {
    return placement::Condition{kCondition, "True", "Published", ""};
  }
  return placement::Condition{
      kCondition, "True", "Contested",
      fmt::format("{} again and again; it is written anew, every {} s at most.",
                  rivals_.empty() ? "Somebody deletes it" : Names(rivals_) + " writes it, too,",
                  Rewrites::kPause.count())};
}

void NrtWriter::Note(Outcome outcome, const char* reason, const std::string& message) {
  outcome_ = outcome;
  outcome_at_ = api_.clock.Steady();
  not_published_ = {kCondition, "False", reason, message};
}

}  // namespace agent
