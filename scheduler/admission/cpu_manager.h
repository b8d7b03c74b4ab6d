#pragma once

#include <cstdint>

#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "scheduler/admission/hints.h"
#include "scheduler/admission/state.h"

namespace scheduler::admission {

// The static CPU manager's hints for a number of exclusive CPUs (kubelet 1.37, policy_static.go,
// generateCPUTopologyHints). The width goes by all CPUs of a node, reserved and taken ones
// included; feasibility by the free ones. With reusable CPUs (of earlier init containers of the
// pod) a mask must hold the nodes of all of them.
class CpuHints : public Hints {
 public:
  CpuHints(const Machine& machine, const Bits& available, const Bits& reusable, std::int64_t need);

  Mask nodes() const override { return machine_.cpu.nodes_with_cpus; }
  bool Feasible(Mask mask) const override;
  int width() const override { return width_; }
  bool Preferred(Mask mask) const override;
  bool OnlyWidthIsPreferred() const override { return !machine_.settings.align_by_socket; }
  std::int64_t Supply(int node) const override { return supply_[static_cast<std::size_t>(node)]; }
  std::int64_t Need() const override { return need_; }
  bool SuppliesDecide() const override { return true; }
  Mask Required() const override { return required_; }

 private:
  const Machine& machine_;
  absl::InlinedVector<int, 8> supply_;  // by node: available and reusable
  Mask required_ = 0;
  std::int64_t need_;
  int width_ = 1;
};

enum class CpuError { kNone, kSmtAlignment, kNotEnough, kEndless };  // kEndless: never returns

struct CpuGrant {
  CpuError error = CpuError::kNone;
  Bits cpus;
};

// Whether AllocateCpus would grant them, without choosing. Packing always succeeds where there are
// enough CPUs, so only distribute-cpus-across-numa has to try.
CpuError CanAllocateCpus(const Machine& machine, std::int64_t need, Mask affinity,
                         const Bits& reusable, const Pool& pool);

// Takes `need` CPUs for one container and off the pool: first those of the affinity's nodes, then
// from anywhere (allocateCPUs). `affinity` 0 is "none". `reusable` are CPUs of the pod's init
// containers.
CpuGrant AllocateCpus(const Machine& machine, std::int64_t need, Mask affinity,
                      const Bits& reusable, Pool& pool);

}  // namespace scheduler::admission
