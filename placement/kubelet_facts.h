#pragma once

#include "placement/observation.h"

namespace placement {

// The kubelet's policies as they are in force. For a kubelet that answers, the policy in its state
// file is the one in force, since it refuses to start with another one; otherwise the configured
// one is. Where neither says, its answer does: allocatable CPUs and memory exist under the static
// policies only. `diagnostics` gets what contradicts.
KubeletFacts GatherKubeletFacts(const Facts& facts, base::Diagnostics& diagnostics);

bool HasStaticCpus(const KubeletFacts& kubelet);
bool HasStaticMemory(const KubeletFacts& kubelet);

// The CPUs that the kubelet would reserve for an amount: whole cores first, lowest ids first. An
// estimate, for where it does not say.
base::CpuSet EstimateReservedCpus(const hwinfo::Topology& topology, std::int64_t milli);

}  // namespace placement
