#pragma once

#include <ostream>

#include "cli/options.h"

namespace cli {

// `plumbline replay`: applies the events of a ledger's log one by one and shows what each changes.
// (cli/replay.h is about something else: admissions that a kubelet decided.) Returns the exit code.
int RunReplay(const ReplayLogOptions& options, std::ostream& out, std::ostream& err);

}  // namespace cli
