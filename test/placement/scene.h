#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "placement/observation.h"

// Small machines and kubelets for the tests of placement/.
namespace placement {

inline constexpr std::int64_t kGiB = std::int64_t{1} << 30;

struct NodeSpec {
  int id = 0;
  std::string cpus;
  std::int64_t memory = 0;  // bytes
  int socket = 0;
};

hwinfo::Topology Machine(const std::vector<NodeSpec>& nodes);
// NUMA nodes 0 and 1 with CPUs 0-15 and 16-31 and 64 GiB each.
hwinfo::Topology TwoNodes();
// A GPU at 0000:<bus>:00.0; node -1: the kernel does not say.
void AddGpu(hwinfo::Topology& topology, int bus, int node);

base::CpuSet Cpus(const std::string& list);
podresources::Device Gpu(const std::string& id, const base::NumaMask& numa_nodes);
PlacedDevice KnownGpu(const std::string& id);  // of the last observation, on NUMA node 0
podresources::MemoryBlock Block(std::int64_t bytes, const base::NumaMask& numa_nodes);
podresources::Pod PodOf(const std::string& name,
                        const std::vector<podresources::Container>& containers);

// A kubelet with both static managers that lets pods be added and shows them in podresources, in
// the state files and in the log folders alike. Pods are in namespace "ml".
class Scene {
 public:
  explicit Scene(hwinfo::Topology topology, const std::string& reserved_cpus = "0");

  void Policy(const std::string& policy, const std::string& scope);
  // All parts agree about this pod.
  void Add(const std::string& name, const std::string& uid,
           const std::vector<podresources::Container>& containers);
  // Only the state files still have it, and perhaps its log folder.
  void ForgetInList(const std::string& name);
  void AddDevice(const podresources::Device& device);
  void Resolve(const std::string& id, int bus);
  // A cgroup of the container "main", or of the sandbox if the id is "sandbox".
  void Enforce(const std::string& uid, const std::string& container_id, const std::string& cpus,
               const std::string& mems, std::int64_t resident = 0);

  Observation Look() const { return Observe(facts); }
  Facts facts;

 private:
  void AddMemory(const std::string& uid, const podresources::Container& container);
};

const PlacedPod* FindPod(const Observation& observation, const std::string& name);
const NrtZone* FindZone(const Observation& observation, const std::string& name);
// A resource of a zone; nullptr if either is missing.
const NrtResource* FindResource(const Observation& observation, const std::string& zone,
                                const std::string& resource);
std::vector<std::string> Codes(const Observation& observation);
std::string ConditionOf(const Observation& observation, const std::string& type);  // "True Reason"

}  // namespace placement
