#include "scheduler/admission/admit.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "scheduler/admission/cpu_manager.h"
#include "scheduler/admission/device_manager.h"
#include "scheduler/admission/kubelet_limits.h"
#include "scheduler/admission/memory_manager.h"
#include "scheduler/admission/pod_level.h"
#include "scheduler/admission/release.h"
#include "scheduler/admission/topology_manager.h"
#include "scheduler/admission/wants.h"

namespace scheduler::admission {
namespace {

// One admission in progress. With a verdict to fill in, everything is allocated and written down;
// without one only the answer is worked out: the last container's allocation is just checked.
class Admission {
 public:
  Admission(const NodeState& state, const Request& request, Verdict* verdict,
            Choices* choices = nullptr)
      : machine_(*state.machine),
        request_(request),
        before_(state.pool),
        verdict_(verdict),
        choices_(choices),
        managed_(ManagesPod(machine_.settings, request)),
        reusable_cpus_(machine_.cpu.cpu_slots) {
    for (const DeviceResource& resource : machine_.devices) {
      reusable_devices_.push_back(Bits(static_cast<int>(resource.devices.size())));
    }
    if (verdict_ != nullptr) verdict_->containers.reserve(request.containers.size());
  }

  Outcome Run() {
    outcome_.verified_version = machine_.settings.minor_version == kVerifiedRelease;
    const Limit limit = FindLimit(machine_, request_);
    limit != Limit::kNone ? Stop(limit, Stage::kNone, -1) : AdmitContainers();
    if (verdict_ != nullptr) Conclude();
    return outcome_;
  }

 private:
  bool AdmitContainers() {
    const Settings& settings = machine_.settings;
    const bool aligns = settings.topology_policy != TopologyPolicy::kNone;
    const bool whole_pod = aligns && settings.topology_scope == TopologyScope::kPod;
    const bool as_one = whole_pod && request_.pod_level && managed_;
    bool going = !whole_pod || Align(WantsOfPod(), -1, false);
    if (as_one) return going && AllocatePod();
    for (std::size_t i = 0; going && i < request_.containers.size(); ++i) {
      const ContainerDemand& container = request_.containers[i];
      const Wants wants(machine_, container.demand, managed_);
      if (aligns && !whole_pod) going = Align(wants, static_cast<int>(i), true);
      if (!going) break;
      const bool last = i + 1 == request_.containers.size();
      going = verdict_ == nullptr && last ? Check(wants, static_cast<int>(i))
                                          : Allocate(wants, container, static_cast<int>(i));
    }
    return going;
  }

  const Pool& pool() const { return changed_ ? *changed_ : before_; }
  Pool& mutable_pool() {
    if (!changed_) changed_.emplace(before_);
    return *changed_;
  }

  Wants WantsOfPod() const {
    Wants wants(machine_, request_.pod, managed_);
    if (managed_ && PodMemoryCountsInitTypes(machine_.settings.minor_version)) {
      wants.AddMemory(machine_, request_.pod_init_memory);
    }
    return wants;
  }

  // What a rejected pod had got is collected before the next admission. That is not always as if it
  // had never been: a node that left a memory group for it stays out of the group.
  void Conclude() {
    Pool& after = mutable_pool();
    if (!outcome_.admitted()) {
      for (const ContainerVerdict& container : verdict_->containers) {
        Release(machine_, container.holding, after);
      }
    }
    static_cast<Outcome&>(*verdict_) = outcome_;
    verdict_->after = std::move(after);
  }

