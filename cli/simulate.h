#pragma once

#include <istream>
#include <ostream>

#include "cli/options.h"

namespace cli {

// The command `plumbline simulate`: reads what the options name (`in` for "-"), writes the answer
// to `out` and errors to `err`, a line each. Returns the exit code.
int RunSimulate(const SimulateOptions& options, std::istream& in, std::ostream& out,
                std::ostream& err);

}  // namespace cli
