#include "scheduler/admission/admit.h"

#include <optional>
#include <utility>

#include "scheduler/admission/cpu_manager.h"
#include "scheduler/admission/device_manager.h"
#include "scheduler/admission/memory_manager.h"
#include "scheduler/admission/topology_manager.h"

namespace scheduler::admission {
namespace {

// One admission in progress.
class Admission {
 public:
  Admission(const NodeState& state, const Request& request)
      : machine_(*state.machine),
        request_(request),
        pool_(state.pool),
        reusable_cpus_(machine_.cpu.cpu_slots) {
    for (const DeviceResource& resource : machine_.devices) {
      reusable_devices_.push_back(Bits(static_cast<int>(resource.devices.size())));
    }
  }

  Verdict Run() && {
    const Settings& settings = machine_.settings;
    const bool aligns = settings.topology_policy != TopologyPolicy::kNone;
    const bool whole_pod = aligns && settings.topology_scope == TopologyScope::kPod;
    bool going = !whole_pod || Align(request_.pod, -1, false);
    for (std::size_t i = 0; going && i < request_.containers.size(); ++i) {
      const ContainerDemand& container = request_.containers[i];
      if (aligns && !whole_pod) going = Align(container.demand, static_cast<int>(i), true);
      going = going && Allocate(container, static_cast<int>(i));
    }
    // What a rejected pod had got is collected before the next admission. That is not always as if
    // it had never been: a node that left a memory group for it stays out of the group.
    if (!verdict_.admitted()) {
      for (const ContainerVerdict& container : verdict_.containers) {
        Release(machine_, container.holding, pool_);
      }
    }
    verdict_.after = std::move(pool_);
    return std::move(verdict_);
  }

 private:
  // Asks every manager and merges (GetTopologyHints or GetPodTopologyHints; Merge). Scope pod does
  // not count what earlier containers leave: there is none yet.
  bool Align(const Demand& demand, int container, bool reuse) {
    absl::InlinedVector<DeviceHints, 2> device_hints;
    std::optional<CpuHints> cpu_hints;
    std::optional<MemoryHints> memory_hints;
    const MemoryDemand memory = OnThisMachine(demand);
    Opinions opinions;
    device_hints.reserve(demand.devices.size());
    for (const auto& [name, count] : demand.devices) {
      AddDeviceOpinion(machine_.FindResource(name), count, reuse, device_hints, opinions);
    }
    if (machine_.settings.cpu_static && demand.cpus > 0) {
      cpu_hints.emplace(machine_, pool_.cpus, reusable_cpus_, demand.cpus);
      opinions.push_back(OpinionOf(*cpu_hints, machine_.cpu.nodes_with_cpus));
    }
    if (machine_.settings.memory_static && !memory.empty()) {
      memory_hints.emplace(machine_, pool_, memory, reusable_memory_);
      // Without any feasible mask the memory manager has no preference, not an impossible one.
      if (memory_hints->Any()) {
        for (std::size_t type = 0; type < memory.size(); ++type) {
          opinions.push_back({Opinion::Kind::kHints, &*memory_hints});
        }
      }
    }
    merged_ = Merge(machine_, opinions);
    if (merged_.admitted) return true;
    Reject(Reason::kTopologyAffinity, Stage::kMerge, Blame::kMerge, container);
    return false;
  }

  void AddDeviceOpinion(int resource, std::int64_t count, bool reuse,
                        absl::InlinedVector<DeviceHints, 2>& hints, Opinions& opinions) {
    if (resource < 0) return;  // no plugin's: the device manager does not know it
    const DeviceResource& facts = machine_.devices[At(resource)];
    if (!facts.aligned) return;
    const Pool::Devices& devices = pool_.devices[At(resource)];
    const Bits available = devices.healthy - devices.allocated;
    const Bits reusable =
        reuse ? reusable_devices_[At(resource)] : Bits(static_cast<int>(facts.devices.size()));
    if ((available | reusable).Count() < count) {
      opinions.push_back({Opinion::Kind::kImpossible, nullptr});
      return;
    }
    hints.emplace_back(machine_, facts, available, reusable, count);
    opinions.push_back(OpinionOf(hints.back(), hints.back().nodes()));
  }

  // An empty list of hints is an impossible wish. Supplies add up, so the widest mask tells.
  static Opinion OpinionOf(const Hints& hints, Mask widest) {
    if (widest == 0 || !hints.Feasible(widest)) return {Opinion::Kind::kImpossible, nullptr};
    return {Opinion::Kind::kHints, &hints};
  }

  MemoryDemand OnThisMachine(const Demand& demand) const {
    MemoryDemand memory;
    for (const auto& [name, bytes] : demand.memory) {
      const int type = machine_.MemoryType(name);
      if (type >= 0) memory.push_back({type, bytes});
    }
    return memory;
  }

