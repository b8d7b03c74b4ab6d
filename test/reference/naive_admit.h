#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "kube/pod.h"
#include "placement/node_placement.h"
#include "test/reference/naive_cpus.h"
#include "test/reference/naive_merge.h"

// The kubelet's admission the slow and plain way: every manager lists all sets of NUMA nodes as
// hints, all combinations of them are merged, resources are taken from maps and sets of ids
// (kubelet 1.37, the sources named in naive_admit.cc). Shares no code with the prediction.
// Exponential in the number of NUMA nodes, for small machines in tests only.
namespace reference {

struct NaiveBlock {
  std::string type;
  Ids nodes;
  std::int64_t bytes = 0;
  bool operator==(const NaiveBlock&) const = default;
};

struct NaiveContainer {
  std::string name;
  std::optional<Ids> affinity;
  bool preferred = false;
  Ids cpus;
  std::vector<NaiveBlock> memory;                        // by type
  std::map<std::string, std::set<std::string>> devices;  // none: no entry
  bool operator==(const NaiveContainer&) const = default;
};

struct NaiveVerdict {
  std::string reason;                      // "" is admitted
  std::vector<NaiveContainer> containers;  // of an admitted pod
  std::optional<Ids> affinity;             // of a rejected one: the last merged hint
  bool preferred = false;
  bool random_devices = false;  // the kubelet picked devices in the order of a Go map
  bool plugin_chose = false;    // the plugin was asked which devices to take
  bool cannot = false;          // the kubelet would hang or panic; nothing else is said
  bool operator==(const NaiveVerdict&) const = default;
};

// One NUMA node's memory as the memory manager accounts for it.
struct NaiveMemory {
  struct Table {
    std::int64_t allocatable = 0;
    std::int64_t reserved = 0;
    std::int64_t free = 0;
    bool operator==(const Table&) const = default;
  };
  int assignments = 0;
  Ids cells;
  std::map<std::string, Table> tables;
  bool operator==(const NaiveMemory&) const = default;
};

// In which order the kubelet's Go maps are walked: by name, or the other way round.
enum class MapOrder { kAscending, kDescending };

class NaiveKubelet {
 public:
  // A node without pods. `plugin_order`: the devices' ids by resource, as the plugin prefers them;
  // ids that it lacks come last, by id.
  NaiveKubelet(const placement::NodePlacement& node,
               const std::map<std::string, std::vector<std::string>>& plugin_order,
               MapOrder order = MapOrder::kAscending);

  // Admits the pod and enters what it holds.
  NaiveVerdict Add(const kube::Pod& pod);
  void Start(const kube::Pod& pod);
  // The kubelet starts anew: memory that finished init containers had given back is reserved again
  // where it was, until their pod is gone.
  void Restart();
  void Remove(const std::string& uid);
  void SetUnhealthy(const std::string& resource, const std::set<std::string>& ids);
  // From now on the plugins prefer their devices in this order.
  void Prefer(const std::map<std::string, std::vector<std::string>>& plugin_order);

  const Ids& shared_cpus() const { return shared_; }  // without the reserved ones
  const std::map<int, NaiveMemory>& memory() const { return memory_; }
  std::set<std::string> AllocatedDevices(const std::string& resource) const;
  const std::map<std::string, std::vector<NaiveContainer>>& pods() const { return pods_; }

 private:
  struct Device {
    std::string id;
    std::optional<Ids> nodes;  // nullopt: the plugin gives no topology
    bool healthy = true;
  };
  using Devices = std::vector<Device>;  // in the plugin's order
  struct Hint {
    std::optional<Ids> nodes;
    bool preferred = false;
  };
  using HintList = std::optional<std::vector<Hint>>;  // nullopt: no preference
  using HintMap = std::map<std::string, HintList>;    // by resource; empty: no preference
  struct Wish {
    std::int64_t cpus = 0;
    std::map<std::string, std::int64_t> memory;
    std::map<std::string, std::int64_t> devices;
  };
  struct Merged {
    std::optional<Ids> affinity;
    bool preferred = false;
    bool admitted = true;
  };
  struct Item {
    const kube::Container* container;
    bool init;
  };

  // What changes while one pod is being admitted.
  struct Admission {
    std::vector<Item> items;
    NaiveVerdict verdict;
    Merged hint;
    Ids reusable_cpus;
    std::map<std::string, std::set<std::string>> reusable_devices;
    std::map<std::pair<Ids, std::string>, std::int64_t> reusable_memory;
  };

  void ReadTopologyManager(const placement::NodePlacement& node);
  void ReadNumaNode(const placement::NumaNodePlacement& numa);
  void ReadCpuManager();
  void ReadDevices(const placement::NodePlacement& node);

  Wish WishOf(const kube::Pod& pod, const kube::Container& container) const;
  Wish WishOfPod(const kube::Pod& pod) const;
  bool Run(const kube::Pod& pod, Admission& admission);
  bool Align(const Wish& wish, Admission& admission) const;
  bool Allocate(const Wish& wish, const Item& item, Admission& admission);

  HintMap DeviceHints(const Wish& wish, const Admission& admission) const;
  std::vector<Hint> DeviceHintsOf(const Devices& devices, const std::set<std::string>& available,
                                  const std::set<std::string>& reusable, std::int64_t need) const;
  HintMap CpuHints(const Wish& wish, const Admission& admission) const;
  HintMap MemoryHints(const Wish& wish, const Admission& admission) const;
  Merged Merge(const std::vector<HintMap>& providers) const;

  bool AllocateDevices(const Wish& wish, const Item& item, Admission& admission,
                       NaiveContainer& own);
  bool TakeDevices(const std::string& resource, std::int64_t need, Admission& admission,
                   std::set<std::string>& taken);
  bool AllocateCpus(const Wish& wish, const Item& item, Admission& admission, NaiveContainer& own);
  bool AllocateMemory(const Wish& wish, const Item& item, Admission& admission,
                      NaiveContainer& own);
  std::optional<Hint> MemoryTarget(const Wish& wish, const Admission& admission) const;
  void ChargeMemory(const Ids& nodes, const std::string& type, std::int64_t bytes);
  bool CanReserveAgain(const NaiveBlock& block) const;
  void ReleaseMemory(const NaiveBlock& block);
  void Release(std::vector<NaiveContainer> containers);
  void ShrinkInitBlocks(const Item& item, const NaiveContainer& own, Admission& admission);

  template <class Map, class Visit>
  void ForEach(const Map& map, Visit visit) const;  // in the order of the Go map

  bool Option(const std::map<std::string, std::string>& options, const std::string& name) const;

  placement::KubeletFacts kubelet_;
  MapOrder order_;
  std::vector<int> numa_;  // ascending
  scheduler::admission::Machine merge_machine_;
  NaiveCpus cpus_;
  Ids reserved_;
  Ids shared_;
  std::map<int, NaiveMemory> memory_;
  std::map<std::string, Devices> devices_;
  std::map<std::string, std::vector<NaiveContainer>> pods_;
  // What finished init containers have given back, by pod and container.
  std::map<std::string, std::map<std::size_t, std::vector<NaiveBlock>>> given_back_;
};

}  // namespace reference
