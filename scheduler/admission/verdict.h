#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kube/pod.h"
#include "scheduler/admission/limit.h"
#include "scheduler/admission/machine.h"
#include "scheduler/admission/state.h"

namespace scheduler::admission {

// The managers' reasons for refusing a pod, and two of ours. Those of the node's sums, which are
// checked later, are texts (node_sums.h).
enum class Reason {
  kAdmitted,
  kTopologyAffinity,     // TopologyAffinityError: the merged hint is not good enough for the policy
  kUnexpectedAdmission,  // UnexpectedAdmissionError: a manager could not allocate after all
  kSmtAlignment,         // SMTAlignmentError: full-pcpus-only
  kEmptyPodPool,         // EmptyPodSharedPoolError: a pod's own resources leave nothing to share
  kKubeletCannot,        // the kubelet itself cannot answer: it would not start, hang or panic
};

enum class Stage { kNone, kMerge, kAllocate };

// The kubelet's answer to a pod.
struct Outcome {
  Reason reason = Reason::kAdmitted;
  Limit limit = Limit::kNone;  // of kKubeletCannot
  Stage stage = Stage::kNone;
  int container = -1;         // position of the container that failed; -1 under scope pod's merge
  bool has_affinity = false;  // of a rejection: the last merged hint
  Mask affinity = 0;
  bool preferred = false;
  bool affinity_computed = true;
  bool ambiguous_devices = false;  // another choice of devices is possible; only from Admit

  // The prediction follows this kubelet's release exactly; another one, or an unknown one, may
  // differ.
  bool verified_version = false;

  bool admitted() const { return reason == Reason::kAdmitted; }
  // Where the kubelet has no answer that is a rejection only if asking would harm it.
  bool rejected() const { return reason == Reason::kKubeletCannot ? IsFatal(limit) : !admitted(); }
  bool operator==(const Outcome&) const = default;
};

struct ContainerVerdict {
  std::string name;
  Mask affinity = 0;  // 0: no mask
  bool has_affinity = false;
  bool preferred = false;
  Holding holding;
  bool operator==(const ContainerVerdict&) const = default;
};

// The answer with all that comes of it. Plain value.
struct Verdict : Outcome {
  std::vector<ContainerVerdict>
      containers;              // in the order of admission; up to the failure if rejected
  std::optional<Holding> pod;  // what the pod holds itself: its containers have parts of it
  Pool after;  // what the next admission finds, a rejected pod's leftovers collected
};

// The kubelet's reason: "", "TopologyAffinityError", …
const char* KubeletReason(const Outcome& outcome);

}  // namespace scheduler::admission
