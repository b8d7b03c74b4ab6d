#include "cli/machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "base/quantity.h"
#include "base/status_macros.h"
#include "cli/json.h"
#include "cli/memory_tables.h"
#include "cli/settings.h"

namespace cli {
namespace {

constexpr std::array kApiVersions = {"plumbline.dev/v1alpha1"};
constexpr std::array kKinds = {"Machine"};
constexpr std::array kSiblings = {"split", "adjacent"};
constexpr int kMaxNodes = 64;
constexpr int kMaxDevices = 4096;     // of one resource on one NUMA node
constexpr int kMaxAllDevices = 8192;  // of the machine
constexpr int kLocalDistance = 10;    // as firmware without a table is taken to say
constexpr int kRemoteDistance = 20;

// "v1.37", "v1.37.2", "v1.37.2-eks-1".
bool IsRelease(std::string_view version) {
  if (!version.starts_with("v1.")) return false;
  version.remove_prefix(3);
  const std::size_t end = version.find_first_not_of("0123456789");
  return end != 0 && !version.empty() && (end == version.npos || version[end] == '.');
}

// One word per core: its threads. The ids in ascending order are cut into as many equal parts as a
// core has threads, of which each core has one id (split), or each `threads` neighbours are a core.
std::vector<base::CpuSet> Cores(const std::vector<int>& ids, std::size_t threads, bool adjacent) {
  const std::size_t count = ids.size() / threads;
  std::vector<base::CpuSet> cores(count);
  for (std::size_t i = 0; i < count * threads; ++i) {
    cores[adjacent ? i / threads : i % count].Insert(ids[i]);
  }
  return cores;
}

class MachineReader {
 public:
  MachineReader(const Json& json, absl::Status& status) : top_(json, status) {}

  DescribedMachine Read() {
    top_.RefuseOthers({"apiVersion", "kind", "metadata", "kubeletVersion", "policy", "scope",
                       "options", "cpuPolicy", "cpuOptions", "reservedCPUs", "memoryPolicy",
                       "siblings", "numaNodes", "devices", "allocatable"});
    top_.Find("apiVersion").OneOf(kApiVersions);
    top_.Need("kind").OneOf(kKinds);
    const JsonReader metadata = top_.Find("metadata");
    if (metadata.present()) metadata.RefuseOthers({"name"});
    machine_.node.node_name = metadata.Find("name").Text();
    ReadKubelet();
    const JsonReader nodes = top_.Need("numaNodes");
    nodes.Each([&](const JsonReader& node) { ListNode(node); });
    if (ids_.empty()) nodes.Fail("names no NUMA node");
    if (ids_.size() > kMaxNodes) {
      nodes.Fail(fmt::format("has more than {} NUMA nodes", kMaxNodes));
      return {};
    }
    nodes.Each([&](const JsonReader& node) { ReadNode(node); });
    AddDevices(top_.Find("devices"), {});
    NameDevices();
    CheckReservedCpus();
    std::ranges::sort(machine_.node.numa_nodes, {}, &placement::NumaNodePlacement::id);
    ReadAllocatable();
    return std::move(machine_);
  }

 private:
  void ReadKubelet() {
    placement::KubeletFacts& kubelet = machine_.node.kubelet;
    const auto setting = [&](const char* name, std::span<const char* const> known,
                             const char* otherwise) {
      const std::string value = top_.Find(name).OneOf(known);
      return value.empty() ? std::string(otherwise) : value;
    };
    const JsonReader version = top_.Find("kubeletVersion");
    kubelet.version = version.present() ? version.Text() : "v1.37.2";
    if (!IsRelease(kubelet.version)) version.Fail("is no release such as v1.37.2");
    kubelet.topology_policy = setting("policy", kTopologyPolicies, "none");
    kubelet.topology_scope = setting("scope", kTopologyScopes, "container");
    kubelet.topology_options = Options("options", kTopologyOptions);
    kubelet.cpu_policy = setting("cpuPolicy", kCpuPolicies, "static");
    kubelet.cpu_options = Options("cpuOptions", kCpuOptions);
    kubelet.memory_policy = setting("memoryPolicy", kMemoryPolicies, "None");
    const JsonReader reserved = top_.Find("reservedCPUs");
    if (reserved.present()) kubelet.reserved_cpus = reserved.Cpus();
    adjacent_ = top_.Find("siblings").OneOf(kSiblings) == "adjacent";
  }

