#pragma once

#include <string>

namespace agent {

// One run of the kubelet. Empty parts are not known.
struct KubeletRun {
  std::string process;  // pid and start; "" if /proc does not show it
  std::string socket;   // which socket file; "" if there is none
  bool operator==(const KubeletRun&) const = default;
};

}  // namespace agent
