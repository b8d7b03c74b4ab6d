#include "placement/encode.h"

#include <fmt/format.h>

#include <array>

#include "base/quantity.h"
#include "placement/document_writer.h"
#include "placement/json_writer.h"
#include "placement/observation.h"

namespace placement {
namespace {

using StringMap = std::map<std::string, std::string>;

// Shorthands for the fields of one document.
class Fields {
 public:
  explicit Fields(DocumentWriter& writer) : w_(writer) {}

  template <class Body>
  void Map(Body body) {
    w_.BeginMap();
    body();
    w_.EndMap();
  }
  template <class Body>
  void Map(std::string_view key, Body body) {
    w_.Key(key);
    Map(body);
  }
  template <class Items, class Each>
  void List(std::string_view key, const Items& items, Each each) {
    w_.Key(key);
    w_.BeginList();
    for (const auto& item : items) each(item);
    w_.EndList();
  }
  void String(std::string_view key, const std::string& text) {
    w_.Key(key);
    w_.String(text);
  }
  void Known(std::string_view key, const std::string& text) {  // "" is unknown, and left out
    if (!text.empty()) String(key, text);
  }
  void Strings(std::string_view key, const StringMap& map) {
    Map(key, [&] {
      for (const auto& [name, value] : map) String(name, value);
    });
  }
  void Int(std::string_view key, std::int64_t number) {
    w_.Key(key);
    w_.Int(number);
  }
  void Known(std::string_view key, const std::optional<std::int64_t>& number) {
    if (number) Int(key, *number);
  }
  void Bool(std::string_view key, bool value) {
    w_.Key(key);
    w_.Bool(value);
  }
  template <class Ids>
  void IdList(std::string_view key, const Ids& ids) {
    List(key, ids, [&](int id) { w_.Int(id); });
  }
  template <class Numbers>
  void NumbersById(std::string_view key, const Numbers& numbers) {
    Map(key, [&] {
      for (const auto& [id, number] : numbers) Int(std::to_string(id), number);
    });
  }
  DocumentWriter& writer() { return w_; }

