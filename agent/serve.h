#pragma once

#include "agent/options.h"
#include "kube/proxy.h"

namespace agent {

// Publishes the node until SIGTERM or SIGINT comes. To be called by main before there is any other
// thread: it blocks these signals for all of them. Returns the exit code; what was wrong has been
// told.
int Serve(const Options& options, const kube::Environment& environment);

}  // namespace agent
