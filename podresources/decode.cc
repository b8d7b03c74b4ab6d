#include "podresources/decode.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "podresources/settle.h"
#include "proto/podresources.pb.h"

namespace podresources {
namespace {

constexpr int kMaxPods = 100'000;
constexpr std::int64_t kMaxBytes = std::numeric_limits<std::int64_t>::max();

template <class T>
using Repeated = google::protobuf::RepeatedPtrField<T>;

struct Locality {
  base::NumaMask nodes;
  bool unknown = false;
};

// Node 0 is an empty message on the wire; no topology, or one without nodes, is no locality.
Locality DecodeTopology(const v1::TopologyInfo& topology) {
  Locality locality;
  for (const v1::NUMANode& node : topology.nodes()) {
    if (!locality.nodes.Insert(node.id())) locality.unknown = true;
  }
  return locality;
}

// Decodes the parts of one reply and gathers what is odd about them.
class Decoder {
 public:
  Pod DecodePod(const v1::PodResources& from);
  Allocatable DecodeAllocatable(const v1::AllocatableResourcesResponse& from);
  // Sorted, each once.
  base::Diagnostics TakeDiagnostics();

 private:
  Container DecodeContainer(const v1::ContainerResources& from, const std::string& subject);
  base::CpuSet DecodeCpus(const google::protobuf::RepeatedField<std::int64_t>& ids,
                          const std::string& subject);
  std::vector<MemoryBlock> DecodeMemory(const Repeated<v1::ContainerMemory>& entries,
                                        const std::string& subject);
  std::vector<Device> DecodeDevices(const Repeated<v1::ContainerDevices>& entries);
  static std::vector<ClaimDevice> DecodeClaims(const Repeated<v1::DynamicResource>& claims);