  // Devices, then CPUs, then memory, as the managers are registered.
  bool Allocate(const ContainerDemand& container, int index) {
    ContainerVerdict& own = verdict_.containers.emplace_back();
    own.name = container.name;
    own.affinity = merged_.affinity;
    own.has_affinity = merged_.affinity != 0;
    own.preferred = merged_.preferred;
    own.holding.container = container.name;
    own.holding.cpus = Bits(machine_.cpu.cpu_slots);
    for (const auto& [name, count] : container.demand.devices) {
      if (!TakeDevices(machine_.FindResource(name), count, container, own.holding)) {
        verdict_.resource = name;
        return Reject(Reason::kUnexpectedAdmission, Stage::kAllocate, Blame::kDevices, index);
      }
    }
    if (machine_.settings.cpu_static && container.demand.cpus > 0) {
      const CpuError error = TakeCpus(container, own.holding);
      if (error == CpuError::kSmtAlignment) {
        return Reject(Reason::kSmtAlignment, Stage::kAllocate, Blame::kCpus, index);
      }
      if (error != CpuError::kNone) {
        return Reject(Reason::kUnexpectedAdmission, Stage::kAllocate, Blame::kCpus, index);
      }
    }
    if (machine_.settings.memory_static && !TakeMemory(container, own.holding)) {
      return Reject(Reason::kUnexpectedAdmission, Stage::kAllocate, Blame::kMemory, index);
    }
    return true;
  }

  bool TakeDevices(int resource, std::int64_t count, const ContainerDemand& container,
                   Holding& holding) {
    if (resource < 0) return true;
    Bits& reusable = reusable_devices_[At(resource)];
    DeviceGrant grant =
        AllocateDevices(machine_, resource, count, merged_.affinity, reusable, pool_);
    if (!grant.admitted) return false;
    verdict_.ambiguous_devices = verdict_.ambiguous_devices || grant.ambiguous;
    container.reuses() ? reusable |= grant.devices : reusable -= grant.devices;
    if (!grant.devices.None()) holding.devices.push_back({resource, std::move(grant.devices)});
    return true;
  }

  CpuError TakeCpus(const ContainerDemand& container, Holding& holding) {
    CpuGrant grant =
        AllocateCpus(machine_, container.demand.cpus, merged_.affinity, reusable_cpus_, pool_);
    if (grant.error != CpuError::kNone) return grant.error;
    container.reuses() ? reusable_cpus_ |= grant.cpus : reusable_cpus_ -= grant.cpus;
    holding.cpus = std::move(grant.cpus);
    return CpuError::kNone;
  }

  bool TakeMemory(const ContainerDemand& container, Holding& holding) {
    const MemoryDemand demand = OnThisMachine(container.demand);
    if (demand.empty()) return true;
    std::optional<std::vector<MemoryBlock>> blocks = AllocateMemory(
        machine_, demand, merged_.affinity, merged_.preferred, reusable_memory_, pool_);
    if (!blocks) return false;
    for (const MemoryBlock& block : *blocks) {
      if (container.reuses()) {
        reusable_memory_.Offer(block.nodes, block.type, block.bytes);
      } else {
        reusable_memory_.TakeOver(block.nodes, block.type, block.bytes);
      }
    }
    ShrinkReused(*blocks);
    holding.memory = *std::move(blocks);
    return true;
  }

  // updateInitContainersMemoryBlocks: what is used again is booked off the earlier init containers,
  // so that the pod's blocks add up to what it holds.
  void ShrinkReused(const std::vector<MemoryBlock>& blocks) {
    for (const MemoryBlock& block : blocks) {
      std::int64_t rest = block.bytes;
      for (std::size_t i = 0; i + 1 < verdict_.containers.size() && rest > 0; ++i) {
        if (!request_.containers[i].reuses()) continue;
        for (MemoryBlock& earlier : verdict_.containers[i].holding.memory) {
          if (earlier.type != block.type || earlier.nodes != block.nodes) continue;
          const std::int64_t used = std::min(earlier.bytes, rest);
          earlier.bytes -= used;
          rest -= used;
        }
      }
    }
  }

  bool Reject(Reason reason, Stage stage, Blame blame, int container) {
    verdict_.reason = reason;
    verdict_.stage = stage;
    verdict_.blame = blame;
    verdict_.container = container;
    verdict_.has_affinity = merged_.affinity != 0;
    verdict_.affinity = merged_.affinity;
    verdict_.preferred = merged_.preferred;
    verdict_.affinity_computed = merged_.computed;
    return false;
  }

  const Machine& machine_;
  const Request& request_;
  Pool pool_;
  Merged merged_;
  Bits reusable_cpus_;
  absl::InlinedVector<Bits, 1> reusable_devices_;
  ReusableMemory reusable_memory_;
  Verdict verdict_;
};

}  // namespace

const char* KubeletReason(const Verdict& verdict) {
  switch (verdict.reason) {
    case Reason::kAdmitted:
      return "";
    case Reason::kTopologyAffinity:
      return "TopologyAffinityError";
    case Reason::kUnexpectedAdmission:
      return "UnexpectedAdmissionError";
    case Reason::kSmtAlignment:
      return "SMTAlignmentError";
    case Reason::kOutOf:
      return "OutOf";
    case Reason::kKubeletCannot:
      return "KubeletCannot";
  }
  return "";
}

Verdict Admit(const NodeState& state, const Request& request) {
  return Admission(state, request).Run();
}

void Commit(const std::string& uid, Verdict verdict, NodeState& state) {
  state.pool = std::move(verdict.after);
  if (!verdict.admitted()) return;
  std::vector<Holding>& holdings = state.pods[uid];
  for (ContainerVerdict& container : verdict.containers) {
    holdings.push_back(std::move(container.holding));
  }
}

}  // namespace scheduler::admission