 private:
  DocumentWriter& w_;
};

void WriteManager(Fields& f, const char* key, const std::string& policy, const std::string& scope,
                  const StringMap& options, const std::optional<base::CpuSet>& reserved) {
  if (policy.empty() && scope.empty() && options.empty() && !reserved) return;
  f.Map(key, [&] {
    f.Known("policy", policy);
    f.Known("scope", scope);
    f.Strings("options", options);
    if (reserved) f.String("reservedCPUs", reserved->ToString());
  });
}

void WriteKubelet(Fields& f, const KubeletFacts& kubelet) {
  f.Known("version", kubelet.version);
  if (kubelet.started_at) f.String("startedAt", base::FormatTime(*kubelet.started_at));
  f.String("configSource", kubelet.config_source);
  f.Strings("featureGates", kubelet.feature_gates);
  WriteManager(f, "topologyManager", kubelet.topology_policy, kubelet.topology_scope,
               kubelet.topology_options, std::nullopt);
  WriteManager(f, "cpuManager", kubelet.cpu_policy, "", kubelet.cpu_options, kubelet.reserved_cpus);
  if (kubelet.memory_policy.empty() && kubelet.reserved_memory.empty()) return;
  f.Map("memoryManager", [&] {
    f.Known("policy", kubelet.memory_policy);
    f.List("reserved", kubelet.reserved_memory, [&](const KubeletFacts::ReservedMemory& reserved) {
      f.Map([&] {
        f.Int("numaNode", reserved.numa_node);
        f.String("type", reserved.type);
        f.String("size", base::FormatBytes(reserved.bytes));
      });
    });
  });
}

void WriteCoreGroup(Fields& f, const CoreGroup& group) {
  std::string cores;
  for (const base::CpuSet& core : group.cores) {
    if (!cores.empty()) cores += ' ';
    cores += core.ToString();
  }
  f.Map([&] {
    f.Int("socket", group.socket);
    f.Int("l3", group.l3);
    f.String("cores", cores);
  });
}

void WriteNodeMemory(Fields& f, const NodeMemory& memory) {
  f.Map([&] {
    f.String("type", memory.type);
    f.String("capacity", base::FormatBytes(memory.capacity));
    f.String("systemReserved", base::FormatBytes(memory.system_reserved));
    f.String("allocatable", base::FormatBytes(memory.allocatable));
    if (memory.free) f.String("free", base::FormatBytes(*memory.free));
  });
}

void WriteNumaNode(Fields& f, const NumaNodePlacement& node) {
  f.Map([&] {
    f.Int("id", node.id);
    f.String("cpus", node.cpus.ToString());
    f.List("coreGroups", node.core_groups, [&](const CoreGroup& g) { WriteCoreGroup(f, g); });
    if (node.free_cpus) f.String("freeCPUs", node.free_cpus->ToString());
    f.List("memory", node.memory, [&](const NodeMemory& m) { WriteNodeMemory(f, m); });
    if (node.memory_group) f.IdList("memoryGroup", *node.memory_group);
    if (node.memory_assignments) f.Int("memoryAssignments", *node.memory_assignments);
    f.NumbersById("distances", node.distances);
  });
}

void WriteDevice(Fields& f, const PlacedDevice& device) {
  f.Map([&] {
    f.String("resource", device.resource);
    f.String("id", device.id);
    f.IdList("numaNodes", device.numa_nodes);
    if (device.unknown_node) f.Bool("unknownNode", true);
    f.Bool("healthy", device.healthy);
    f.Known("pciAddress", device.pci_address);
    if (device.pci_numa_node) f.Int("pciNumaNode", *device.pci_numa_node);
  });
}

void WriteKernel(Fields& f, const KernelFacts& kernel) {
  f.Map("kernel", [&] {
    if (kernel.cpus) f.String("cpus", kernel.cpus->ToString());
    if (kernel.memory_nodes) f.String("memoryNodes", kernel.memory_nodes->ToString());
    if (!kernel.resident_bytes.empty()) f.NumbersById("residentBytes", kernel.resident_bytes);
  });
}

void WriteMemory(Fields& f, const PlacedMemory& memory) {
  f.Map([&] {
    f.String("type", memory.type);
    f.String("size", base::FormatBytes(memory.bytes));
    f.IdList("numaNodes", memory.numa_nodes);
  });
}

void WriteHeld(Fields& f, const HeldDevices& held) {
  f.Map([&] {
    f.String("resource", held.resource);
    f.List("ids", held.ids, [&](const std::string& id) { f.writer().String(id); });
  });
}

void WriteContainer(Fields& f, const PlacedContainer& container) {
  f.Map([&] {
    f.String("name", container.name);
    f.Known("cpus", container.cpus.ToString());
    if (!container.memory.empty()) {
      f.List("memory", container.memory,
             [&](const PlacedMemory& memory) { WriteMemory(f, memory); });
    }
    if (!container.devices.empty()) {
      f.List("devices", container.devices, [&](const HeldDevices& held) { WriteHeld(f, held); });
    }
    if (container.kernel) WriteKernel(f, *container.kernel);
  });
}

void WritePod(Fields& f, const PlacedPod& pod) {
  f.Map([&] {
    f.String("namespace", pod.namespace_name);
    f.String("name", pod.name);
    f.Known("uid", pod.uid);
    f.Known("kubeletUID", pod.kubelet_uid);
    f.IdList("numaNodes", pod.numa_nodes);
    f.String("alignment", ToString(pod.alignment));
    f.Known("reason", pod.reason);
    f.Known("message", pod.message);
    f.List("containers", pod.containers, [&](const PlacedContainer& c) { WriteContainer(f, c); });
  });
}

void WriteSummary(Fields& f, const Summary& summary) {
  f.Map("summary", [&] {
    f.Int("pods", summary.pods);
    f.Int("aligned", summary.aligned);
    f.Int("spread", summary.spread);
    f.Int("misaligned", summary.misaligned);
    f.Int("unpinned", summary.unpinned);
    f.Int("drifted", summary.drifted);
    f.Int("unknown", summary.unknown);
    f.Known("free", summary.free);
  });
}

void WriteStatus(Fields& f, const NodePlacement& placement) {
  f.Int("revision", placement.revision);
  if (placement.observed_at) f.String("observedAt", base::FormatTime(*placement.observed_at));
  f.Known("bootID", placement.boot_id);
  f.Known("agentVersion", placement.agent_version);
  f.Map("kubelet", [&] { WriteKubelet(f, placement.kubelet); });
  f.List("numaNodes", placement.numa_nodes,
         [&](const NumaNodePlacement& node) { WriteNumaNode(f, node); });
  f.List("devices", placement.devices, [&](const PlacedDevice& d) { WriteDevice(f, d); });
  f.List("knownPods", placement.known_pods, [&](const std::string& u) { f.writer().String(u); });
  f.List("pods", placement.pods, [&](const PlacedPod& pod) { WritePod(f, pod); });
  WriteSummary(f, placement.summary);
  f.List("conditions", placement.conditions, [&](const Condition& condition) {
    f.Map([&] {
      f.String("type", condition.type);
      f.String("status", condition.status);
      f.Known("reason", condition.reason);
      f.Known("message", condition.message);
    });
  });
}

void WriteOwner(Fields& f, const std::string& node_name, const std::string& node_uid) {
  if (node_uid.empty()) return;
  f.List("ownerReferences", std::array{node_uid}, [&](const std::string& uid) {
    f.Map([&] {
      f.String("apiVersion", "v1");
      f.String("kind", "Node");
      f.String("name", node_name);
      f.String("uid", uid);
    });
  });
}

// What kind of object it is, and its metadata.
void BeginPlacement(Fields& f, const NodePlacement& placement, const std::string& node_uid) {
  f.String("apiVersion", "plumbline.dev/v1alpha1");
  f.String("kind", "NodePlacement");
  f.Map("metadata", [&] {
    f.String("name", placement.node_name);
    WriteOwner(f, placement.node_name, node_uid);
  });
}

void Write(DocumentWriter& writer, const NodePlacement& placement) {
  Fields f(writer);
  f.Map([&] {
    BeginPlacement(f, placement, "");
    f.Map("status", [&] { WriteStatus(f, placement); });
  });
}

void WriteAttributes(Fields& f, const std::vector<NrtAttribute>& attributes) {
  if (attributes.empty()) return;
  f.List("attributes", attributes, [&](const NrtAttribute& attribute) {
    f.Map([&] {
      f.String("name", attribute.name);
      f.String("value", attribute.value);
    });
  });
}

void WriteCost(Fields& f, const NrtCost& cost) {
  f.Map([&] {
    f.String("name", cost.name);
    f.Int("value", cost.value);
  });
}

void WriteZone(Fields& f, const NrtZone& zone) {
  f.Map([&] {
    f.String("name", zone.name);
    f.String("type", zone.type);
    if (!zone.costs.empty()) {
      f.List("costs", zone.costs, [&](const NrtCost& cost) { WriteCost(f, cost); });
    }
    WriteAttributes(f, zone.attributes);
    if (zone.resources.empty()) return;
    f.List("resources", zone.resources, [&](const NrtResource& resource) {
      f.Map([&] {
        f.String("name", resource.name);
        f.Known("capacity", resource.capacity);
        f.Known("allocatable", resource.allocatable);
        f.Known("available", resource.available);
      });
    });
  });
}

void Write(DocumentWriter& writer, const NodeResourceTopology& nrt,
           const std::string& node_uid = "") {
  Fields f(writer);
  f.Map([&] {
    f.String("apiVersion", "topology.node.k8s.io/v1alpha2");
    f.String("kind", "NodeResourceTopology");
    f.Map("metadata", [&] {
      f.String("name", nrt.name);
      WriteOwner(f, nrt.name, node_uid);
      if (nrt.annotations.empty()) return;
      f.Map("annotations", [&] {
        for (const NrtAttribute& note : nrt.annotations) f.String(note.name, note.value);
      });
    });
    if (!nrt.topology_policies.empty()) {
      f.List("topologyPolicies", nrt.topology_policies,
             [&](const std::string& policy) { writer.String(policy); });
    }
    WriteAttributes(f, nrt.attributes);
    f.List("zones", nrt.zones, [&](const NrtZone& zone) { WriteZone(f, zone); });
  });
}

void Write(DocumentWriter& writer, const Observation& observation) {
  Fields f(writer);
  f.Map([&] {
    f.String("apiVersion", "v1");
    f.String("kind", "List");
    writer.Key("items");
    writer.BeginList();
    if (observation.nrt) Write(writer, *observation.nrt);
    Write(writer, observation.placement);
    writer.EndList();
  });
}

template <class Object>
std::string AsJson(const Object& object, JsonStyle style) {
  const auto writer = NewJsonWriter(style == JsonStyle::kIndented);
  Write(*writer, object);
  return writer->text() + "\n";
}

template <class Object>
std::string AsYaml(const Object& object) {
  YamlWriter writer;
  Write(writer, object);
  return writer.text();
}

}  // namespace

std::string ToJson(const NodePlacement& placement, JsonStyle style) {
  return AsJson(placement, style);
}
std::string ToJson(const NodeResourceTopology& nrt, JsonStyle style) { return AsJson(nrt, style); }
std::string ToJson(const Observation& observation, JsonStyle style) {
  return AsJson(observation, style);
}

std::string ToOwnedJson(const NodeResourceTopology& nrt, const std::string& node_uid) {
  const auto writer = NewJsonWriter(/*indented=*/false);
  Write(*writer, nrt, node_uid);
  return writer->text();
}
std::string ToOwnedJson(const NodePlacement& placement, const std::string& node_uid) {
  const auto writer = NewJsonWriter(/*indented=*/false);
  Fields f(*writer);
  f.Map([&] { BeginPlacement(f, placement, node_uid); });
  return writer->text();
}

std::string ToYaml(const NodePlacement& placement) { return AsYaml(placement); }
std::string ToYaml(const NodeResourceTopology& nrt) { return AsYaml(nrt); }
std::string ToYaml(const Observation& observation) {
  if (!observation.nrt) return ToYaml(observation.placement);
  return fmt::format("{}---\n{}", ToYaml(*observation.nrt), ToYaml(observation.placement));
}

}  // namespace placement
