#include "scheduler/ledger/view.h"

#include <algorithm>

namespace scheduler::ledger {

const NodeView* Snapshot::Find(const std::string& name) const {
  const auto found = std::ranges::lower_bound(
      *views_, name, {}, [](const NodeViewPtr& view) -> const std::string& { return view->name; });
  return found == views_->end() || (*found)->name != name ? nullptr : found->get();
}

const char* ToString(Confidence confidence) {
  static constexpr std::array kNames = {"Observed", "Stale", "Silent", "Predicted", "None"};
  return kNames[static_cast<std::size_t>(confidence)];
}

const char* ToString(Standing standing) {
  static constexpr std::array kNames = {"Observed", "Missing", "Admitted", "Bound", "Leased"};
  return kNames[static_cast<std::size_t>(standing)];
}

const char* ToString(DivergenceKind kind) {
  static constexpr std::array<const char*, kDivergenceKinds> kNames = {
      "OtherNumaNode",        "ForeignPod",      "UnknownPod",
      "MissingPod",           "CapacityChanged", "KubeletRestarted",
      "ConfigurationChanged", "NodeRecreated",   "RefusedAfterYes"};
  return kNames[static_cast<std::size_t>(kind)];
}

}  // namespace scheduler::ledger
