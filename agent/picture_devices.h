#pragma once

#include <vector>

#include "agent/picture_node.h"

namespace agent {

// The devices of one place as rows of the open box: GPUs and accelerators, NICs, then the rest on
// one line. Long lists fold; a device that a pod holds stays visible first.
void DrawDevices(const Drawing& drawing, const std::vector<const DeviceView*>& devices);

}  // namespace agent
