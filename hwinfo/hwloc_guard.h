#pragma once

#include <functional>
#include <string>

#include "absl/status/status.h"

namespace hwinfo {

// Whether the kernel itself shows this folder, as sysfs or procfs, and it is no recording.
bool IsKernels(const std::string& path);

// Whether hwloc can be let loose on a tree of files. It opens what it finds: a FIFO would stop it
// for ever, a huge file would eat our memory. The kernel's own sysfs has neither and is not walked;
// anything else, a recorded machine, is. InvalidArgument or ResourceExhausted names the file.
absl::Status CheckTreeForHwloc(const std::string& root);

// Tries in a child process what may crash, run for ever or ask for all memory: hwloc believes the
// XML that it is given. InvalidArgument if the child does not live to its end. `attempt` runs in
// the child only; it must not throw.
absl::Status TryInChild(const std::string& what, const std::function<void()>& attempt);

}  // namespace hwinfo
