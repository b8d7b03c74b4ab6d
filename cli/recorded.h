#pragma once

#include <ostream>

#include "cli/options.h"

namespace cli {

// `plumbline simulate --recorded`: replays a file of recorded admissions and counts what agrees.
// Returns the exit code.
int RunRecorded(const SimulateOptions& options, std::ostream& out, std::ostream& err);

}  // namespace cli
