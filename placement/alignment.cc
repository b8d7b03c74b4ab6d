#include "placement/alignment.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "base/quantity.h"
#include "placement/amounts.h"

namespace placement {
namespace {

constexpr int kMostSets = 1 << 16;
constexpr std::int64_t kNoticeableBytes = std::int64_t{64} << 20;

using Numbers = std::map<std::string, std::int64_t>;

bool Covers(const Numbers& have, const Numbers& need) {
  return std::ranges::all_of(need, [&](const auto& entry) {
    const auto found = have.find(entry.first);
    return entry.second <= (found == have.end() ? 0 : found->second);
  });
}

void Add(const Numbers& from, Numbers& to) {
  for (const auto& [name, amount] : from) to[name] = SaturatingAdd(to[name], amount);
}

bool CouldHold(const Demand& demand, const std::vector<Installed>& nodes,
               const std::vector<std::size_t>& chosen) {
  Installed sum;
  for (const std::size_t i : chosen) {
    sum.cpus += nodes[i].cpus;
    Add(nodes[i].memory, sum.memory);
    Add(nodes[i].devices, sum.devices);
  }
  return demand.cpus <= sum.cpus && Covers(sum.memory, demand.memory) &&
         Covers(sum.devices, demand.devices);
}

// The next set of as many out of `count`, in lexicographic order; false after the last.
bool NextSet(std::vector<std::size_t>& chosen, std::size_t count) {
  const std::size_t width = chosen.size();
  for (std::size_t i = width; i-- > 0;) {
    if (chosen[i] >= count - width + i) continue;
    ++chosen[i];
    for (std::size_t j = i + 1; j < width; ++j) chosen[j] = chosen[j - 1] + 1;
    return true;
  }
  return false;
}

}  // namespace

std::vector<Installed> InstalledOn(const hwinfo::Topology& topology, const DeviceAccount& devices) {
  std::map<int, std::map<std::string, std::int64_t>> devices_on;
  for (const auto& [key, device] : devices.devices) {
    for (const int node : LocalityOf(device, topology)) ++devices_on[node][device.resource];
  }
  std::vector<Installed> installed;
  for (const hwinfo::NumaNode& node : topology.numa_nodes) {
    Installed here{.id = node.id, .cpus = node.cpus.size(), .memory = {}, .devices = {}};
    for (const hwinfo::HugePages& pages : node.huge_pages) {
      here.memory[base::HugePagesResource(pages.page_bytes)] = BytesOf(pages);
    }
    here.memory["memory"] = BytesOutsideHugePages(node);
    here.devices = std::move(devices_on[node.id]);
    installed.push_back(std::move(here));
  }
  return installed;
}

int FewestNumaNodes(const Demand& demand, const std::vector<Installed>& nodes, int at_most) {
  int tried = 0;
  for (int width = 1; width < at_most && std::cmp_less_equal(width, nodes.size()); ++width) {
    std::vector<std::size_t> chosen(static_cast<std::size_t>(width));
    std::iota(chosen.begin(), chosen.end(), 0U);
    do {
      if (CouldHold(demand, nodes, chosen)) return width;
      if (++tried >= kMostSets) return at_most;
    } while (NextSet(chosen, nodes.size()));
  }
  return at_most;
}

namespace {

struct Verdict {
  Alignment alignment = Alignment::kAligned;
  std::string reason;
  std::string message;
};

int Rank(Alignment alignment) {
  switch (alignment) {
    case Alignment::kDrifted:
      return 5;
    case Alignment::kUnknown:
      return 4;
    case Alignment::kMisaligned:
      return 3;
    case Alignment::kUnpinned:
      return 2;
    case Alignment::kSpread:
      return 1;
    case Alignment::kAligned:
      break;
  }
  return 0;
}

std::string Nodes(const base::NumaMask& nodes) {
  if (nodes.size() == 1) return fmt::format("NUMA node {}", nodes.First());
  return fmt::format("NUMA nodes {}", nodes.ToString());
}

std::string Cpus(const base::CpuSet& cpus) {
  return fmt::format("{} {}", cpus.size() == 1 ? "CPU" : "CPUs", cpus.ToString());
}

const char* Are(const base::CpuSet& cpus) { return cpus.size() == 1 ? "is" : "are"; }

std::string Joined(const std::vector<std::string>& parts) {
  std::string text;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) text += i + 1 == parts.size() ? " and " : ", ";
    text += parts[i];
  }
  return text;
}

