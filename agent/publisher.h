#pragma once

#include "absl/status/status.h"
#include "placement/observation.h"

namespace agent {

// What is to be published, and what of it is new.
struct Publication {
  // NodePlacement has its revision. No NRT means that its numbers are not known: the object, if
  // there is one, is to be left as it is.
  const placement::Observation& content;
  bool nrt_changed = true;
  bool placement_changed = true;
  // What this process published last; nullptr at first. Events tell what is different.
  const placement::Observation* before = nullptr;
};

// Makes known to others what was observed. Blocks, at most until a deadline of its own; the loop
// looks at nothing meanwhile. After a failure it is not known what was written: the loop comes
// again, with what is the newest content then, and `before` and what changed are as of the last
// success.
class Publisher {
 public:
  virtual ~Publisher() = default;
  virtual absl::Status Publish(const Publication& publication) = 0;
};

}  // namespace agent
