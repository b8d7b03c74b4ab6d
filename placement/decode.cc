#include "placement/decode.h"

#include <fmt/format.h>
#include <rapidjson/document.h>
#include <rapidjson/error/en.h>

#include <algorithm>
#include <charconv>
#include <string_view>
#include <utility>

#include "base/quantity.h"

namespace placement {
namespace {

using rapidjson::Value;

std::string_view TextOf(const Value& value) { return {value.GetString(), value.GetStringLength()}; }

// Reads the members of one JSON object. A member that is absent or null leaves its target alone;
// the first one that cannot be is kept as the error, which all readers of a document share.
class Members {
 public:
  Members(const Value& object, std::string path, absl::Status& error)
      : object_(object), path_(std::move(path)), error_(error) {}

  void Fail(const char* key, const std::string& why) {
    if (error_.ok()) {
      error_ = absl::InvalidArgumentError(fmt::format("{}{}: {}", path_, key, why));
    }
  }
  const Value* Find(const char* key) const {
    const auto member = object_.FindMember(key);
    if (member == object_.MemberEnd() || member->value.IsNull()) return nullptr;
    return &member->value;
  }
  bool Text(const char* key, std::string& out) {
    const Value* value = Find(key);
    if (value == nullptr) return false;
    if (!value->IsString()) {
      Fail(key, "is no string");
      return false;
    }
    out = TextOf(*value);
    return true;
  }
  template <class T>
  bool Number(const char* key, T& out) {
    const Value* value = Find(key);
    if (value == nullptr) return false;
    return NumberOf(key, *value, out);
  }
  template <class T>
  bool NumberOf(const char* key, const Value& value, T& out) {
    if (!value.IsInt64() || !std::in_range<T>(value.GetInt64())) {
      Fail(key, "is no whole number that fits");
      return false;
    }
    out = static_cast<T>(value.GetInt64());
    return true;
  }
  void Flag(const char* key, bool& out) {
    const Value* value = Find(key);
    if (value == nullptr) return;
    if (!value->IsBool()) return Fail(key, "is neither true nor false");
    out = value->GetBool();
  }
  bool Bytes(const char* key, std::int64_t& out) {
    std::string text;
    if (!Text(key, text)) return false;
    const absl::StatusOr<std::int64_t> bytes = base::ParseQuantity(text);
    if (!bytes.ok()) {
      Fail(key, bytes.status().ToString());
      return false;
    }
    out = *bytes;
    return true;
  }
  void Amount(const char* key, std::optional<std::int64_t>& out) {  // 4, "4" or "1Gi"
    const Value* value = Find(key);
    if (value == nullptr) return;
    std::int64_t number = 0;
    if (!value->IsString()) {
      if (NumberOf(key, *value, number)) out = number;
      return;
    }
    const auto amount = base::ParseQuantity(TextOf(*value), base::Rounding::kDown);
    if (!amount.ok()) return Fail(key, amount.status().ToString());
    out = *amount;
  }
  void Time(const char* key, std::optional<base::Time>& out) {
    std::string text;
    if (!Text(key, text)) return;
    const absl::StatusOr<base::Time> time = base::ParseTime(text);
    if (!time.ok()) return Fail(key, time.status().ToString());
    out = *time;
  }
  template <class Set>
  bool Ids(const char* key, Set& out) {  // "0-3,8"
    std::string text;
    return Text(key, text) && IdsOf(key, text, out);
  }
  template <class Set>
  bool IdsOf(const char* key, std::string_view text, Set& out) {
    absl::StatusOr<Set> set = Set::Parse(text);
    if (!set.ok()) {
      Fail(key, set.status().ToString());
      return false;
    }
    out = *std::move(set);
    return true;
  }
  bool IdList(const char* key, base::NumaMask& out) {  // [0, 1]
    return Each(key, [&](const Value& value) {
      int id = -1;
      if (NumberOf(key, value, id) && !out.Insert(id)) Fail(key, "has an id that cannot be");
    });
  }
  void Texts(const char* key, std::vector<std::string>& out) {
    Each(key, [&](const Value& value) {
      if (!value.IsString()) return Fail(key, "has an entry that is no string");
      out.emplace_back(TextOf(value));
    });
  }
  void TextMap(const char* key, std::map<std::string, std::string>& out) {
    EachMember(key, [&](std::string_view name, const Value& value) {
      if (!value.IsString()) return Fail(key, "has a value that is no string");
      out[std::string(name)] = TextOf(value);
    });
  }
  template <class T>
  void NumbersById(const char* key, std::map<int, T>& out) {
    EachMember(key, [&](std::string_view name, const Value& value) {
      int id = -1;
      const auto end = name.data() + name.size();
      const auto result = std::from_chars(name.data(), end, id);
      if (result.ec != std::errc() || result.ptr != end)
        return Fail(key, "has a key that is no id");
      NumberOf(key, value, out[id]);
    });
  }
  template <class Body>
  bool Object(const char* key, Body body) {
    const Value* value = Find(key);
    if (value == nullptr) return false;
    if (!value->IsObject()) {
      Fail(key, "is no object");
      return false;
    }
    Members members(*value, fmt::format("{}{}.", path_, key), error_);
    body(members);
    return true;
  }
  template <class T, class Body>
  void Objects(const char* key, std::vector<T>& out, Body body) {
    Each(key, [&](const Value& value) {
      if (!value.IsObject()) return Fail(key, "has an entry that is no object");
      Members members(value, fmt::format("{}{}[{}].", path_, key, out.size()), error_);
      out.emplace_back();
      body(members, out.back());
    });
  }

