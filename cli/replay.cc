#include "cli/replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "base/status_macros.h"
#include "placement/decode.h"
#include "placement/encode.h"
#include "scheduler/admission/admit.h"
#include "scheduler/admission/node_sums.h"
#include "scheduler/admission/request.h"
#include "scheduler/admission/state.h"

namespace cli {
namespace {

namespace admission = scheduler::admission;

using admission::At;
using admission::ToCpuSet;

std::optional<base::NumaMask> Affinity(const admission::Machine& machine, bool has,
                                       admission::Mask mask) {
  return has ? std::optional(machine.ToIds(mask)) : std::nullopt;
}

RecordedContainer Describe(const admission::NodeState& state,
                           const admission::ContainerVerdict& container) {
  const admission::Machine& machine = *state.machine;
  RecordedContainer words;
  words.name = container.name;
  words.affinity = Affinity(machine, container.has_affinity, container.affinity);
  words.preferred = container.preferred;
  words.cpus = ToCpuSet(container.holding.cpus);
  for (const admission::MemoryBlock& block : container.holding.memory) {
    words.memory.push_back({.type = machine.memory_types[At(block.type)],
                            .bytes = block.bytes,
                            .numa_nodes = machine.ToIds(block.nodes)});
  }
  for (const auto& [resource, bits] : container.holding.devices) {
    const std::vector<std::string>& all = (*state.device_ids)[At(resource)];
    std::vector<std::string>& ids = words.devices[machine.devices[At(resource)].name];
    bits.ForEach([&](int device) { ids.push_back(all[At(device)]); });
  }
  return words;
}

// Our verdict in the recording's words.
RecordedVerdict Describe(const admission::NodeState& state, const admission::Verdict& verdict) {
  const admission::Machine& machine = *state.machine;
  RecordedVerdict words;
  words.admitted = verdict.admitted();
  words.reason = admission::KubeletReason(verdict);
  if (!words.admitted) {
    words.rejected_affinity = Affinity(machine, verdict.has_affinity, verdict.affinity);
    words.rejected_preferred = verdict.preferred;
    return words;
  }
  if (verdict.pod) {
    admission::ContainerVerdict own;
    own.holding = *verdict.pod;
    words.containers.push_back(Describe(state, own));
  }
  for (const admission::ContainerVerdict& container : verdict.containers) {
    words.containers.push_back(Describe(state, container));
  }
  if (!machine.settings.cpu_static) return words;
  admission::Bits shared = verdict.after.cpus;
  if (!machine.settings.strict_cpu_reservation) shared |= machine.reserved_cpus;
  // On uneven machines a container may have got a reserved CPU.
  for (const auto& [uid, holdings] : state.pods) {
    const bool own = !holdings.empty() && holdings.front().container.empty();
    for (const admission::Holding& holding : holdings) {
      if (!own || holding.container.empty()) shared -= holding.cpus;
    }
  }
  if (verdict.pod) shared -= verdict.pod->cpus;
  for (const admission::ContainerVerdict& container : verdict.containers) {
    if (!verdict.pod) shared -= container.holding.cpus;
  }
  words.shared_cpus = ToCpuSet(shared);
  return words;
}

// How many devices of each resource and set of NUMA nodes: which of several alike a plugin gives is
// its own affair.
std::map<std::string, int> PerNode(const admission::NodeState& state,
                                   const std::vector<RecordedContainer>& containers) {
  const admission::Machine& machine = *state.machine;
  std::map<std::string, int> counts;
  for (const RecordedContainer& container : containers) {
    for (const auto& [resource, ids] : container.devices) {
      const int position = machine.FindResource(resource);
      if (position < 0) continue;
      const std::vector<admission::Device>& all = machine.devices[At(position)].devices;
      for (const std::string& id : ids) {
        const int device = admission::FindDevice(state, position, id);
        const std::string nodes =
            device < 0 ? "?" : machine.ToIds(all[At(device)].nodes).ToString();
        ++counts[fmt::format("{} {} on {}", container.name, resource, nodes)];
      }
    }
  }
  return counts;
}

template <class Member>
bool EqualIn(const std::vector<RecordedContainer>& a, const std::vector<RecordedContainer>& b,
             Member member) {
  return std::ranges::equal(a, b, {}, member, member);
}

std::string Text(const std::optional<base::NumaMask>& affinity, bool preferred) {
  return fmt::format("{}{}", affinity ? affinity->ToString() : "none",
                     preferred ? "" : " (not preferred)");
}

std::string Text(const RecordedVerdict& verdict) {
  if (!verdict.admitted) {
    return fmt::format("{} at affinity {} {}", verdict.reason,
                       Text(verdict.rejected_affinity, verdict.rejected_preferred),
                       verdict.message);
  }
  std::string text = "admitted";
  for (const RecordedContainer& container : verdict.containers) {
    text += fmt::format("; {}: affinity {}, CPUs \"{}\"", container.name,
                        Text(container.affinity, container.preferred), container.cpus.ToString());
    for (const placement::PlacedMemory& block : container.memory) {
      text += fmt::format(", {} {} on {}", block.bytes, block.type, block.numa_nodes.ToString());
    }
    for (const auto& [resource, ids] : container.devices) {
      text += fmt::format(", {} {}", resource, fmt::join(ids, " "));
    }
  }
  if (verdict.shared_cpus) text += fmt::format("; shared \"{}\"", verdict.shared_cpus->ToString());
  return text;
}

class Replayer {
 public:
  Replayer(const Recording& recording, const ReplayOptions& options, Agreement& agreement)
      : recording_(recording),
        live_(options.live),
        through_json_(options.through_json),
        agreement_(agreement) {
    if (live_ && recording.node_allocatable) sums_.emplace(*recording.node_allocatable);
  }

