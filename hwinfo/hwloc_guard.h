#pragma once

#include <string>

#include "absl/status/status.h"

namespace hwinfo {

// Whether hwloc can be let loose on a tree of files. It opens what it finds: a FIFO would stop it
// for ever, a huge file would eat our memory. The kernel's own sysfs has neither and is not walked;
// anything else, a recorded machine, is. InvalidArgument or ResourceExhausted names the file.
absl::Status CheckTreeForHwloc(const std::string& root);

}  // namespace hwinfo
