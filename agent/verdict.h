#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "placement/observation.h"

namespace agent {

// What a dry run leaves behind: its exit code and what the reader must know first.
struct Verdict {
  int exit_code = 0;
  bool show = true;                // false: nothing is worth showing, only the notes
  bool no_kubelet = false;         // there is none, and none was asked for
  std::vector<std::string> notes;  // one line each
};

// Of the kubelet's answer. `named`: the person named the socket or recording that was asked, so
// that its absence is their mistake. `asked`: its path; "" if nothing could be asked.
Verdict JudgeAnswer(const absl::Status& answer, bool named, const std::string& asked);

// Of a machine that cannot be read, or a named file that cannot be used.
Verdict JudgeFailure(const absl::Status& failure);

}  // namespace agent