  // Asks every manager and merges (GetTopologyHints or GetPodTopologyHints; Merge). Scope pod does
  // not count what earlier containers leave: there is none yet.
  bool Align(const Wants& wants, int container, bool reuse) {
    const Limit before = FindHintLimit(machine_, pool(), wants);
    if (before != Limit::kNone) return Stop(before, Stage::kMerge, container);
    absl::InlinedVector<DeviceHints, 2> device_hints;
    std::optional<CpuHints> cpu_hints;
    std::optional<MemoryHints> memory_hints;
    Opinions opinions;
    device_hints.reserve(wants.devices.size());
    for (const auto& [resource, count] : wants.devices) {
      AddDeviceOpinion(resource, count, reuse, device_hints, opinions);
    }
    const std::size_t devices = opinions.size();
    const bool no_cpus = container < 0 && request_.cpus_leave_no_pool;
    const bool no_memory = container < 0 && request_.memory_leaves_no_pool;
    if (wants.cpus > 0 && no_cpus) opinions.push_back({Opinion::Kind::kImpossible, nullptr});
    if (wants.cpus > 0 && !no_cpus) {
      cpu_hints.emplace(machine_, pool().cpus, reusable_cpus_, wants.cpus);
      opinions.push_back(OpinionOf(*cpu_hints, machine_.cpu.nodes_with_cpus));
    }
    if (!wants.memory.empty() && no_memory) {
      opinions.push_back({Opinion::Kind::kImpossible, nullptr});
    }
    if (!wants.memory.empty() && !no_memory) {
      memory_hints.emplace(machine_, pool(), wants.memory, reusable_memory_);
      // Without any feasible mask the memory manager has no preference, not an impossible one.
      if (memory_hints->Any()) {
        for (std::size_t type = 0; type < wants.memory.size(); ++type) {
          opinions.push_back({Opinion::Kind::kHints, &*memory_hints});
        }
      }
    }
    const Limit limit = FindDistanceLimit(machine_, opinions, devices);
    if (limit != Limit::kNone) return Stop(limit, Stage::kMerge, container);
    merged_ = Merge(machine_, opinions, verdict_ != nullptr);
    return merged_.admitted || Reject(Reason::kTopologyAffinity, Stage::kMerge, container);
  }

