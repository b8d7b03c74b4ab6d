#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/cpu_set.h"
#include "cli/scene.h"
#include "placement/node_placement.h"

namespace cli {

// What there is, is free or is held on one NUMA node; or, for devices that their plugin puts on
// several NUMA nodes or on none, on these.
struct Share {
  base::NumaMask nodes;
  base::CpuSet cpus;                           // that may be exclusive
  std::map<std::string, std::int64_t> memory;  // bytes by type; empty if memory is not pinned
  std::map<std::string, int> devices;          // by resource
  bool operator==(const Share&) const = default;
};

struct SimulatedDevices {
  std::string resource;
  std::vector<std::string> ids;  // sorted
  base::NumaMask nodes;
};

struct SimulatedContainer {
  std::string name;
  std::optional<base::NumaMask> affinity;  // the topology manager's merged hint; nullopt: none
  bool preferred = false;
  base::CpuSet cpus;  // exclusive ones
  base::NumaMask cpu_nodes;
  std::vector<placement::PlacedMemory> memory;
  std::vector<SimulatedDevices> devices;
};

struct SimulatedPod {
  // kUnknown: such a kubelet would not start, or has more NUMA nodes than can be predicted.
  enum class Verdict { kAdmitted, kRefused, kAlreadyThere, kUnknown };
  std::string namespace_name;
  std::string name;
  Verdict verdict = Verdict::kAdmitted;
  std::string reason;                          // the kubelet's, of a refusal
  std::string why;                             // a sentence
  std::vector<SimulatedContainer> containers;  // of an admitted pod; init containers first
  std::vector<Share> held;                     // before its init containers end; no empty shares
  bool devices_may_differ = false;             // of several alike, the kubelet may take others

  base::NumaMask nodes() const;  // of all that it holds
};

struct Simulation {
  std::string node_name;
  placement::KubeletFacts kubelet;
  std::vector<std::string> notes;
  std::vector<SimulatedPod> pods;
  std::vector<Share> total;  // each NUMA node, then devices on several or none
  std::vector<Share> free;   // in the same order, after the last pod

  int Count(SimulatedPod::Verdict verdict) const;
};

// Admits the scene's pods one after the other, each started before the next comes.
Simulation Simulate(Scene scene);

}  // namespace cli
