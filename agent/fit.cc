#include "agent/fit.h"

#include <array>

#include "placement/encode.h"

namespace agent {
namespace {

using placement::Alignment;
using placement::NodePlacement;
using placement::PlacedContainer;
using placement::PlacedPod;

void DropResidentBytes(PlacedPod& pod) {
  for (PlacedContainer& container : pod.containers) {
    if (container.kernel) container.kernel->resident_bytes.clear();
  }
}

void DropMessage(PlacedPod& pod) { pod.message.clear(); }

void DropKernel(PlacedPod& pod) {
  if (pod.alignment == Alignment::kDrifted) return;
  for (PlacedContainer& container : pod.containers) container.kernel.reset();
}

struct Cut {
  const char* field;
  void (*drop)(PlacedPod&);
};
constexpr std::array<Cut, 3> kCuts = {{{"pods.containers.kernel.residentBytes", DropResidentBytes},
                                       {"pods.message", DropMessage},
                                       {"pods.containers.kernel", DropKernel}}};

}  // namespace

Fitted Fit(const NodePlacement& placement, std::size_t most_bytes) {
  Fitted fitted{.json = placement::ToJson(placement)};
  if (fitted.json.size() <= most_bytes) return fitted;
  NodePlacement less = placement;
  for (const Cut& cut : kCuts) {
    for (PlacedPod& pod : less.pods) cut.drop(pod);
    fitted.json = placement::ToJson(less);
    fitted.left_out.emplace_back(cut.field);
    if (fitted.json.size() <= most_bytes) return fitted;
  }
  fitted.fits = false;
  return fitted;
}

}  // namespace agent
