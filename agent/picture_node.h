#pragma once

#include <vector>

#include "agent/picture_model.h"
#include "base/text_layout.h"
#include "hwinfo/topology.h"

// The parts of the picture that stand for NUMA nodes.
namespace agent {

// What pictures are drawn with.
using base::Bar;
using base::Canvas;
using base::Clean;
using base::Count;
using base::Glyphs;
using base::HumanBytes;
using base::JoinWrapped;
using base::Line;
using base::Pad;
using base::ShortList;
using base::Span;
using base::Style;
using base::Truncate;
using base::Width;
using base::Wrap;

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
