#include "cli/recording.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "base/status_macros.h"
#include "cli/json.h"
#include "cli/memory_tables.h"
#include "cli/settings.h"
#include "cli/unpack.h"

namespace cli {
namespace {

constexpr std::array kOperations = {"add", "remove", "device_health"};
constexpr std::size_t kMaxLineBytes = std::size_t{1} << 28;

void ReadCoreGroups(const JsonReader& groups, placement::NumaNodePlacement& node) {
  groups.Each([&](const JsonReader& group) {
    placement::CoreGroup cores{
        .socket = group.Need("socket").Id(), .l3 = group.Need("l3").Id(), .cores = {}};
    group.Need("cores").Each([&](const JsonReader& core) {
      cores.cores.push_back(core.CpuIds());
      node.cpus |= cores.cores.back();
    });
    node.core_groups.push_back(std::move(cores));
  });
}

// Distances stand in the order of the list of NUMA nodes.
void ReadDistances(const JsonReader& distances, const std::vector<int>& ids,
                   placement::NumaNodePlacement& node) {
  std::size_t next = 0;
  distances.Each([&](const JsonReader& distance) {
    if (next < ids.size()) node.distances[ids[next]] = distance.Id();
    ++next;
  });
  if (distances.present() && next != ids.size()) {
    distances.Fail(fmt::format("has {} entries for {} NUMA nodes", next, ids.size()));
  }
}

placement::NumaNodePlacement ReadNumaNode(const JsonReader& numa, const std::vector<int>& ids,
                                          const placement::KubeletFacts& kubelet) {
  placement::NumaNodePlacement node;
  node.id = numa.Need("id").Id();
  ReadCoreGroups(numa.Find("core_groups"), node);
  std::map<std::string, std::int64_t> huge_pages;
  numa.Find("hugepages").EachMember([&](const std::string& type, const JsonReader& bytes) {
    huge_pages[type] = bytes.Amount();
  });
  node.memory =
      MemoryTables(node.id, numa.Need("memory").Amount(), huge_pages, kubelet.reserved_memory);
  node.memory_group = base::NumaMask{node.id};
  node.memory_assignments = 0;
  ReadDistances(numa.Find("distances"), ids, node);
  return node;
}

std::map<std::string, std::string> Options(const JsonReader& object) {
  std::map<std::string, std::string> options;
  object.EachMember(
      [&](const std::string& name, const JsonReader& value) { options[name] = value.Text(); });
  return options;
}

void ReadKubelet(const JsonReader& node, placement::KubeletFacts& kubelet) {
  const JsonReader version = node.Find("kubelet_version");
  kubelet.version = version.present() ? version.Text() : kRecordedVersion;
  kubelet.feature_gates = Options(node.Find("feature_gates"));
  kubelet.topology_policy = node.Need("topology_policy").OneOf(kTopologyPolicies);
  kubelet.topology_scope = node.Find("topology_scope").OneOf(kTopologyScopes);
  kubelet.topology_options = Options(node.Find("topology_options"));
  kubelet.cpu_policy = node.Need("cpu_policy").OneOf(kCpuPolicies);
  kubelet.cpu_options = Options(node.Find("cpu_options"));
  kubelet.memory_policy = node.Need("memory_policy").OneOf(kMemoryPolicies);
  kubelet.reserved_cpus = node.Find("reserved_cpus_effective").Cpus();
  node.Find("reserved_memory").Each([&](const JsonReader& entry) {
    kubelet.reserved_memory.push_back({.numa_node = entry.Need("numa").Id(),
                                       .type = entry.Need("type").Text(),
                                       .bytes = entry.Need("bytes").Amount()});
  });
}

void ReadDevices(const JsonReader& resource, Recording& recording) {
  const std::string name = resource.Need("resource").Text();
  resource.Need("devices").Each([&](const JsonReader& device) {
    placement::PlacedDevice placed{.resource = name,
                                   .id = device.Need("id").Text(),
                                   .numa_nodes = {},
                                   .pci_address = "",
                                   .pci_numa_node = {}};
    device.Find("numa").Each([&](const JsonReader& id) {
      const std::int64_t number = id.Integer(INT32_MIN, INT32_MAX, -1);
      if (!placed.numa_nodes.Insert(static_cast<int>(number))) placed.unknown_node = true;
    });
    recording.device_order[name].push_back(placed.id);
    recording.node.devices.push_back(std::move(placed));
  });
}

void ReadNode(const JsonReader& node, Recording& recording) {
  placement::NodePlacement& facts = recording.node;
  ReadKubelet(node, facts.kubelet);
  std::vector<int> ids;
  node.Need("numa").Each([&](const JsonReader& numa) { ids.push_back(numa.Need("id").Id()); });
  node.Find("numa").Each([&](const JsonReader& numa) {
    facts.numa_nodes.push_back(ReadNumaNode(numa, ids, facts.kubelet));
  });
  std::ranges::sort(facts.numa_nodes, {}, &placement::NumaNodePlacement::id);
  for (placement::NumaNodePlacement& numa : facts.numa_nodes) {
    numa.free_cpus = numa.cpus - facts.kubelet.reserved_cpus.value_or(base::CpuSet());
  }
  node.Find("devices").Each([&](const JsonReader& resource) { ReadDevices(resource, recording); });
}

kube::Resources ReadResources(const JsonReader& object) {
  kube::Resources resources;
  object.EachMember([&](const std::string& name, const JsonReader& amount) {
    resources[name == "cpu_milli" ? kube::kCpu : name] = amount.Amount();
  });
  return resources;
}

std::vector<kube::Container> ReadContainers(const JsonReader& list) {
  std::vector<kube::Container> containers;
  list.Each([&](const JsonReader& container) {
    containers.push_back({.name = container.Need("name").Text(),
                          .sidecar = container.Find("sidecar").Flag(),
                          .requests = ReadResources(container.Find("requests")),
                          .limits = ReadResources(container.Find("limits"))});
  });
  return containers;
}

kube::Pod ReadPod(const JsonReader& json) {
  kube::Pod pod;
  pod.uid = json.Need("uid").Text();
  pod.name = pod.uid;
  pod.init_containers = ReadContainers(json.Find("init"));
  pod.containers = ReadContainers(json.Need("containers"));
  const JsonReader resources = json.Find("resources");
  if (resources.present()) {
    pod.pod_requests = ReadResources(resources.Find("requests"));
    pod.pod_limits = ReadResources(resources.Find("limits"));
  }
  kube::ApplyDefaults(pod);
  pod.qos = kube::ComputeQos(pod);
  return pod;
}

std::optional<base::NumaMask> ReadAffinity(const JsonReader& affinity) {
  if (!affinity.present()) return std::nullopt;
  return affinity.NodeIds();
}

RecordedContainer ReadContainer(const std::string& name, const JsonReader& json) {
  RecordedContainer container;
  container.name = name;
  container.affinity = ReadAffinity(json.Find("affinity"));
  container.preferred = json.Find("preferred").Flag();
  container.cpus = json.Find("cpus").Cpus();
  json.Find("memory").Each([&](const JsonReader& block) {
    const JsonReader own = block.Find("numa");  // a running kubelet's state file has numaAffinity
    container.memory.push_back(
        {.type = block.Need("type").Text(),
         .bytes = block.Need("size").Amount(),
         .numa_nodes = (own.present() ? own : block.Need("numaAffinity")).NodeIds()});
  });
  std::ranges::sort(container.memory, {}, &placement::PlacedMemory::type);
  json.Find("devices").EachMember([&](const std::string& resource, const JsonReader& ids) {
    container.devices[resource] = ids.Texts();
    std::ranges::sort(container.devices[resource]);
  });
  return container;
}

RecordedVerdict ReadVerdict(const JsonReader& json) {
  RecordedVerdict verdict;
  const JsonReader admit = json.Need("admit");
  verdict.admitted = admit.Flag();
  verdict.reason = json.Need("reason").Text();
  verdict.message = json.Find("message").Text();
  verdict.ambiguous_devices = json.Find("ambiguous_devices").Flag();
  // Of the managers a list, of a running kubelet an object by name.
  const JsonReader containers = json.Find("containers");
  const auto add = [&](const std::string& name, const JsonReader& container) {
    verdict.containers.push_back(ReadContainer(name, container));
  };
  if (const JsonReader own = json.Find("pod"); own.present()) add("", own);
  if (containers.is_map()) {
    containers.EachMember(add);
  } else {
    containers.Each([&](const JsonReader& one) { add(one.Need("name").Text(), one); });
  }
  const JsonReader rejected = json.Find("rejected_at");
  verdict.stage = rejected.Find("stage").Text();
  verdict.rejected_preferred = rejected.Find("preferred").Flag();
  verdict.rejected_affinity = ReadAffinity(rejected.Find("affinity"));
  const JsonReader shared = json.Find("shared_cpus");
  if (shared.present()) verdict.shared_cpus = shared.Cpus();
  return verdict;
}

RecordedEvent ReadEvent(const JsonReader& json) {
  RecordedEvent event;
  const std::string op = json.Need("op").OneOf(kOperations);
  if (op == "remove") {
    event.kind = RecordedEvent::Kind::kRemove;
    event.pod.uid = json.Need("uid").Text();
  } else if (op == "device_health") {
    event.kind = RecordedEvent::Kind::kDeviceHealth;
    event.resource = json.Need("resource").Text();
    event.unhealthy = json.Find("unhealthy").Texts();
  } else {
    const JsonReader pod = json.Need("pod");
    event.not_started = json.Find("not_started").Flag() || pod.Find("not_started").Flag();
    event.pod = ReadPod(pod);
    event.verdict = ReadVerdict(json.Need("verdict"));
    const JsonReader live = json.Find("live");
    if (live.present()) event.live = ReadVerdict(live);
  }
  return event;
}

}  // namespace

absl::StatusOr<Recording> ParseRecording(const std::string& line) {
  ASSIGN_OR_RETURN(const Json json, ParseJson(line));
  absl::Status status;
  const JsonReader reader(json, status);
  Recording recording;
  recording.name = reader.Find("name").Text();
  recording.family = reader.Find("family").Text();
  ReadNode(reader.Need("node"), recording);
  const JsonReader allocatable = reader.Find("node_allocatable");
  if (allocatable.present()) recording.node_allocatable = allocatable.Quantities();
  reader.Need("events").Each(
      [&](const JsonReader& event) { recording.events.push_back(ReadEvent(event)); });
  RETURN_IF_ERROR(status);
  return recording;
}

absl::Status ForEachLine(const std::string& path,
                         const std::function<absl::Status(int, const std::string&)>& visit) {
  std::string line;
  int number = 0;
  const absl::Status read = ReadUnpacked(path, [&](std::string_view rest) -> absl::Status {
    for (std::size_t end = rest.find('\n'); end != std::string_view::npos; end = rest.find('\n')) {
      line += rest.substr(0, end);
      rest.remove_prefix(end + 1);
      RETURN_IF_ERROR(visit(++number, line));
      line.clear();
    }
    line += rest;
    if (line.size() <= kMaxLineBytes) return absl::OkStatus();
    return absl::InvalidArgumentError(fmt::format("{} line {} is too long", path, number + 1));
  });
  RETURN_IF_ERROR(read);
  return line.empty() ? absl::OkStatus() : visit(++number, line);
}

}  // namespace cli
