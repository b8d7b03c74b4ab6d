#pragma once

#include <vector>

#include "agent/picture_model.h"
#include "agent/text_layout.h"
#include "hwinfo/topology.h"

// The parts of the picture that stand for NUMA nodes.
namespace agent {

struct Drawing {
  Canvas& canvas;
  const hwinfo::Topology& topology;
  bool short_addresses;  // all PCI devices are in domain 0, which is then left out
};

// One NUMA node in a box of its own.
void DrawNode(const Drawing& drawing, const NodeView& node);
// Many nodes without pods and GPUs, one line each; empty ones folded into one.
void DrawQuietNodes(const Drawing& drawing, const std::vector<const NodeView*>& nodes);
// Devices and pods of which nobody says on which node they are; nothing if there are none.
void DrawNowhere(const Drawing& drawing, const NodeView& nowhere);

// "Aligned" and the like in the picture's words and colours.
Span AlignmentWord(placement::Alignment alignment);

}  // namespace agent