std::string Counted(std::int64_t count, const std::string& noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

std::string DeviceNoun(const std::string& resource) {
  if (ShortName(resource) == "gpu") return "GPU";
  return fmt::format("{} device", resource);
}

// What a unit holds, and where: filled container by container.
struct Unit {
  Demand demand;
  base::NumaMask nodes;  // S
  base::CpuSet cpus;
  std::map<int, int> cpus_on;
  std::map<base::NumaMask, Numbers> memory_on;
  std::vector<std::pair<std::string, base::NumaMask>> placed_devices;
  std::vector<std::string> unplaced;  // "nvidia.com/gpu GPU-1"
  std::map<base::NumaMask, Numbers> devices_on;
  base::CpuSet lost_cpus;  // on no NUMA node
  bool holds_device = false;
};

class Judge {
 public:
  Judge(const AlignmentContext& context, const PlacedPod& pod, base::Diagnostics& diagnostics)
      : context_(context), pod_(pod), diagnostics_(diagnostics) {}

  // The NUMA nodes of several containers together, and the verdict on them.
  Verdict Of(const std::vector<const PlacedContainer*>& containers, base::NumaMask& nodes) {
    Unit unit;
    const bool of_the_whole =
        containers.front()->name.empty() && !containers.front()->memory.empty();
    for (const PlacedContainer* container : containers) {
      Collect(*container, unit);
      const bool is_part = of_the_whole && !container->name.empty();
      if (!is_part) CollectMemory(container->memory, unit);
    }
    PlaceDevices(unit);
    nodes |= unit.nodes;
    Verdict verdict = Weigh(unit);
    for (const PlacedContainer* container : containers) CheckKernel(*container, verdict);
    for (const PlacedContainer* container : containers) CheckResident(*container, verdict);
    return verdict;
  }

 private:
  const PlacedDevice* FindDevice(const std::string& resource, const std::string& id) const {
    const auto found = context_.devices->devices.find({resource, id});
    return found == context_.devices->devices.end() ? nullptr : &found->second;
  }

  void Collect(const PlacedContainer& container, Unit& unit) const {
    const base::CpuSet more = container.cpus - unit.cpus;  // containers may share their pod's CPUs
    unit.cpus |= more;
    unit.demand.cpus += more.size();
    base::CpuSet lost = more;
    for (const hwinfo::NumaNode& node : context_.topology->numa_nodes) {
      const base::CpuSet here = more & node.cpus;
      if (here.empty()) continue;
      unit.cpus_on[node.id] += here.size();
      unit.nodes.Insert(node.id);
      lost -= here;
    }
    unit.lost_cpus |= lost;
    for (const HeldDevices& held : container.devices) {
      for (const std::string& id : held.ids) CollectDevice(held.resource, id, unit);
    }
  }

  static void CollectMemory(const std::vector<PlacedMemory>& blocks, Unit& unit) {
    for (const PlacedMemory& memory : blocks) {
      if (memory.bytes <= 0 || memory.numa_nodes.empty()) continue;
      Add({{memory.type, memory.bytes}}, unit.demand.memory);
      Add({{memory.type, memory.bytes}}, unit.memory_on[memory.numa_nodes]);
      unit.nodes |= memory.numa_nodes;
    }
  }

  void CollectDevice(const std::string& resource, const std::string& id, Unit& unit) const {
    unit.holds_device = true;
    const PlacedDevice* device = FindDevice(resource, id);
    if (device == nullptr) return;
    const base::NumaMask locality = LocalityOf(*device, *context_.topology);
    if (!locality.empty()) {
      ++unit.demand.devices[resource];
      unit.placed_devices.emplace_back(resource, locality);
      if (locality.size() == 1) unit.nodes |= locality;
      return;
    }
    const bool should_have_a_place = !device->pci_address.empty() || device->unknown_node ||
                                     !device->numa_nodes.empty() ||
                                     context_.placed_resources.contains(resource);
    if (should_have_a_place) unit.unplaced.push_back(fmt::format("{} {}", resource, id));
  }

  // Devices near several NUMA nodes are placed last, where the unit already is.
  static void PlaceDevices(Unit& unit) {
    std::ranges::sort(unit.placed_devices);
    for (const auto& [resource, locality] : unit.placed_devices) {
      base::NumaMask here = locality & unit.nodes;
      if (here.empty()) here = locality;
      const base::NumaMask node{here.First()};
      unit.nodes |= node;
      ++unit.devices_on[node][resource];
    }
  }

  // "8 CPUs and 2 GPUs are on NUMA node 0, 64Gi of memory is on NUMA node 1"
  static std::string Whereabouts(const Unit& unit) {
    std::map<base::NumaMask, std::vector<std::string>> parts;
    for (const auto& [node, count] : unit.cpus_on) {
      parts[base::NumaMask{node}].push_back(Counted(count, "CPU"));
    }
    for (const auto& [nodes, types] : unit.memory_on) {
      for (const auto& [type, bytes] : types) {
        parts[nodes].push_back(fmt::format("{} of {}", base::FormatBytes(bytes), type));
      }
    }
    for (const auto& [nodes, resources] : unit.devices_on) {
      for (const auto& [resource, count] : resources) {
        parts[nodes].push_back(Counted(count, DeviceNoun(resource)));
      }
    }
    std::string text;
    for (const auto& [nodes, things] : parts) {
      const bool one = things.size() == 1 && (things.front().starts_with("1 ") ||
                                              things.front().find(" of ") != std::string::npos);
      text += fmt::format("{}{} {} on {}", text.empty() ? "" : ", ", Joined(things),
                          one ? "is" : "are", Nodes(nodes));
    }
    return text;
  }

  Verdict Weigh(const Unit& unit) const {
    using enum Alignment;
    if (!unit.unplaced.empty()) {
      return {kUnknown, "DeviceLocalityUnknown",
              fmt::format("It is not known on which NUMA node {} {}.", Joined(unit.unplaced),
                          unit.unplaced.size() == 1 ? "is" : "are")};
    }
    if (!unit.lost_cpus.empty()) {
      return {kUnknown, "CPULocalityUnknown",
              fmt::format("{} {} on no NUMA node: offline or not there.", Cpus(unit.lost_cpus),
                          Are(unit.lost_cpus))};
    }
    const int width = unit.nodes.size();
    const int fewest = FewestNumaNodes(unit.demand, context_.installed, width);
    const std::string where = Whereabouts(unit);
    if (width > fewest) {
      return {kMisaligned, "MoreNUMANodesThanNeeded",
              fmt::format("{}; {} could hold all of it.", where, Counted(fewest, "NUMA node"))};
    }
    if (unit.holds_device && unit.demand.cpus == 0) {
      return {kUnpinned, "NoExclusiveCPUs",
              where.empty() ? "It holds devices, but no CPUs of its own."
                            : fmt::format("{}, but it has no CPUs of its own.", where)};
    }
    if (width > 1) {
      return {kSpread, "NeedsSeveralNUMANodes",
              fmt::format("{}; no fewer than {} could hold all of it.", where,
                          Counted(width, "NUMA node"))};
    }
    if (width == 0) return {kAligned, "NothingWithLocality", "Nothing that it holds has a place."};
    return {kAligned, "AllOnOneNUMANode", fmt::format("{}.", where)};
  }

  void CheckKernel(const PlacedContainer& container, Verdict& verdict) const {
    if (!container.kernel) return;
    const std::optional<base::CpuSet>& cpus = container.kernel->cpus;
    if (!container.cpus.empty() && cpus && *cpus != container.cpus) {
      verdict = {Alignment::kDrifted, "CPUsDiffer", DescribeCpuDrift(container, *cpus)};
      return;
    }
    const std::optional<base::NumaMask>& nodes = container.kernel->memory_nodes;
    const base::NumaMask expected = ExpectedMemoryNodes(container);
    if (!context_.memory_is_static || !nodes || expected.empty() || *nodes == expected) return;
    if (verdict.alignment == Alignment::kDrifted) return;
    verdict = {Alignment::kDrifted, "MemoryNodesDiffer",
               fmt::format("The kubelet gave container {} memory on {}, but the kernel lets it use "
                           "{}.",
                           container.name, Nodes(expected), Nodes(*nodes))};
  }

  std::string DescribeCpuDrift(const PlacedContainer& container, const base::CpuSet& cpus) const {
    const base::CpuSet offline = container.cpus - context_.topology->OnlineCpus();
    std::string text =
        fmt::format("The kubelet gave container {} {}, but the kernel runs it on {}.",
                    container.name, Cpus(container.cpus), cpus.ToString());
    if (!offline.empty()) text += fmt::format(" {} {} offline.", Cpus(offline), Are(offline));
    const base::CpuSet isolated = (container.cpus - cpus) & context_.topology->isolated_cpus;
    if (!isolated.empty()) text += fmt::format(" {} {} isolated.", Cpus(isolated), Are(isolated));
    return text;
  }

  base::NumaMask BlockNodes(const PlacedContainer& container) const {
    base::NumaMask nodes;
    for (const PlacedMemory& memory : container.memory) nodes |= memory.numa_nodes;
    return nodes;
  }

  // The kernel's effective memory nodes never have those without memory.
  base::NumaMask ExpectedMemoryNodes(const PlacedContainer& container) const {
    base::NumaMask nodes = BlockNodes(container);
    for (const hwinfo::NumaNode& node : context_.topology->numa_nodes) {
      if (node.memory_bytes == 0) nodes.Erase(node.id);
    }
    return nodes;
  }

  void CheckResident(const PlacedContainer& container, Verdict& verdict) {
    const base::NumaMask wanted = BlockNodes(container);
    if (wanted.empty() || !container.kernel) return;
    std::int64_t all = 0;
    std::int64_t elsewhere = 0;
    for (const auto& [node, bytes] : container.kernel->resident_bytes) {
      all = SaturatingAdd(all, bytes);
      if (!wanted.Contains(node)) elsewhere = SaturatingAdd(elsewhere, bytes);
    }
    if (elsewhere < kNoticeableBytes || elsewhere < all / 20) return;
    const std::string text =
        fmt::format("{} MiB of the {} MiB that container {} has resident are not on {}.",
                    elsewhere >> 20, all >> 20, container.name, Nodes(wanted));
    verdict.message += fmt::format(" {}", text);
    diagnostics_.push_back({.code = "MemoryElsewhere",
                            .subject = fmt::format("pod {}/{}", pod_.namespace_name, pod_.name),
                            .message = text});
  }

  const AlignmentContext& context_;
  const PlacedPod& pod_;
  base::Diagnostics& diagnostics_;
};

bool Holds(const PlacedContainer& container) {
  return !container.cpus.empty() || !container.memory.empty() || !container.devices.empty();
}

}  // namespace

