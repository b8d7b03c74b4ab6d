#pragma once

#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "placement/observation.h"

namespace agent {

// Which of the two objects.
struct Objects {
  bool nrt = false;
  bool placement = false;
  bool any() const { return nrt || placement; }
  Objects& operator|=(const Objects& other) {
    nrt = nrt || other.nrt;
    placement = placement || other.placement;
    return *this;
  }
};

// What is to be published, and what of it is new.
struct Publication {
  // NodePlacement has its revision. No NRT means that its numbers are not known: the object, if
  // there is one, is to be left as it is.
  const placement::Observation& content;
  Objects changed = {.nrt = true, .placement = true};
  // What was published last, also by a former process; nullptr if nothing was. Events tell what is
  // different.
  const placement::NodePlacement* before = nullptr;
};

// Makes known to others what was observed.
class Publisher {
 public:
  virtual ~Publisher() = default;

  // What was published of this node by a former process; nothing if nothing was. The loop publishes
  // nothing before it knows that: the revision is to be gone on from. Blocks as Publish does.
  virtual absl::StatusOr<std::optional<placement::NodePlacement>> Former() { return std::nullopt; }

  // Blocks, at most until a deadline of its own; the loop looks at nothing meanwhile. One object's
  // failure does not keep the other from being written. After a failure it is not known what was
  // written: the loop comes again, with what is the newest content then, and `before` and what
  // changed are as of the last success, not before base::RetryAfter of the failure.
  virtual absl::Status Publish(const Publication& publication) = 0;

  // What only the publisher knows, as conditions of NodePlacement: that somebody else writes the
  // NRT, that a definition is too old. These may change with each Publish and in between.
  virtual std::vector<placement::Condition> Conditions() const { return {}; }
  // What has to be written again although its content is the same: the object was deleted or
  // overwritten, or its Node is another one.
  virtual Objects Stale() const { return {}; }
};

}  // namespace agent