 private:
  template <class Body>
  bool Each(const char* key, Body body) {
    const Value* value = Find(key);
    if (value == nullptr) return false;
    if (!value->IsArray()) {
      Fail(key, "is no list");
      return false;
    }
    for (const Value& entry : value->GetArray()) body(entry);
    return true;
  }
  template <class Body>
  void EachMember(const char* key, Body body) {
    const Value* value = Find(key);
    if (value == nullptr) return;
    if (!value->IsObject()) return Fail(key, "is no object");
    for (const auto& member : value->GetObject()) body(TextOf(member.name), member.value);
  }

  const Value& object_;
  std::string path_;
  absl::Status& error_;
};

void ReadKubelet(Members& m, KubeletFacts& kubelet) {
  m.Text("version", kubelet.version);
  m.Time("startedAt", kubelet.started_at);
  m.Text("configSource", kubelet.config_source);
  m.TextMap("featureGates", kubelet.feature_gates);
  m.Object("topologyManager", [&](Members& manager) {
    manager.Text("policy", kubelet.topology_policy);
    manager.Text("scope", kubelet.topology_scope);
    manager.TextMap("options", kubelet.topology_options);
  });
  m.Object("cpuManager", [&](Members& manager) {
    manager.Text("policy", kubelet.cpu_policy);
    manager.TextMap("options", kubelet.cpu_options);
    base::CpuSet reserved;
    if (manager.Ids("reservedCPUs", reserved)) kubelet.reserved_cpus = reserved;
  });
  m.Object("memoryManager", [&](Members& manager) {
    manager.Text("policy", kubelet.memory_policy);
    manager.Objects("reserved", kubelet.reserved_memory,
                    [](Members& entry, KubeletFacts::ReservedMemory& reserved) {
                      entry.Number("numaNode", reserved.numa_node);
                      entry.Text("type", reserved.type);
                      entry.Bytes("size", reserved.bytes);
                    });
  });
}

void ReadCoreGroup(Members& m, CoreGroup& group) {
  m.Number("socket", group.socket);
  m.Number("l3", group.l3);
  std::string cores;
  m.Text("cores", cores);
  for (std::string_view rest = cores; !rest.empty();) {
    const std::size_t space = std::min(rest.find(' '), rest.size());
    base::CpuSet core;
    if (space > 0 && m.IdsOf("cores", rest.substr(0, space), core)) group.cores.push_back(core);
    rest.remove_prefix(std::min(space + 1, rest.size()));
  }
}

void ReadNodeMemory(Members& m, NodeMemory& memory) {
  m.Text("type", memory.type);
  m.Bytes("capacity", memory.capacity);
  m.Bytes("systemReserved", memory.system_reserved);
  m.Bytes("allocatable", memory.allocatable);
  std::int64_t free = 0;
  if (m.Bytes("free", free)) memory.free = free;
}

void ReadNumaNode(Members& m, NumaNodePlacement& node) {
  m.Number("id", node.id);
  m.Ids("cpus", node.cpus);
  m.Objects("coreGroups", node.core_groups, ReadCoreGroup);
  base::CpuSet free_cpus;
  if (m.Ids("freeCPUs", free_cpus)) node.free_cpus = free_cpus;
  m.Objects("memory", node.memory, ReadNodeMemory);
  base::NumaMask group;
  if (m.IdList("memoryGroup", group)) node.memory_group = group;
  int assignments = 0;
  if (m.Number("memoryAssignments", assignments)) node.memory_assignments = assignments;
  m.NumbersById("distances", node.distances);
}

void ReadDevice(Members& m, PlacedDevice& device) {
  m.Text("resource", device.resource);
  m.Text("id", device.id);
  m.IdList("numaNodes", device.numa_nodes);
  m.Flag("unknownNode", device.unknown_node);
  m.Flag("healthy", device.healthy);
  m.Text("pciAddress", device.pci_address);
  int numa_node = -1;
  if (m.Number("pciNumaNode", numa_node)) device.pci_numa_node = numa_node;
}

void ReadContainer(Members& m, PlacedContainer& container) {
  m.Text("name", container.name);
  m.Ids("cpus", container.cpus);
  m.Objects("memory", container.memory, [](Members& entry, PlacedMemory& memory) {
    entry.Text("type", memory.type);
    entry.Bytes("size", memory.bytes);
    entry.IdList("numaNodes", memory.numa_nodes);
  });
  m.Objects("devices", container.devices, [](Members& entry, HeldDevices& held) {
    entry.Text("resource", held.resource);
    entry.Texts("ids", held.ids);
  });
  m.Object("kernel", [&](Members& entry) {
    KernelFacts kernel;
    base::CpuSet cpus;
    if (entry.Ids("cpus", cpus)) kernel.cpus = cpus;
    base::NumaMask nodes;
    if (entry.Ids("memoryNodes", nodes)) kernel.memory_nodes = nodes;
    entry.NumbersById("residentBytes", kernel.resident_bytes);
    container.kernel = std::move(kernel);
  });
}

Alignment AlignmentOf(const std::string& name) {
  using enum Alignment;
  for (const Alignment alignment : {kAligned, kSpread, kMisaligned, kUnpinned, kDrifted}) {
    if (name == ToString(alignment)) return alignment;
  }
  return kUnknown;
}

void ReadPod(Members& m, PlacedPod& pod) {
  m.Text("namespace", pod.namespace_name);
  m.Text("name", pod.name);
  m.Text("uid", pod.uid);
  m.Text("kubeletUID", pod.kubelet_uid);
  m.IdList("numaNodes", pod.numa_nodes);
  std::string alignment;
  m.Text("alignment", alignment);
  pod.alignment = AlignmentOf(alignment);
  m.Text("reason", pod.reason);
  m.Text("message", pod.message);
  m.Objects("containers", pod.containers, ReadContainer);
}

void ReadSummary(Members& m, Summary& summary) {
  m.Number("pods", summary.pods);
  m.Number("aligned", summary.aligned);
  m.Number("spread", summary.spread);
  m.Number("misaligned", summary.misaligned);
  m.Number("unpinned", summary.unpinned);
  m.Number("drifted", summary.drifted);
  m.Number("unknown", summary.unknown);
  m.Text("free", summary.free);
}

void ReadStatus(Members& m, NodePlacement& placement) {
  m.Number("revision", placement.revision);
  m.Time("observedAt", placement.observed_at);
  m.Text("bootID", placement.boot_id);
  m.Text("agentVersion", placement.agent_version);
  m.Object("kubelet", [&](Members& kubelet) { ReadKubelet(kubelet, placement.kubelet); });
  m.Objects("numaNodes", placement.numa_nodes, ReadNumaNode);
  m.Objects("devices", placement.devices, ReadDevice);
  m.Texts("knownPods", placement.known_pods);
  m.Objects("pods", placement.pods, ReadPod);
  m.Object("summary", [&](Members& summary) { ReadSummary(summary, placement.summary); });
  m.Objects("conditions", placement.conditions, [](Members& entry, Condition& condition) {
    entry.Text("type", condition.type);
    entry.Text("status", condition.status);
    entry.Text("reason", condition.reason);
    entry.Text("message", condition.message);
  });
}

void ReadAttribute(Members& m, NrtAttribute& attribute) {
  m.Text("name", attribute.name);
  m.Text("value", attribute.value);
}

// By NUMA node id; names without one come last, by name.
bool ByNumaNode(const std::string& a, const std::string& b) {
  const auto key = [](const std::string& name) {
    const std::optional<int> id = NumaNodeNamed(name);
    return std::pair(!id, id.value_or(0));
  };
  return std::pair(key(a), a) < std::pair(key(b), b);
}

void ReadZone(Members& m, NrtZone& zone) {
  m.Text("name", zone.name);
  m.Text("type", zone.type);
  m.Objects("costs", zone.costs, [](Members& entry, NrtCost& cost) {
    entry.Text("name", cost.name);
    entry.Number("value", cost.value);
  });
  m.Objects("attributes", zone.attributes, ReadAttribute);
  m.Objects("resources", zone.resources, [](Members& entry, NrtResource& resource) {
    entry.Text("name", resource.name);
    entry.Amount("capacity", resource.capacity);
    entry.Amount("allocatable", resource.allocatable);
    entry.Amount("available", resource.available);
  });
  std::ranges::stable_sort(zone.costs, ByNumaNode, &NrtCost::name);
  std::ranges::stable_sort(zone.attributes, {}, &NrtAttribute::name);
  std::ranges::stable_sort(zone.resources, {}, &NrtResource::name);
}

void ReadAnnotations(Members& m, std::vector<NrtAttribute>& annotations) {
  std::map<std::string, std::string> all;
  m.TextMap("annotations", all);
  for (const auto& [name, value] : all) {
    if (name.starts_with("topology.node.k8s.io/")) annotations.push_back({name, value});
  }
}

void ReadTopology(Members& m, NodeResourceTopology& nrt) {
  m.Object("metadata", [&](Members& metadata) {
    metadata.Text("name", nrt.name);
    ReadAnnotations(metadata, nrt.annotations);
  });
  m.Texts("topologyPolicies", nrt.topology_policies);
  m.Objects("attributes", nrt.attributes, ReadAttribute);
  m.Objects("zones", nrt.zones, ReadZone);
  std::ranges::stable_sort(nrt.attributes, {}, &NrtAttribute::name);
  std::ranges::stable_sort(nrt.zones, ByNumaNode, &NrtZone::name);
}

// Reads an object of this kind with `read`.
template <class Object, class Read>
absl::StatusOr<Object> ParseObject(const std::string& json, const char* expected, Read read) {
  rapidjson::Document document;  // iterative: nesting costs no stack
  document.Parse<rapidjson::kParseIterativeFlag | rapidjson::kParseValidateEncodingFlag>(
      json.data(), json.size());
  if (document.HasParseError()) {
    return absl::InvalidArgumentError(fmt::format(
        "{} is no JSON: {} at byte {}", expected,
        rapidjson::GetParseError_En(document.GetParseError()), document.GetErrorOffset()));
  }
  if (!document.IsObject()) {
    return absl::InvalidArgumentError(fmt::format("{} is no JSON object", expected));
  }
  absl::Status error;
  Members top(document, "", error);
  std::string kind;
  if (!top.Text("kind", kind) || kind != expected) {
    return absl::InvalidArgumentError(fmt::format("kind is \"{}\", not {}", kind, expected));
  }
  Object object;
  read(top, object);
  if (!error.ok()) return error;
  return object;
}

}  // namespace

absl::StatusOr<NodePlacement> ParseNodePlacement(const std::string& json) {
  return ParseObject<NodePlacement>(json, "NodePlacement", [](Members& top, NodePlacement& node) {
    top.Object("metadata", [&](Members& m) { m.Text("name", node.node_name); });
    top.Object("status", [&](Members& m) { ReadStatus(m, node); });
  });
}

absl::StatusOr<NodeResourceTopology> ParseNodeResourceTopology(const std::string& json) {
  return ParseObject<NodeResourceTopology>(json, "NodeResourceTopology", ReadTopology);
}

}  // namespace placement
