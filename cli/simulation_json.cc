#include <memory>
#include <string>

#include "base/quantity.h"
#include "cli/simulation_report.h"
#include "placement/json_writer.h"

namespace cli {
namespace {

const char* ToString(SimulatedPod::Verdict verdict) {
  switch (verdict) {
    case SimulatedPod::Verdict::kAdmitted:
      return "Admitted";
    case SimulatedPod::Verdict::kRefused:
      return "Refused";
    case SimulatedPod::Verdict::kAlreadyThere:
      return "AlreadyThere";
    case SimulatedPod::Verdict::kUnknown:
      return "Unknown";
  }
  return "";
}

class JsonReport {
 public:
  std::string Write(const Simulation& simulation) && {
    out_.BeginMap();
    Node(simulation);
    List("notes", simulation.notes, [&](const std::string& note) { out_.String(note); });
    List("pods", simulation.pods, [&](const SimulatedPod& pod) { Pod(pod); });
    List("total", simulation.total, [&](const Share& share) { Part(share); });
    List("free", simulation.free, [&](const Share& share) { Part(share); });
    out_.Key("summary");
    out_.BeginMap();
    Number("pods", std::ssize(simulation.pods));
    Number("admitted", simulation.Count(SimulatedPod::Verdict::kAdmitted));
    Number("refused", simulation.Count(SimulatedPod::Verdict::kRefused));
    Number("unknown", simulation.Count(SimulatedPod::Verdict::kUnknown));
    Number("alreadyThere", simulation.Count(SimulatedPod::Verdict::kAlreadyThere));
    out_.EndMap();
    out_.EndMap();
    return writer_->text() + "\n";
  }

 private:
  template <class Values, class Write>
  void List(const char* key, const Values& values, Write write) {
    out_.Key(key);
    out_.BeginList();
    for (const auto& value : values) write(value);
    out_.EndList();
  }
  void Text(const char* key, const std::string& text) {
    out_.Key(key);
    out_.String(text);
  }
  void Number(const char* key, std::int64_t number) {
    out_.Key(key);
    out_.Int(number);
  }
  void Flag(const char* key, bool flag) {
    out_.Key(key);
    out_.Bool(flag);
  }
  void Nodes(const char* key, const base::NumaMask& nodes) {
    List(key, nodes, [&](int id) { out_.Int(id); });
  }
  void Map(const char* key, const std::map<std::string, std::string>& map) {
    out_.Key(key);
    out_.BeginMap();
    for (const auto& [name, value] : map) Text(name.c_str(), value);
    out_.EndMap();
  }

  void Node(const Simulation& simulation) {
    const placement::KubeletFacts& kubelet = simulation.kubelet;
    out_.Key("node");
    out_.BeginMap();
    Text("name", simulation.node_name);
    Text("kubeletVersion", kubelet.version);
    Text("policy", kubelet.topology_policy);
    Text("scope", kubelet.topology_scope);
    Map("options", kubelet.topology_options);
    Text("cpuPolicy", kubelet.cpu_policy);
    Map("cpuOptions", kubelet.cpu_options);
    if (kubelet.reserved_cpus) Text("reservedCPUs", kubelet.reserved_cpus->ToString());
    Text("memoryPolicy", kubelet.memory_policy);
    out_.EndMap();
  }

  void Pod(const SimulatedPod& pod) {
    out_.BeginMap();
    Text("namespace", pod.namespace_name);
    Text("name", pod.name);
    Text("verdict", ToString(pod.verdict));
    Text("reason", pod.reason);
    Text("why", pod.why);
    Nodes("numaNodes", pod.nodes());
    List("containers", pod.containers, [&](const SimulatedContainer& own) { Container(own); });
    List("held", pod.held, [&](const Share& share) { Part(share); });
    Flag("devicesMayDiffer", pod.devices_may_differ);
    out_.EndMap();
  }

  void Container(const SimulatedContainer& container) {
    out_.BeginMap();
    Text("name", container.name);
    if (container.affinity) Nodes("affinity", *container.affinity);
    Flag("preferred", container.preferred);
    Text("cpus", container.cpus.ToString());
    Nodes("cpuNUMANodes", container.cpu_nodes);
    List("memory", container.memory, [&](const placement::PlacedMemory& block) {
      out_.BeginMap();
      Text("type", block.type);
      Text("size", base::FormatBytes(block.bytes));
      Nodes("numaNodes", block.numa_nodes);
      out_.EndMap();
    });
    List("devices", container.devices, [&](const SimulatedDevices& devices) {
      out_.BeginMap();
      Text("resource", devices.resource);
      List("ids", devices.ids, [&](const std::string& id) { out_.String(id); });
      Nodes("numaNodes", devices.nodes);
      out_.EndMap();
    });
    out_.EndMap();
  }

  void Part(const Share& share) {
    out_.BeginMap();
    Nodes("numaNodes", share.nodes);
    Text("cpus", share.cpus.ToString());
    List("memory", share.memory, [&](const auto& entry) {
      out_.BeginMap();
      Text("type", entry.first);
      Text("size", base::FormatBytes(entry.second));
      out_.EndMap();
    });
    List("devices", share.devices, [&](const auto& entry) {
      out_.BeginMap();
      Text("resource", entry.first);
      Number("count", entry.second);
      out_.EndMap();
    });
    out_.EndMap();
  }

  std::unique_ptr<placement::JsonWriter> writer_ = placement::NewJsonWriter(true);
  placement::JsonWriter& out_ = *writer_;
};

}  // namespace

std::string ToJson(const Simulation& simulation) { return JsonReport().Write(simulation); }

}  // namespace cli