  std::map<std::string, std::string> Options(const char* member,
                                             std::span<const char* const> known) {
    std::map<std::string, std::string> options;
    top_.Find(member).EachMember([&](const std::string& name, const JsonReader& value) {
      if (std::ranges::find(known, name) == known.end()) {
        value.Fail(fmt::format("is not known; there are {}", fmt::join(known, ", ")));
      }
      options[name] = value.Word();
    });
    return options;
  }

  base::CpuSet ReservedCpus() const {
    return machine_.node.kubelet.reserved_cpus.value_or(base::CpuSet());
  }

  // What all nodes must know of each other.
  void ListNode(const JsonReader& node) {
    const int id = node.Find("id").Id(static_cast<int>(ids_.size()));
    if (std::ranges::find(ids_, id) != ids_.end()) node.Fail(fmt::format("the id {} is taken", id));
    ids_.push_back(id);
    has_l3_ = has_l3_ || node.Find("coresPerL3").present();
    node.EachMember([&](const std::string& name, const JsonReader&) {
      if (kube::IsHugePages(name)) huge_pages_[name] = 0;
    });
  }

  void ReadNode(const JsonReader& node) {
    node.RefuseOthers({"id", "cpus", "threads", "socket", "coresPerL3", "memory", "reservedMemory",
                       "devices", "distances", "hugepages-SIZE"},
                      "hugepages-");
    placement::NumaNodePlacement numa;
    numa.id = ids_[machine_.node.numa_nodes.size()];
    ReadCpus(node, numa);
    ReadMemory(node, numa);
    ReadDistances(node.Find("distances"), numa);
    AddDevices(node.Find("devices"), {numa.id});
    machine_.node.numa_nodes.push_back(std::move(numa));
  }

  void ReadCpus(const JsonReader& node, placement::NumaNodePlacement& numa) {
    numa.cpus = node.Find("cpus").Cpus();
    numa.free_cpus = numa.cpus - ReservedCpus();
    if (all_cpus_.Intersects(numa.cpus)) {
      node.Find("cpus").Fail(
          fmt::format("{} are on another NUMA node as well", (all_cpus_ & numa.cpus).ToString()));
    }
    all_cpus_ |= numa.cpus;
    const std::vector<int> ids(numa.cpus.begin(), numa.cpus.end());
    const auto threads = static_cast<std::size_t>(node.Find("threads").Integer(1, 1024, 1));
    if (ids.size() % threads != 0) {
      node.Find("threads").Fail(
          fmt::format("{} CPUs do not make cores of {} threads", ids.size(), threads));
    }
    const int socket = node.Find("socket").Id(numa.id);
    const std::vector<base::CpuSet> cores = Cores(ids, threads, adjacent_);
    const auto per_l3 = static_cast<std::size_t>(node.Find("coresPerL3").Integer(1, 65536, 65536));
    for (std::size_t first = 0; first < cores.size(); first += per_l3) {
      const std::size_t end = std::min(first + per_l3, cores.size());
      placement::CoreGroup group{
          .socket = socket, .l3 = has_l3_ ? next_l3_++ : socket, .cores = {}};
      for (std::size_t i = first; i < end; ++i) group.cores.push_back(cores[i]);
      numa.core_groups.push_back(std::move(group));
    }
  }

  void ReadMemory(const JsonReader& node, placement::NumaNodePlacement& numa) {
    std::map<std::string, std::int64_t> huge_pages = huge_pages_;
    node.EachMember([&](const std::string& name, const JsonReader& bytes) {
      if (kube::IsHugePages(name)) huge_pages[name] = bytes.Quantity();
    });
    std::vector<placement::KubeletFacts::ReservedMemory>& reserved =
        machine_.node.kubelet.reserved_memory;
    const std::int64_t kept = node.Find("reservedMemory").Quantity();
    if (kept > 0) reserved.push_back({.numa_node = numa.id, .type = "memory", .bytes = kept});
    const JsonReader memory = node.Find("memory");
    if (!memory.present() && machine_.node.kubelet.memory_policy == "Static") {
      memory.Fail("is missing, and memoryPolicy is Static");
    }
    memory_known_ = memory_known_ && memory.present();
    std::int64_t parts = kept;
    for (const auto& [type, bytes] : huge_pages) parts = kube::Sum(parts, bytes);
    if (memory.present() && memory.Quantity() < parts) {
      memory.Fail(fmt::format("huge pages and reservedMemory are {} together, more than it",
                              base::FormatBytes(parts)));
    }
    numa.memory = MemoryTables(numa.id, memory.Quantity(), huge_pages, reserved);
    numa.memory_group = base::NumaMask{numa.id};
    numa.memory_assignments = 0;
  }

