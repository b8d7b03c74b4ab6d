#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "kube/pod.h"
#include "placement/node_placement.h"
#include "scheduler/admission/state.h"
#include "scheduler/admission/verdict.h"

// Small nodes and pods for the tests of the prediction, each in a line or two.
namespace scheduler::admission {

// One NUMA node. Amounts of memory are Kubernetes quantities.
struct NumaSpec {
  int id = 0;
  int cpus = 16;                // threads; 0: a node without CPUs
  int gpus = 0;                 // of nvidia.com/gpu, called gpu-<NUMA node>-<n>
  std::string memory = "64Gi";  // without huge pages
  std::map<std::string, std::string> hugepages = {};  // "hugepages-1Gi": "8Gi"
  int socket = -1;                                    // -1: as the id
  int l3 = -1;                                        // -1: as the id
  // What a pod "other" already holds of it: the lowest free CPUs, the first GPUs, memory.
  int taken_cpus = 0;
  int taken_gpus = 0;
  std::string taken_memory = "0";
};

// A kubelet of release 1.37 on these NUMA nodes. CPUs are numbered as Linux does: all cores' first
// threads, node by node, then all second threads. Two nodes of 16 CPUs: node 0 has 0-7,16-23.
struct NodeSpec {
  std::vector<NumaSpec> numa = {{.id = 0}, {.id = 1}};
  std::string policy = "single-numa-node";
  std::string scope = "container";
  std::map<std::string, std::string> topology_options = {};
  std::string cpu_policy = "static";
  std::map<std::string, std::string> cpu_options = {};
  std::string reserved_cpus = "";  // a CPU list; "": not known, as a kubelet without any refuses
  std::string memory_policy = "Static";
  std::string reserved_memory = "0";  // of each NUMA node; "0": not known, likewise
  int threads = 2;                    // of a core
  // Distances: 10 on a node, 12 within a socket, 21 between sockets.
};

placement::NodePlacement NodeOf(const NodeSpec& spec);

// `count` NUMA nodes alike, with ids 0, 1, …
std::vector<NumaSpec> Alike(int count, const NumaSpec& each);

// Adds a device at the NUMA nodes, none for one without a topology.
void AddDevice(placement::NodePlacement& node, const std::string& resource, const std::string& id,
               const base::NumaMask& numa_nodes, bool healthy = true);

// A pod in words. Containers are set off by ";" and begin with "init" or "sidecar" unless they are
// app containers; amounts are "4 CPU", "500m CPU", "1Gi" (memory), "1 GPU", "2 vendor.com/nic",
// "2Gi hugepages-1Gi". Before a word "limit" stand requests alone, after it limits alone; without
// it the amounts are both. "nothing" is a container without any. A pod of "2 CPU 1Gi; 4 CPU 1Gi"
// has containers a and b, init containers are called init0, init1.
kube::Pod PodOf(const std::string& uid, const std::string& words);

// A node that pods come to and leave, as on a running kubelet: what is admitted is also started.
class Scene {
 public:
  explicit Scene(const NodeSpec& spec) : Scene(NodeOf(spec)) {}
  explicit Scene(placement::NodePlacement node, const DeviceOrder& order = {});

  // The answer to a pod, which is entered into the accounts: "admitted on 0", "admitted on 0-1, not
  // preferred", "admitted" where there is no mask, "admitted on 0; 1" where containers differ, or
  // the kubelet's reason, "TopologyAffinityError".
  std::string Add(const kube::Pod& pod);
  std::string Add(const std::string& uid, const std::string& words) {
    return Add(PodOf(uid, words));
  }
  // The same without entering it.
  std::string Ask(const kube::Pod& pod) const;
  std::string Ask(const std::string& words) const { return Ask(PodOf("asked", words)); }
  void Remove(const std::string& uid);

  // What a container of an admitted pod holds: CPUs as a list, NUMA nodes of its CPUs, of its
  // memory blocks, of its devices. "" is nothing.
  std::string Cpus(const std::string& uid, const std::string& container = "a") const;
  std::string CpuNodes(const std::string& uid, const std::string& container = "a") const;
  std::string MemoryNodes(const std::string& uid, const std::string& container = "a") const;
  std::string DeviceNodes(const std::string& uid, const std::string& container = "a") const;

  const Verdict& last() const { return last_; }
  // The object that publishes the state.
  placement::NodePlacement Published() const;
  NodeState state;

 private:
  placement::PlacedContainer Find(const std::string& uid, const std::string& container) const;
  placement::NodePlacement node_;
  Verdict last_;
};

// A verdict in the words above.
std::string InWords(const Machine& machine, const Verdict& verdict);

}  // namespace scheduler::admission
