#include "placement/node_placement.h"

namespace placement {

const char* ToString(Alignment alignment) {
  switch (alignment) {
    case Alignment::kAligned:
      return "Aligned";
    case Alignment::kSpread:
      return "Spread";
    case Alignment::kMisaligned:
      return "Misaligned";
    case Alignment::kUnpinned:
      return "Unpinned";
    case Alignment::kDrifted:
      return "Drifted";
    case Alignment::kUnknown:
      break;
  }
  return "Unknown";
}

}  // namespace placement