  void AddDeviceOpinion(int resource, std::int64_t count, bool reuse,
                        absl::InlinedVector<DeviceHints, 2>& hints, Opinions& opinions) {
    const DeviceResource& facts = machine_.devices[At(resource)];
    if (!facts.aligned) return;
    const Pool::Devices& devices = pool().devices[At(resource)];
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

  // What Allocate would answer for the last container. Nobody asks what it would take.
  bool Check(const Wants& wants, int index) {
    for (const auto& [resource, count] : wants.devices) {
      if (!CanAllocateDevices(count, reusable_devices_[At(resource)],
                              pool().devices[At(resource)])) {
        return RejectAllocation(index);
      }
    }
    if (wants.cpus > 0) {
      const CpuError error =
          CanAllocateCpus(machine_, wants.cpus, merged_.affinity, reusable_cpus_, pool());
      if (error != CpuError::kNone) return RejectCpus(error, index);
    }
    if (LimitsMemory(wants, index)) return false;
    if (!wants.memory.empty() &&
        ChooseMemoryNodes(machine_, wants.memory, merged_.affinity, merged_.preferred,
                          reusable_memory_, pool()) == 0) {
      return RejectAllocation(index);
    }
    return true;
  }

  // Devices, then CPUs, then memory, as the managers are registered.
  bool Allocate(const Wants& wants, const ContainerDemand& container, int index) {
    Holding& holding = Begin(container);
    for (const auto& [resource, count] : wants.devices) {
      if (!TakeDevices(resource, count, container, holding)) return RejectAllocation(index);
    }
    if (wants.cpus > 0) {
      const CpuError error = TakeCpus(wants.cpus, container, holding);
      if (error != CpuError::kNone) return RejectCpus(error, index);
    }
    if (LimitsMemory(wants, index)) return false;
    if (!wants.memory.empty() && !TakeMemory(wants.memory, container, index, holding)) {
      return RejectAllocation(index);
    }
    return true;
  }

  // Where a container's holding is written down: in the verdict, or nowhere.
  Holding& Begin(const ContainerDemand& container) {
    Holding& holding = verdict_ != nullptr ? AddContainer(container) : unrecorded_;
    holding.cpus = Bits(machine_.cpu.cpu_slots);
    holding.memory.clear();
    holding.devices.clear();
    return holding;
  }

  Holding& AddContainer(const ContainerDemand& container) {
    ContainerVerdict& own = verdict_->containers.emplace_back();
    own.name = container.name;
    own.affinity = merged_.affinity;
    own.has_affinity = merged_.affinity != 0;
    own.preferred = merged_.preferred;
    own.holding.container = container.name;
    return own.holding;
  }

  bool TakeDevices(int resource, std::int64_t count, const ContainerDemand& container,
                   Holding& holding) {
    Bits& reusable = reusable_devices_[At(resource)];
    DeviceGrant grant = AllocateDevices(machine_, resource, count, merged_.affinity, reusable,
                                        mutable_pool(), choices_);
    if (!grant.admitted) return false;
    outcome_.ambiguous_devices = outcome_.ambiguous_devices || grant.ambiguous;
    container.reuses() ? reusable |= grant.devices : reusable -= grant.devices;
    if (!grant.devices.None()) holding.devices.push_back({resource, std::move(grant.devices)});
    return true;
  }

  CpuError TakeCpus(std::int64_t cpus, const ContainerDemand& container, Holding& holding) {
    CpuGrant grant = AllocateCpus(machine_, cpus, merged_.affinity, reusable_cpus_, mutable_pool());
    if (grant.error != CpuError::kNone) return grant.error;
    container.reuses() ? reusable_cpus_ |= grant.cpus : reusable_cpus_ -= grant.cpus;
    holding.cpus = std::move(grant.cpus);
    return CpuError::kNone;
  }

  bool TakeMemory(const MemoryDemand& demand, const ContainerDemand& container, int index,
                  Holding& holding) {
    MemoryBlocks blocks = AllocateMemory(machine_, demand, merged_.affinity, merged_.preferred,
                                         reusable_memory_, mutable_pool());
    if (blocks.empty()) return false;
    for (const MemoryBlock& block : blocks) {
      if (container.reuses()) {
        reusable_memory_.Offer(block.nodes, block.type, block.bytes);
      } else {
        reusable_memory_.TakeOver(block.nodes, block.type, block.bytes);
      }
    }
    if (verdict_ != nullptr) ShrinkReused(blocks, index);
    holding.memory = std::move(blocks);
    return true;
  }

  // updateInitContainersMemoryBlocks: what is used again is booked off the earlier init containers,
  // so that the pod's blocks add up to what it holds.
  void ShrinkReused(const MemoryBlocks& blocks, int index) {
    for (const MemoryBlock& block : blocks) {
      std::int64_t rest = block.bytes;
      for (int i = 0; i < index && rest > 0; ++i) {
        if (!request_.containers[At(i)].reuses()) continue;
        for (MemoryBlock& earlier : verdict_->containers[At(i)].holding.memory) {
          if (earlier.type != block.type || earlier.nodes != block.nodes) continue;
          const std::int64_t used = std::min(earlier.bytes, rest);
          earlier.bytes -= used;
          rest -= used;
        }
      }
    }
  }

  // One allocation for a pod with resources of its own, then each container's part of it
  // (AllocatePod of both managers). The device manager has no such thing: devices are given when
  // the containers start, if there are any left.
  bool AllocatePod() {
    const Wants wants = WantsOfPod();
    Holding own;
    own.cpus = Bits(machine_.cpu.cpu_slots);
    if (wants.cpus > 0) {
      if (request_.cpus_leave_no_pool) return RejectPool();
      CpuGrant grant =
          AllocateCpus(machine_, wants.cpus, merged_.affinity, own.cpus, mutable_pool());
      if (grant.error != CpuError::kNone) return RejectCpus(grant.error, -1);
      own.cpus = std::move(grant.cpus);
    }
    const bool admitted = AllocatePodsMemory(wants, own) && SplitAmongContainers(own);
    if (!admitted) Release(machine_, own, mutable_pool());
    return admitted;
  }

  bool AllocatePodsMemory(const Wants& wants, Holding& own) {
    if (LimitsMemory(wants, -1)) return false;
    if (wants.memory.empty()) return true;
    if (request_.memory_leaves_no_pool) return RejectPool();
    own.memory = AllocateMemory(machine_, wants.memory, merged_.affinity, merged_.preferred, {},
                                mutable_pool());
    return !own.memory.empty() || RejectAllocation(-1);
  }

  bool SplitAmongContainers(Holding& own) {
    const int nodes = std::popcount(merged_.affinity);
    std::optional<std::vector<Bits>> cpus = SplitCpus(machine_, request_, own.cpus, nodes);
    if (!cpus) return RejectCpus(CpuError::kNotEnough, -1);
    if (verdict_ == nullptr) return true;
    std::vector<MemoryBlocks> memory = SplitMemory(machine_, request_, own.memory);
    for (std::size_t i = 0; i < request_.containers.size(); ++i) {
      const ContainerDemand& container = request_.containers[i];
      Holding& holding = Begin(container);
      for (const auto& [resource, count] : Wants(machine_, container.demand, false).devices) {
        TakeDevices(resource, count, container, holding);
      }
      holding.cpus = std::move((*cpus)[i]);
      holding.memory = std::move(memory[i]);
    }
    if (!own.cpus.None() || !own.memory.empty()) verdict_->pod = std::move(own);
    return true;
  }

  bool LimitsMemory(const Wants& wants, int container) {
    const Limit limit = FindMemoryLimit(machine_, pool(), wants, merged_.affinity);
    return limit != Limit::kNone && !Stop(limit, Stage::kAllocate, container);
  }

  bool RejectPool() { return Reject(Reason::kEmptyPodPool, Stage::kAllocate, -1); }
  bool RejectCpus(CpuError error, int container) {
    if (error == CpuError::kEndless)
      return Stop(Limit::kEndlessSearch, Stage::kAllocate, container);
    const Reason reason =
        error == CpuError::kSmtAlignment ? Reason::kSmtAlignment : Reason::kUnexpectedAdmission;
    return Reject(reason, Stage::kAllocate, container);
  }
  bool RejectAllocation(int container) {
    return Reject(Reason::kUnexpectedAdmission, Stage::kAllocate, container);
  }
  bool Stop(Limit limit, Stage stage, int container) {
    outcome_.limit = limit;
    return Reject(Reason::kKubeletCannot, stage, container);
  }
  bool Reject(Reason reason, Stage stage, int container) {
    outcome_.reason = reason;
    outcome_.stage = stage;
    outcome_.container = container;
    outcome_.has_affinity = merged_.affinity != 0;
    outcome_.affinity = merged_.affinity;
    outcome_.preferred = merged_.preferred;
    outcome_.affinity_computed = merged_.computed;
    return false;
  }

  const Machine& machine_;
  const Request& request_;
  const Pool& before_;
  Verdict* verdict_;
  Choices* choices_;
  bool managed_;
  std::optional<Pool> changed_;
  Merged merged_;
  Outcome outcome_;
  Bits reusable_cpus_;
  absl::InlinedVector<Bits, 1> reusable_devices_;
  ReusableMemory reusable_memory_;
  Holding unrecorded_;
};

}  // namespace

const char* KubeletReason(const Outcome& outcome) {
  switch (outcome.reason) {
    case Reason::kAdmitted:
      return "";
    case Reason::kTopologyAffinity:
      return "TopologyAffinityError";
    case Reason::kUnexpectedAdmission:
      return "UnexpectedAdmissionError";
    case Reason::kSmtAlignment:
      return "SMTAlignmentError";
    case Reason::kEmptyPodPool:
      return "EmptyPodSharedPoolError";
    case Reason::kKubeletCannot:
      return "KubeletCannot";
  }
  return "";
}

Verdict Admit(const NodeState& state, const Request& request) {
  Verdict verdict;
  Admission(state, request, &verdict).Run();
  return verdict;
}

Alternatives AdmitAll(const NodeState& state, const Request& request, std::size_t limit) {
  Alternatives all;
  Choices choices;
  do {
    if (all.verdicts.size() >= limit) {
      all.complete = false;
      break;
    }
    Admission(state, request, &all.verdicts.emplace_back(), &choices).Run();
  } while (choices.Next());
  return all;
}

Outcome Answer(const NodeState& state, const Request& request) {
  return Admission(state, request, nullptr).Run();
}

void Commit(const std::string& uid, Verdict verdict, NodeState& state) {
  state.pool = std::move(verdict.after);
  if (!verdict.admitted()) return;
  std::vector<Holding>& holdings = state.pods[uid];
  if (verdict.pod) holdings.push_back(*std::move(verdict.pod));
  for (ContainerVerdict& container : verdict.containers) {
    holdings.push_back(std::move(container.holding));
  }
}

}  // namespace scheduler::admission
