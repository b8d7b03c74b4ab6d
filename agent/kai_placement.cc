#include "agent/kai_placement.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <utility>

#include "kube/json.h"

namespace agent {
namespace {

using placement::NodePlacement;
using placement::NodeResourceTopology;
using placement::NumaNodePlacement;
using placement::PlacedContainer;
using placement::PlacedDevice;
using placement::PlacedMemory;
using placement::PlacedPod;

std::string ZoneOf(int numa_node) { return fmt::format("node-{}", numa_node); }

class Counter {
 public:
  Counter(const NodePlacement& placement, const NodeResourceTopology& nrt) : placement_(placement) {
    for (const placement::NrtZone& zone : nrt.zones) {
      if (zone.type != placement::kZoneType) continue;
      for (const placement::NrtResource& resource : zone.resources) {
        listed_.emplace(zone.name, resource.name);
      }
    }
    for (const NumaNodePlacement& node : placement.numa_nodes) {
      for (const placement::NodeMemory& memory : node.memory) {
        taken_[{node.id, memory.type}] = memory.allocatable - memory.free.value_or(0);
      }
    }
    for (const PlacedDevice& device : placement.devices) {
      devices_[{device.resource, device.id}] = &device;
    }
  }

  // To be called once for each pod, in their order.
  std::string Count(const PlacedPod& pod) {
    amounts_.clear();
    CountCpus(pod);
    CountMemory(pod);
    for (const PlacedContainer& container : pod.containers) CountDevices(container);
    return ToJson();
  }

 private:
  void Add(int numa_node, const std::string& resource, std::int64_t amount) {
    const std::string zone = ZoneOf(numa_node);
    if (amount > 0 && listed_.contains({zone, resource})) amounts_[zone][resource] += amount;
  }

  // Containers may share their pod's.
  void CountCpus(const PlacedPod& pod) {
    base::CpuSet cpus;
    for (const PlacedContainer& container : pod.containers) cpus |= container.cpus;
    for (const NumaNodePlacement& node : placement_.numa_nodes) {
      Add(node.id, "cpu", (cpus & node.cpus).size());
    }
  }

  // Where the pod as a whole has memory, that of its containers is a part of it.
  void CountMemory(const PlacedPod& pod) {
    const auto& containers = pod.containers;
    if (containers.empty()) return;
    const bool whole = containers.front().name.empty() && !containers.front().memory.empty();
    const std::size_t counted = whole ? 1 : containers.size();
    for (std::size_t i = 0; i < counted; ++i) {
      for (const PlacedMemory& block : containers[i].memory) CountBlock(block);
    }
  }

  void CountBlock(const PlacedMemory& block) {
    std::int64_t left = block.bytes;
    const std::vector<int> nodes(block.numa_nodes.begin(), block.numa_nodes.end());
    for (const int node : nodes) {
      std::int64_t& taken = taken_[{node, block.type}];
      const bool last = node == nodes.back();  // nothing is lost, whatever the sums are
      const std::int64_t part = last ? left : std::clamp<std::int64_t>(taken, 0, left);
      Add(node, block.type, part);
      taken -= part;
      left -= part;
    }
  }

  void CountDevices(const PlacedContainer& container) {
    for (const placement::HeldDevices& held : container.devices) {
      for (const std::string& id : held.ids) {
        const auto device = devices_.find({held.resource, id});
        if (device == devices_.end() || !device->second->healthy) continue;
        for (const int node : device->second->numa_nodes) Add(node, held.resource, 1);
      }
    }
  }

  std::string ToJson() const {
    std::vector<std::string> zones;
    for (const auto& [zone, amounts] : amounts_) {
      std::vector<std::string> members;
      for (const auto& [resource, amount] : amounts) {
        members.push_back(fmt::format(R"({}:"{}")", kube::JsonQuote(resource), amount));
      }
      zones.push_back(
          fmt::format(R"({{"zone":"{}","amount":{{{}}}}})", zone, fmt::join(members, ",")));
    }
    return zones.empty() ? "" : fmt::format("[{}]", fmt::join(zones, ","));
  }

  const NodePlacement& placement_;
  std::set<std::pair<std::string, std::string>> listed_;       // zones and resources
  std::map<std::pair<int, std::string>, std::int64_t> taken_;  // not yet shared out, in bytes
  std::map<std::pair<std::string, std::string>, const PlacedDevice*> devices_;
  std::map<std::string, std::map<std::string, std::int64_t>> amounts_;  // of the pod
};

}  // namespace

std::vector<KaiPlacement> KaiPlacements(const NodePlacement& placement,
                                        const NodeResourceTopology& nrt) {
  Counter counter(placement, nrt);
  std::vector<KaiPlacement> placements;
  for (const PlacedPod& pod : placement.pods) {
    placements.push_back({pod.namespace_name, pod.name, pod.uid, counter.Count(pod)});
  }
  return placements;
}

}  // namespace agent
