#include "cli/recording.h"

#include <fmt/format.h>
#include <rapidjson/document.h>
#include <rapidjson/error/en.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "base/quantity.h"
#include "base/status_macros.h"

namespace cli {
namespace {

using Json = rapidjson::Value;

const Json* Find(const Json& object, const char* name) {
  if (!object.IsObject()) return nullptr;
  const auto member = object.FindMember(name);
  return member == object.MemberEnd() || member->value.IsNull() ? nullptr : &member->value;
}

std::string Text(const Json& object, const char* name) {
  const Json* value = Find(object, name);
  return value != nullptr && value->IsString() ? value->GetString() : "";
}

bool Flag(const Json& object, const char* name) {
  const Json* value = Find(object, name);
  return value != nullptr && value->IsBool() && value->GetBool();
}

std::int64_t Number(const Json& object, const char* name) {
  const Json* value = Find(object, name);
  return value != nullptr && value->IsInt64() ? value->GetInt64() : 0;
}

// Calls visit for each element of an array, if it is one.
template <class Visit>
void ForEach(const Json* array, Visit visit) {
  if (array == nullptr || !array->IsArray()) return;
  for (const Json& element : array->GetArray()) visit(element);
}

template <class Visit>
void ForEachMember(const Json* object, Visit visit) {
  if (object == nullptr || !object->IsObject()) return;
  for (const auto& member : object->GetObject()) visit(member.name.GetString(), member.value);
}

template <class Set>
Set Ids(const Json* array) {
  Set ids;
  ForEach(array, [&](const Json& id) {
    if (id.IsInt()) ids.Insert(id.GetInt());
  });
  return ids;
}

std::vector<std::string> Strings(const Json* array) {
  std::vector<std::string> strings;
  ForEach(array, [&](const Json& text) {
    if (text.IsString()) strings.push_back(text.GetString());
  });
  return strings;
}

std::map<std::string, std::string> Options(const Json* object) {
  std::map<std::string, std::string> options;
  ForEachMember(object, [&](const char* name, const Json& value) {
    if (value.IsString()) options[name] = value.GetString();
  });
  return options;
}

placement::NodeMemory Table(const std::string& type, std::int64_t capacity, std::int64_t taken,
                            std::int64_t reserved) {
  const std::int64_t allocatable = capacity - taken - reserved;
  return {.type = type,
          .capacity = capacity,
          .system_reserved = reserved,
          .allocatable = allocatable,
          .free = allocatable};
}

placement::NumaNodePlacement ReadNumaNode(const Json& numa, const Json& all_nodes,
                                          const placement::KubeletFacts& kubelet) {
  placement::NumaNodePlacement node;
  node.id = static_cast<int>(Number(numa, "id"));
  ForEach(Find(numa, "core_groups"), [&](const Json& group) {
    placement::CoreGroup cores{.socket = static_cast<int>(Number(group, "socket")),
                               .l3 = static_cast<int>(Number(group, "l3")),
                               .cores = {}};
    ForEach(Find(group, "cores"), [&](const Json& core) {
      cores.cores.push_back(Ids<base::CpuSet>(&core));
      node.cpus |= cores.cores.back();
    });
    node.core_groups.push_back(std::move(cores));
  });
  const auto reserved = [&](const std::string& type) {
    std::int64_t bytes = 0;
    for (const auto& entry : kubelet.reserved_memory) {
      if (entry.numa_node == node.id && entry.type == type) bytes += entry.bytes;
    }
    return bytes;
  };
  std::int64_t huge = 0;
  ForEachMember(Find(numa, "hugepages"), [&](const char* type, const Json& bytes) {
    if (!bytes.IsInt64()) return;
    huge += bytes.GetInt64();
    node.memory.push_back(Table(type, bytes.GetInt64(), 0, reserved(type)));
  });
  node.memory.push_back(Table("memory", Number(numa, "memory"), huge, reserved("memory")));
  node.memory_group = base::NumaMask{node.id};
  node.memory_assignments = 0;
  const Json* distances = Find(numa, "distances");
  if (distances != nullptr && distances->IsArray() && distances->Size() == all_nodes.Size()) {
    for (rapidjson::SizeType i = 0; i < all_nodes.Size(); ++i) {
      if (!(*distances)[i].IsInt()) continue;
      node.distances[static_cast<int>(Number(all_nodes[i], "id"))] = (*distances)[i].GetInt();
    }
  }
  return node;
}

absl::Status ReadKubelet(const Json& node, placement::KubeletFacts& kubelet) {
  kubelet.version = Text(node, "kubelet_version");
  if (kubelet.version.empty()) kubelet.version = "v1.37.2";
  kubelet.feature_gates = Options(Find(node, "feature_gates"));
  kubelet.topology_policy = Text(node, "topology_policy");
  kubelet.topology_scope = Text(node, "topology_scope");
  kubelet.topology_options = Options(Find(node, "topology_options"));
  kubelet.cpu_policy = Text(node, "cpu_policy");
  kubelet.cpu_options = Options(Find(node, "cpu_options"));
  kubelet.memory_policy = Text(node, "memory_policy");
  ASSIGN_OR_RETURN(kubelet.reserved_cpus,
                   base::CpuSet::Parse(Text(node, "reserved_cpus_effective")));
  ForEach(Find(node, "reserved_memory"), [&](const Json& entry) {
    kubelet.reserved_memory.push_back({.numa_node = static_cast<int>(Number(entry, "numa")),
                                       .type = Text(entry, "type"),
                                       .bytes = Number(entry, "bytes")});
  });
  return absl::OkStatus();
}

absl::Status ReadNode(const Json& node, Recording& recording) {
  placement::NodePlacement& facts = recording.node;
  RETURN_IF_ERROR(ReadKubelet(node, facts.kubelet));
  const Json* numa_nodes = Find(node, "numa");
  if (numa_nodes == nullptr || !numa_nodes->IsArray()) {
    return absl::InvalidArgumentError("the node has no \"numa\"");
  }
  ForEach(numa_nodes, [&](const Json& numa) {
    facts.numa_nodes.push_back(ReadNumaNode(numa, *numa_nodes, facts.kubelet));
  });
  std::ranges::sort(facts.numa_nodes, {}, &placement::NumaNodePlacement::id);
  for (placement::NumaNodePlacement& numa : facts.numa_nodes) {
    numa.free_cpus = numa.cpus - facts.kubelet.reserved_cpus.value_or(base::CpuSet());
  }
  ForEach(Find(node, "devices"), [&](const Json& resource) {
    const std::string name = Text(resource, "resource");
    ForEach(Find(resource, "devices"), [&](const Json& device) {
      placement::PlacedDevice placed{.resource = name,
                                     .id = Text(device, "id"),
                                     .numa_nodes = {},
                                     .pci_address = "",
                                     .pci_numa_node = {}};
      ForEach(Find(device, "numa"), [&](const Json& id) {
        if (!id.IsInt() || !placed.numa_nodes.Insert(id.GetInt())) placed.unknown_node = true;
      });
      recording.device_order[name].push_back(placed.id);
      facts.devices.push_back(std::move(placed));
    });
  });
  return absl::OkStatus();
}

kube::Resources ReadResources(const Json* object) {
  kube::Resources resources;
  ForEachMember(object, [&](const char* name, const Json& amount) {
    if (!amount.IsInt64()) return;
    resources[std::string(name) == "cpu_milli" ? kube::kCpu : name] = amount.GetInt64();
  });
  return resources;
}

std::vector<kube::Container> ReadContainers(const Json* array) {
  std::vector<kube::Container> containers;
  ForEach(array, [&](const Json& container) {
    containers.push_back({.name = Text(container, "name"),
                          .sidecar = Flag(container, "sidecar"),
                          .requests = ReadResources(Find(container, "requests")),
                          .limits = ReadResources(Find(container, "limits"))});
  });
  return containers;
}

kube::Pod ReadPod(const Json& json) {
  kube::Pod pod;
  pod.uid = Text(json, "uid");
  pod.name = pod.uid;
  pod.init_containers = ReadContainers(Find(json, "init"));
  pod.containers = ReadContainers(Find(json, "containers"));
  if (const Json* resources = Find(json, "resources")) {
    pod.pod_requests = ReadResources(Find(*resources, "requests"));
    pod.pod_limits = ReadResources(Find(*resources, "limits"));
  }
  kube::ApplyDefaults(pod);
  pod.qos = kube::ComputeQos(pod);
  return pod;
}

absl::StatusOr<RecordedContainer> ReadContainer(const std::string& name, const Json& json) {
  RecordedContainer container;
  container.name = name;
  if (const Json* affinity = Find(json, "affinity")) {
    container.affinity = Ids<base::NumaMask>(affinity);
  }
  container.preferred = Flag(json, "preferred");
  ASSIGN_OR_RETURN(container.cpus, base::CpuSet::Parse(Text(json, "cpus")));
  ForEach(Find(json, "memory"), [&](const Json& block) {
    container.memory.push_back({.type = Text(block, "type"),
                                .bytes = Number(block, "size"),
                                .numa_nodes = Ids<base::NumaMask>(Find(block, "numa"))});
  });
  std::ranges::sort(container.memory, {}, &placement::PlacedMemory::type);
  ForEachMember(Find(json, "devices"), [&](const char* resource, const Json& ids) {
    container.devices[resource] = Strings(&ids);
    std::ranges::sort(container.devices[resource]);
  });
  return container;
}

absl::StatusOr<RecordedVerdict> ReadVerdict(const Json& json) {
  RecordedVerdict verdict;
  verdict.admitted = Flag(json, "admit");
  verdict.reason = Text(json, "reason");
  verdict.message = Text(json, "message");
  verdict.ambiguous_devices = Flag(json, "ambiguous_devices");
  absl::Status status;
  const auto add = [&](const std::string& name, const Json& container) {
    absl::StatusOr<RecordedContainer> read = ReadContainer(name, container);
    status.Update(read.status());
    if (read.ok()) verdict.containers.push_back(*std::move(read));
  };
  const Json* containers = Find(json, "containers");
  ForEach(containers, [&](const Json& container) { add(Text(container, "name"), container); });
  ForEachMember(containers, add);
  RETURN_IF_ERROR(status);
  if (const Json* rejected = Find(json, "rejected_at")) {
    verdict.stage = Text(*rejected, "stage");
    verdict.rejected_preferred = Flag(*rejected, "preferred");
    if (const Json* affinity = Find(*rejected, "affinity")) {
      verdict.rejected_affinity = Ids<base::NumaMask>(affinity);
    }
  }
  if (Find(json, "shared_cpus") != nullptr) {
    ASSIGN_OR_RETURN(verdict.shared_cpus, base::CpuSet::Parse(Text(json, "shared_cpus")));
  }
  return verdict;
}

absl::StatusOr<RecordedEvent> ReadEvent(const Json& json) {
  RecordedEvent event;
  const std::string op = Text(json, "op");
  event.resource = Text(json, "resource");
  event.unhealthy = Strings(Find(json, "unhealthy"));
  event.not_started = Flag(json, "not_started");
  if (op == "remove") {
    event.kind = RecordedEvent::Kind::kRemove;
    event.pod.uid = Text(json, "uid");
    return event;
  }
  if (op == "device_health") {
    event.kind = RecordedEvent::Kind::kDeviceHealth;
    return event;
  }
  const Json* pod = Find(json, "pod");
  const Json* verdict = Find(json, "verdict");
  if (op != "add" || pod == nullptr || verdict == nullptr) {
    return absl::InvalidArgumentError(fmt::format("an event \"{}\" is not understood", op));
  }
  event.not_started = event.not_started || Flag(*pod, "not_started");
  event.pod = ReadPod(*pod);
  ASSIGN_OR_RETURN(event.verdict, ReadVerdict(*verdict));
  if (const Json* live = Find(json, "live")) {
    ASSIGN_OR_RETURN(event.live, ReadVerdict(*live));
  }
  return event;
}

}  // namespace

absl::StatusOr<Recording> ParseRecording(const std::string& line) {
  rapidjson::Document json;
  json.Parse<rapidjson::kParseIterativeFlag>(line.c_str(), line.size());
  if (json.HasParseError()) {
    return absl::InvalidArgumentError(
        fmt::format("no JSON at offset {}: {}", json.GetErrorOffset(),
                    rapidjson::GetParseError_En(json.GetParseError())));
  }
  Recording recording;
  const Json* node = Find(json, "node");
  if (node == nullptr) return absl::InvalidArgumentError("a recording has no \"node\"");
  recording.name = Text(json, "name");
  recording.family = Text(json, "family");
  RETURN_IF_ERROR(ReadNode(*node, recording));
  absl::Status status;
  if (const Json* allocatable = Find(json, "node_allocatable")) {
    recording.node_allocatable.emplace();
    ForEachMember(allocatable, [&](const char* name, const Json& amount) {
      const std::string text = amount.IsString() ? amount.GetString() : "";
      const absl::StatusOr<std::int64_t> value = std::string(name) == kube::kCpu
                                                     ? base::ParseMilliQuantity(text)
                                                     : base::ParseQuantity(text);
      if (value.ok()) (*recording.node_allocatable)[name] = *value;
      status.Update(value.status());
    });
  }
  RETURN_IF_ERROR(status);
  ForEach(Find(json, "events"), [&](const Json& event) {
    absl::StatusOr<RecordedEvent> read = ReadEvent(event);
    status.Update(read.status());
    if (read.ok()) recording.events.push_back(*std::move(read));
  });
  RETURN_IF_ERROR(status);
  return recording;
}

absl::Status ForEachLine(const std::string& path,
                         const std::function<absl::Status(int, const std::string&)>& visit) {
  const std::unique_ptr<gzFile_s, int (*)(gzFile_s*)> file(gzopen(path.c_str(), "rb"), gzclose);
  if (file == nullptr) return absl::NotFoundError(fmt::format("cannot open {}", path));
  std::array<char, 1 << 16> buffer;
  std::string line;
  int number = 0;
  while (gzgets(file.get(), buffer.data(), static_cast<int>(buffer.size())) != nullptr) {
    line += buffer.data();
    if (!line.ends_with('\n') && gzeof(file.get()) == 0) continue;
    RETURN_IF_ERROR(visit(++number, line));
    line.clear();
  }
  int error = Z_OK;
  const char* message = gzerror(file.get(), &error);
  if (error != Z_OK && error != Z_STREAM_END) {
    return absl::InvalidArgumentError(fmt::format("cannot read {}: {}", path, message));
  }
  return absl::OkStatus();
}

}  // namespace cli
