#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "agent/applied_object.h"
#include "agent/options.h"
#include "agent/rewrites.h"
#include "placement/node_placement.h"
#include "placement/node_resource_topology.h"

namespace agent {

// Writes the node's NodeResourceTopology. One thread calls.
//
// A writer is who owns some of its content by the managed fields. Under auto the object of another
// is left alone, and what we had written into it is taken out, as far as nobody else owns it: half
// of ours beside half of theirs would be wrong. It is written again when the object is gone or
// nobody else owns its content.
class NrtWriter {
 public:
  static constexpr const char* kCondition = "NRTPublished";
  // How long after a refusal for want of the kind it is tried again.
  static constexpr std::chrono::minutes kNotServedFor{1};

  // `api` outlives it.
  NrtWriter(ApiAccess& api, NrtMode mode);

  // NRTPublished, as a former process published it. To be called before the first Write.
  void GoOnFrom(std::optional<placement::Condition> before) { before_ = std::move(before); }

  // `node_uid`: "" if it is not known; the owner that is there stays then. OK also if it is not to
  // be written, or the API server does not serve the kind: the condition says so.
  absl::Status Write(const placement::NodeResourceTopology& nrt, const std::string& node_uid);

  // NRTPublished. Before the first Write it is as it was published before: so a restart alone is no
  // news.
  std::optional<placement::Condition> Published() const;
  // Has to be written again.
  bool Stale(const std::string& node_uid) const;
  const std::set<std::string>& left_out() const;

 private:
  enum class Outcome { kNone, kWritten, kYielded, kNotServed, kRefused };

  absl::Status TryToWrite(const placement::NodeResourceTopology& nrt, const std::string& node_uid);
  absl::Status WriteOwn(const placement::NodeResourceTopology& nrt, const std::string& owner_uid,
                        bool force);
  absl::Status Resolve(const placement::NodeResourceTopology& nrt, const std::string& owner_uid);
  absl::Status NoteWritten(const std::string& owner_uid);
  absl::Status RemoveOthers(const std::string& applied);
  absl::Status Yield(const AppliedObject::Seen& seen);
  absl::Status TakeOutOurs();
  std::vector<std::string> WritersNow() const;
  void Note(Outcome outcome, const char* reason = "", const std::string& message = "");

  ApiAccess& api_;
  const NrtMode mode_;
  std::optional<placement::Condition> before_;
  std::optional<AppliedObject> object_;  // none under never
  Outcome outcome_ = Outcome::kNone;
  base::Instant outcome_at_;
  std::string owner_uid_;  // as it was written
  Rewrites rewrites_;
  std::vector<std::string> rivals_;     // who wrote it when it was left, or had to be written again
  placement::Condition not_published_;  // why, if it is not
};

}  // namespace agent