  absl::Status Run() {
    ASSIGN_OR_RETURN(state_, admission::StateFrom(recording_.node, recording_.device_order));
    bool same = true;
    for (std::size_t i = 0; i < recording_.events.size(); ++i) {
      const RecordedEvent& event = recording_.events[i];
      if (same) {
        same = Step(event, static_cast<int>(i));
        if (through_json_) RETURN_IF_ERROR(PublishAndRead());
      } else if (event.kind == RecordedEvent::Kind::kAdd) {
        ++agreement_.left_out;
      }
    }
    return absl::OkStatus();
  }

 private:
  absl::Status PublishAndRead() {
    placement::NodePlacement node = recording_.node;
    admission::WriteState(state_, node);
    ASSIGN_OR_RETURN(node, placement::ParseNodePlacement(placement::ToJson(node)));
    ASSIGN_OR_RETURN(state_, admission::StateFrom(node, recording_.device_order));
    return absl::OkStatus();
  }

  // False if the histories part here.
  bool Step(const RecordedEvent& event, int index) {
    switch (event.kind) {
      case RecordedEvent::Kind::kRemove:
        Forget(event.pod.uid);
        return true;
      case RecordedEvent::Kind::kDeviceHealth:
        admission::SetDevices(state_, event.resource, event.unhealthy);
        return true;
      case RecordedEvent::Kind::kAdd:
        return Add(event, index);
    }
    return true;
  }

  bool Add(const RecordedEvent& event, int index) {
    if (live_ && !event.live) {
      ++agreement_.untold;
      return true;
    }
    admission::Verdict verdict = admission::Admit(state_, admission::MakeRequest(event.pod));
    RecordedVerdict ours = Describe(state_, verdict);
    if (sums_ && verdict.admitted()) ours.reason = sums_->Check(event.pod);
    const bool refused_later = ours.admitted && !ours.reason.empty();
    if (refused_later) {
      ours.admitted = false;
      ours.containers.clear();
    }
    const RecordedVerdict& theirs = live_ ? *event.live : event.verdict;
    Compare(ours, theirs, index);
    admission::Commit(event.pod.uid, std::move(verdict), state_);
    if (refused_later) {
      admission::Remove(state_, event.pod.uid);
    } else if (ours.admitted) {
      admitted_[event.pod.uid] = &event.pod;
      if (sums_) sums_->Add(event.pod);
      if (!event.not_started) admission::Started(state_, event.pod);
    }
    return ours.admitted == theirs.admitted;
  }

  void Forget(const std::string& uid) {
    admission::Remove(state_, uid);
    const auto found = admitted_.find(uid);
    if (found == admitted_.end()) return;
    if (sums_) sums_->Remove(*found->second);
    admitted_.erase(found);
  }

  void Compare(const RecordedVerdict& ours, const RecordedVerdict& theirs, int index) {
    const auto& a = ours.containers;
    const auto& b = theirs.containers;
    const bool verdict = ours.admitted == theirs.admitted;
    const bool reason = ours.reason == theirs.reason;
    // A running kubelet tells no hints.
    const bool affinity =
        verdict && (live_ || (EqualIn(a, b, &RecordedContainer::affinity) &&
                              EqualIn(a, b, &RecordedContainer::preferred) &&
                              ours.rejected_affinity == theirs.rejected_affinity &&
                              ours.rejected_preferred == theirs.rejected_preferred));
    const bool shared =
        !ours.shared_cpus || !theirs.shared_cpus || ours.shared_cpus == theirs.shared_cpus;
    const bool cpus = verdict && shared && EqualIn(a, b, &RecordedContainer::cpus);
    const bool memory = verdict && EqualIn(a, b, &RecordedContainer::memory);
    const bool devices =
        verdict && (theirs.ambiguous_devices || PerNode(state_, a) == PerNode(state_, b));
    ++agreement_.events;
    agreement_.verdicts += verdict ? 1 : 0;
    agreement_.reasons += reason ? 1 : 0;
    agreement_.affinities += affinity ? 1 : 0;
    agreement_.cpus += cpus ? 1 : 0;
    agreement_.memory += memory ? 1 : 0;
    agreement_.devices += devices ? 1 : 0;
    if (verdict && reason && affinity && cpus && memory && devices) return;
    agreement_.differences.push_back(
        fmt::format("{} event {} pod {}\n  predicted: {}\n  kubelet:   {}", Name(), index + 1,
                    recording_.events[At(index)].pod.uid, Text(ours), Text(theirs)));
  }

  std::string Name() const { return recording_.name.empty() ? recording_.family : recording_.name; }

  const Recording& recording_;
  bool live_;
  bool through_json_;
  Agreement& agreement_;
  admission::NodeState state_;
  std::optional<admission::NodeSums> sums_;  // live, and the node says its allocatable
  std::map<std::string, const kube::Pod*> admitted_;
};

}  // namespace

absl::Status Replay(const Recording& recording, const ReplayOptions& options,
                    Agreement& agreement) {
  return Replayer(recording, options, agreement).Run();
}

}  // namespace cli