  base::Diagnostics diagnostics_;
  std::map<std::string, std::set<std::string>> unknown_node_;  // device ids by resource
};

base::CpuSet Decoder::DecodeCpus(const google::protobuf::RepeatedField<std::int64_t>& ids,
                                 const std::string& subject) {
  base::CpuSet cpus;
  std::set<std::int64_t> refused;
  for (const std::int64_t id : ids) {
    if (!cpus.Insert(id)) refused.insert(id);
  }
  if (!refused.empty()) {
    diagnostics_.push_back({"CpuIdOutOfRange", subject,
                            fmt::format("{} CPU ids are outside 0..{} and left out, the lowest {}",
                                        refused.size(), base::kMaxId, *refused.begin())});
  }
  return cpus;
}

std::vector<MemoryBlock> Decoder::DecodeMemory(const Repeated<v1::ContainerMemory>& entries,
                                               const std::string& subject) {
  std::map<std::pair<std::string, base::NumaMask>, std::int64_t> sums;
  std::set<std::string> clamped;
  std::set<std::string> unknown;
  for (const v1::ContainerMemory& entry : entries) {
    const std::string type = entry.memory_type().empty() ? "memory" : entry.memory_type();
    Locality locality = DecodeTopology(entry.topology());
    if (locality.unknown) unknown.insert(type);
    std::int64_t& sum = sums[{type, std::move(locality.nodes)}];
    const auto room = static_cast<std::uint64_t>(kMaxBytes - sum);
    if (entry.size() > room) clamped.insert(type);
    sum += static_cast<std::int64_t>(std::min(entry.size(), room));
  }
  for (const std::string& type : clamped) {
    diagnostics_.push_back({"MemoryClamped", subject,
                            fmt::format("more {} than {} bytes; taken as that", type, kMaxBytes)});
  }
  for (const std::string& type : unknown) {
    diagnostics_.push_back(
        {"MemoryNodeUnknown", subject,
         fmt::format("{} on a NUMA node outside 0..{}; the node is left out", type, base::kMaxId)});
  }
  std::vector<MemoryBlock> blocks;
  blocks.reserve(sums.size());
  for (const auto& [key, bytes] : sums) blocks.push_back({key.first, bytes, key.second});
  std::ranges::sort(blocks);
  return blocks;
}

std::vector<Device> Decoder::DecodeDevices(const Repeated<v1::ContainerDevices>& entries) {
  std::map<std::pair<std::string, std::string>, Locality> localities;
  for (const v1::ContainerDevices& entry : entries) {
    const Locality locality = DecodeTopology(entry.topology());
    for (const std::string& id : entry.device_ids()) {
      Locality& all = localities[{entry.resource_name(), id}];
      all.nodes |= locality.nodes;
      all.unknown |= locality.unknown;
    }
  }
  std::vector<Device> devices;
  for (const auto& [key, locality] : localities) {
    devices.push_back({key.first, key.second, locality.nodes, locality.unknown});
    if (locality.unknown) unknown_node_[key.first].insert(key.second);
  }
  return devices;
}

std::vector<ClaimDevice> Decoder::DecodeClaims(const Repeated<v1::DynamicResource>& claims) {
  // All but the CDI names, which are gathered.
  std::map<ClaimDevice, std::set<std::string>> devices;
  for (const v1::DynamicResource& claim : claims) {
    ClaimDevice device{.claim_namespace = claim.claim_namespace(),
                       .claim_name = claim.claim_name(),
                       .driver = {},
                       .pool = {},
                       .device = {},
                       .share_id = {},
                       .cdi_devices = {}};
    if (claim.claim_resources().empty()) devices[device];
    for (const v1::ClaimResource& resource : claim.claim_resources()) {
      device.driver = resource.driver_name();
      device.pool = resource.pool_name();
      device.device = resource.device_name();
      device.share_id = resource.share_id();
      std::set<std::string>& names = devices[device];
      for (const v1::CDIDevice& cdi : resource.cdi_devices()) names.insert(cdi.name());
    }
  }
  std::vector<ClaimDevice> sorted;
  for (const auto& [device, names] : devices) {
    sorted.push_back(device);
    sorted.back().cdi_devices.assign(names.begin(), names.end());
  }
  return sorted;
}

Container Decoder::DecodeContainer(const v1::ContainerResources& from, const std::string& subject) {
  return {.name = from.name(),
          .cpus = DecodeCpus(from.cpu_ids(), subject),
          .memory = DecodeMemory(from.memory(), subject),
          .devices = DecodeDevices(from.devices()),
          .claims = DecodeClaims(from.dynamic_resources())};
}

Pod Decoder::DecodePod(const v1::PodResources& from) {
  const std::string subject = fmt::format("pod {}/{}", from.namespace_(), from.name());
  Pod pod{.namespace_name = from.namespace_(),
          .name = from.name(),
          .containers = {},
          .cpus = DecodeCpus(from.cpu_ids(), subject),
          .memory = DecodeMemory(from.memory(), subject)};
  for (const v1::ContainerResources& container : from.containers()) {
    pod.containers.push_back(
        DecodeContainer(container, fmt::format("{} container {}", subject, container.name())));
  }
  MergeContainers(pod, diagnostics_);
  return pod;
}

Allocatable Decoder::DecodeAllocatable(const v1::AllocatableResourcesResponse& from) {
  return {.cpus = DecodeCpus(from.cpu_ids(), "allocatable"),
          .memory = DecodeMemory(from.memory(), "allocatable"),
          .devices = DecodeDevices(from.devices())};
}

base::Diagnostics Decoder::TakeDiagnostics() {
  for (const auto& [resource, ids] : unknown_node_) {
    diagnostics_.push_back(
        {"DeviceNodeUnknown", resource,
         fmt::format("{} devices name a NUMA node outside 0..{}, the first {}; where they are is "
                     "not known",
                     ids.size(), base::kMaxId, *ids.begin())});
  }
  unknown_node_.clear();
  return std::exchange(diagnostics_, {});
}

void SortOnce(base::Diagnostics& diagnostics) {
  std::ranges::sort(diagnostics);
  diagnostics.erase(std::unique(diagnostics.begin(), diagnostics.end()), diagnostics.end());
}

std::int64_t CountEntries(const v1::ContainerResources& container) {
  std::int64_t count = 1 + container.devices_size() + container.memory_size();
  for (const v1::ContainerDevices& devices : container.devices()) {
    count += devices.device_ids_size() + devices.topology().nodes_size();
  }
  for (const v1::DynamicResource& claim : container.dynamic_resources()) {
    count += 1 + claim.claim_resources_size();
    for (const v1::ClaimResource& resource : claim.claim_resources()) {
      count += resource.cdi_devices_size();
    }
  }
  return count;
}

}  // namespace

absl::Status CheckSize(const v1::ListPodResourcesResponse& list,
                       const v1::AllocatableResourcesResponse* allocatable) {
  constexpr std::int64_t kMaxEntries = 1'000'000;
  std::int64_t count = list.pod_resources_size();
  for (const v1::PodResources& pod : list.pod_resources()) {
    for (const v1::ContainerResources& container : pod.containers()) {
      count += CountEntries(container);
    }
  }
  if (allocatable != nullptr) {
    count += allocatable->devices_size() + allocatable->memory_size();
    for (const v1::ContainerDevices& devices : allocatable->devices()) {
      count += devices.device_ids_size() + devices.topology().nodes_size();
    }
  }
  if (count <= kMaxEntries && list.pod_resources_size() <= kMaxPods) return absl::OkStatus();
  return absl::OutOfRangeError(
      fmt::format("the reply has {} pods and {} entries, more than {} or {}: no node has so many",
                  list.pod_resources_size(), count, kMaxPods, kMaxEntries));
}

Assignments Decode(const v1::ListPodResourcesResponse& list,
                   const v1::AllocatableResourcesResponse* allocatable) {
  Decoder decoder;
  Assignments assignments;
  for (const v1::PodResources& pod : list.pod_resources()) {
    assignments.pods.push_back(decoder.DecodePod(pod));
  }
  if (allocatable != nullptr) assignments.allocatable = decoder.DecodeAllocatable(*allocatable);
  assignments.diagnostics = decoder.TakeDiagnostics();
  if (allocatable == nullptr) {
    assignments.diagnostics.push_back(
        {"AllocatableUnavailable", "",
         "the kubelet does not say what it could hand out; its total is estimated"});
  }
  MergePods(assignments.pods, assignments.diagnostics);
  TakeOutSharedPool(assignments);
  FindHeldTwice(assignments);
  SortOnce(assignments.diagnostics);
  return assignments;
}

Pod DecodePod(const v1::PodResources& pod, base::Diagnostics& diagnostics) {
  Decoder decoder;
  Pod decoded = decoder.DecodePod(pod);
  for (base::Diagnostic& diagnostic : decoder.TakeDiagnostics()) {
    diagnostics.push_back(std::move(diagnostic));
  }
  SortOnce(diagnostics);
  return decoded;
}

}  // namespace podresources