  void ReadDistances(const JsonReader& distances, placement::NumaNodePlacement& numa) {
    for (const int id : ids_) numa.distances[id] = id == numa.id ? kLocalDistance : kRemoteDistance;
    std::size_t next = 0;
    distances.Each([&](const JsonReader& distance) {
      if (next < ids_.size()) numa.distances[ids_[next]] = distance.Id();
      ++next;
    });
    if (distances.present() && next != ids_.size()) {
      distances.Fail(fmt::format("has {} entries for {} NUMA nodes", next, ids_.size()));
    }
  }

  void AddDevices(const JsonReader& devices, const base::NumaMask& nodes) {
    devices.EachMember([&](const std::string& resource, const JsonReader& count) {
      const std::int64_t more = count.Integer(0, kMaxDevices, 0);
      if ((device_count_ += more) > kMaxAllDevices) {
        count.Fail(fmt::format("makes more than {} devices", kMaxAllDevices));
        return;
      }
      std::vector<base::NumaMask>& all = devices_[resource];
      all.insert(all.end(), static_cast<std::size_t>(more), nodes);
    });
  }

  // gpu-0, gpu-1, …: the last part of the resource and a number, of equal length for all of it.
  void NameDevices() {
    for (const auto& [resource, places] : devices_) {
      const std::string name = resource.substr(resource.rfind('/') + 1);
      const std::size_t digits =
          fmt::formatted_size("{}", std::max<std::size_t>(places.size(), 1) - 1);
      for (std::size_t i = 0; i < places.size(); ++i) {
        machine_.node.devices.push_back({.resource = resource,
                                         .id = fmt::format("{}-{:0{}}", name, i, digits),
                                         .numa_nodes = places[i],
                                         .pci_address = "",
                                         .pci_numa_node = {}});
      }
    }
  }

  // What is not said is what the hardware has beside the reservations. Where that is not known, as
  // of disks, there is no limit.
  void ReadAllocatable() {
    kube::Resources& sums = machine_.allocatable;
    constexpr std::int64_t kNoLimit = std::numeric_limits<std::int64_t>::max();
    const base::CpuSet cpus = all_cpus_ - ReservedCpus();
    sums[kube::kCpu] = cpus.empty() ? kNoLimit : std::int64_t{1000} * cpus.size();
    for (const placement::NumaNodePlacement& numa : machine_.node.numa_nodes) {
      for (const placement::NodeMemory& table : numa.memory) {
        sums[table.type] = kube::Sum(sums[table.type], table.allocatable);
      }
    }
    if (!memory_known_) sums[kube::kMemory] = kNoLimit;
    sums["ephemeral-storage"] = kNoLimit;
    for (const auto& [name, amount] : top_.Find("allocatable").Quantities()) sums[name] = amount;
  }

  void CheckReservedCpus() {
    const base::CpuSet strange = ReservedCpus() - all_cpus_;
    if (strange.empty()) return;
    top_.Find("reservedCPUs").Fail(fmt::format("{} are on no NUMA node", strange.ToString()));
  }

  JsonReader top_;
  DescribedMachine machine_;
  bool adjacent_ = false;
  std::vector<int> ids_;  // in the order of numaNodes
  base::CpuSet all_cpus_;
  bool memory_known_ = true;  // every node says how much it has
  bool has_l3_ = false;       // some node says how many cores share an L3
  int next_l3_ = 0;
  // All sizes: the kubelet lists each on every NUMA node, perhaps as 0.
  std::map<std::string, std::int64_t> huge_pages_;
  std::map<std::string, std::vector<base::NumaMask>> devices_;
  std::int64_t device_count_ = 0;
};

}  // namespace

absl::StatusOr<DescribedMachine> ParseMachine(const std::string& json) {
  ASSIGN_OR_RETURN(const Json document, ParseJson(json));
  absl::Status status;
  DescribedMachine machine = MachineReader(document, status).Read();
  RETURN_IF_ERROR(status);
  return machine;
}

}  // namespace cli