std::set<std::string> PlacedResources(const hwinfo::Topology& topology,
                                      const DeviceAccount& devices) {
  std::set<std::string> placed;
  for (const auto& [key, device] : devices.devices) {
    if (!placed.contains(key.first) && !LocalityOf(device, topology).empty()) {
      placed.insert(key.first);
    }
  }
  return placed;
}

void JudgePod(const AlignmentContext& context, PlacedPod& pod, base::Diagnostics& diagnostics) {
  std::vector<std::vector<const PlacedContainer*>> units;
  for (const PlacedContainer& container : pod.containers) {
    if (!Holds(container)) continue;
    if (units.empty() || !context.scope_is_pod) units.emplace_back();
    units.back().push_back(&container);
  }
  Judge judge(context, pod, diagnostics);
  base::NumaMask nodes;
  Verdict worst{Alignment::kAligned, "NothingInUse",
                "Only containers that have finished hold anything."};
  for (std::size_t i = 0; i < units.size(); ++i) {
    Verdict verdict = judge.Of(units[i], nodes);
    if (i > 0 && Rank(verdict.alignment) <= Rank(worst.alignment)) continue;
    if (units.size() > 1) {
      verdict.message = fmt::format("Container {}: {}", units[i].front()->name, verdict.message);
    }
    worst = std::move(verdict);
  }
  pod.numa_nodes = std::move(nodes);
  pod.alignment = worst.alignment;
  pod.reason = std::move(worst.reason);
  pod.message = std::move(worst.message);
}

}  // namespace placement
