#pragma once

#include <string>
#include <vector>

#include "hwinfo/topology.h"
#include "placement/observation.h"

namespace agent {

struct PictureOptions {
  int width = 80;  // columns, at least 60
  bool ascii = false;
  bool color = false;
  bool hardware_only = false;      // no kubelet: all that is unknown about it goes without saying
  std::vector<std::string> notes;  // what the reader should know first, one line each
};

// Draws the node for a terminal: each NUMA node with what is in it, the pods on it with what they
// hold, then the pods to look at, then what is not known and why. Pure: equal inputs, equal bytes.
// docs/agent.md shows and explains it.
std::string Picture(const hwinfo::Topology& topology, const placement::Observation& observation,
                    const PictureOptions& options);

}  // namespace agent
