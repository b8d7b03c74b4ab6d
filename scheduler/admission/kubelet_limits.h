#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "placement/node_placement.h"
#include "scheduler/admission/hints.h"
#include "scheduler/admission/limit.h"
#include "scheduler/admission/machine.h"
#include "scheduler/admission/request.h"
#include "scheduler/admission/state.h"
#include "scheduler/admission/wants.h"

// Finds where the kubelet (1.37, pkg/kubelet/cm) has no answer. All functions are pure.
namespace scheduler::admission {

// A manager that lists all sets of that many NUMA nodes needs minutes and gigabytes, for each more
// node twice as much. The number is ours: the kubelet sets itself none.
inline constexpr int kMaxListedNodes = 24;
// So does the device manager, which looks at every device of the resource for each of the sets.
inline constexpr std::int64_t kMaxDeviceLooks = std::int64_t{1} << 32;

// Whether device hints over that many NUMA nodes are beyond one of the two.
bool ListsTooManySets(int nodes, std::size_t devices);

// One sentence without a full stop: "the kubelet would crash: …".
std::string LimitSentence(const Machine& machine, Limit limit);

// Part of BuildMachine, after settings and NUMA ids are known: fills in what limits every pod.
// Claims nothing that was not told: feature gates that are missing, reserved CPUs, reserved memory
// unless it comes from the kubelet's configuration. Whether that equals the node-allocatable
// reservation, as the kubelet demands, a NodePlacement does not say.
void ReadLimits(const placement::KubeletFacts& kubelet, Machine& machine);

// What limits every pod like this one on the machine, whatever is free.
Limit FindLimit(const Machine& machine, const Request& request);

// What the managers run into while they make hints for a demand: sets of nodes that are too many
// (devices: of the nodes that host some, before 1.36 of all; CPUs: of those with CPUs; memory: of
// all), and memory tables that some node lacks.
Limit FindHintLimit(const Machine& machine, const Pool& pool, const Wants& wants);

// What the memory manager runs into in Allocate. It makes hints of its own for affinity 0 ("none")
// and where the affinity does not suffice; an affinity that does is only looked at itself.
Limit FindMemoryLimit(const Machine& machine, const Pool& pool, const Wants& wants, Mask affinity);

// kDistances if the merge would crash. CalculateAverageFor looks up distances[id][id], where the
// rows are lists by position, for two different masks of one size that are both preferred or both
// not; it crashes if one of them has an id that is not below the number of nodes. This follows the
// combinations of hints in the kubelet's order up to the first preferred one; from there on it
// crashes if the narrowest preferred masks are several and one is such. The first `devices`
// opinions are devices, which come in random order: one order that crashes is enough. Beyond 65,536
// combinations, 1,048,576 in all orders together, kMaxEnumeratedNodes or 6 device resources the
// worst is assumed.
Limit FindDistanceLimit(const Machine& machine, const Opinions& opinions, std::size_t devices);

}  // namespace scheduler::admission
