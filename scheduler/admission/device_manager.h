#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "scheduler/admission/hints.h"
#include "scheduler/admission/state.h"

namespace scheduler::admission {

// The device manager's hints for one resource (kubelet 1.37, topology_hints.go). The width goes by
// all devices, unhealthy and taken ones included; feasibility by the healthy free ones. Devices
// without a NUMA node never count. Masks are made of the nodes that host devices (1.36 and newer;
// all nodes before). A device with several nodes counts where any of them is in the mask.
class DeviceHints : public Hints {
 public:
  DeviceHints(const Machine& machine, const DeviceResource& resource, const Bits& available,
              const Bits& reusable, std::int64_t need);

  Mask nodes() const override { return nodes_; }
  bool Feasible(Mask mask) const override;
  int width() const override { return width_; }
  std::int64_t Supply(int node) const override { return supply_[static_cast<std::size_t>(node)]; }
  std::int64_t Need() const override { return need_; }
  bool SuppliesDecide() const override { return resource_.one_node_each; }
  Mask Required() const override { return required_; }

 private:
  int FindWidth() const;

  const DeviceResource& resource_;
  Mask nodes_;
  Bits available_;
  Bits reusable_;
  absl::InlinedVector<int, 8> supply_;  // by node: available and reusable
  Mask required_ = 0;                   // nodes of reusable devices, if each is on one
  std::int64_t need_;
  int width_ = 1;
};

struct DeviceGrant {
  bool admitted = false;
  bool ambiguous = false;  // the kubelet or the plugin may choose other devices
  Bits devices;            // held by the container after this; empty for a request of 0
};

// Whether AllocateDevices would grant them.
bool CanAllocateDevices(std::int64_t need, const Bits& reusable, const Pool::Devices& devices);

// What a device plugin, or the kubelet by the order of a Go map, may choose one way or another.
// Goes through all combinations of such choices: first the plugin's order everywhere, then, after
// each Next(), another one.
class Choices {
 public:
  // The way to take now, one of `ways`.
  std::size_t Pick(std::size_t ways);
  // Starts over with the next combination; false after the last one.
  bool Next();

 private:
  struct Choice {
    std::size_t way;
    std::size_t ways;
  };
  std::vector<Choice> made_;
  std::size_t at_ = 0;
};

// Takes `need` devices of a resource for one container and off the pool: reusable ones first, then
// those of the affinity's nodes, then others, then those without a NUMA node (devicesToAllocate);
// among equals by `choices`, without them in the plugin's order.
DeviceGrant AllocateDevices(const Machine& machine, int resource, std::int64_t need, Mask affinity,
                            const Bits& reusable, Pool& pool, Choices* choices = nullptr);

}  // namespace scheduler::admission
