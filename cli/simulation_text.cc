#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/text_layout.h"
#include "cli/simulation_report.h"

namespace cli {
namespace {

using base::Style;

std::string Options(const std::map<std::string, std::string>& options) {
  std::string text;
  for (const auto& [name, value] : options) {
    text +=
        fmt::format("{}{}{}", text.empty() ? " (" : ", ", name, value == "true" ? "" : "=" + value);
  }
  return text.empty() ? "" : text + ")";
}

std::string NodesText(const base::NumaMask& nodes) {
  if (nodes.empty()) return "no NUMA node";
  return fmt::format("NUMA node{} {}", nodes.size() == 1 ? "" : "s", nodes.ToString());
}

std::string MemoryWord(const std::string& type) { return type == "memory" ? "" : " " + type; }

// "gpu" of "nvidia.com/gpu": the whole name is in the node's lines.
std::string Short(const std::string& resource) { return resource.substr(resource.rfind('/') + 1); }

class TextReport {
 public:
  TextReport(const Simulation& simulation, const Look& look)
      : simulation_(simulation),
        glyphs_(look.ascii ? base::AsciiGlyphs() : base::UnicodeGlyphs()),
        canvas_(look.width, look.color, glyphs_) {
    int longest = 0;
    for (const Share& share : simulation.total) {
      longest = std::max(longest, base::Width(NodesText(share.nodes)));
    }
    for (const SimulatedPod& pod : simulation.pods) {
      for (const SimulatedContainer& container : pod.containers) {
        longest = std::max(longest, base::Width(Clean(container.name)));
      }
    }
    column_ = kIndent + std::min(longest, look.width / 3) + 2;
  }

  std::string Draw() && {
    Head();
    for (const SimulatedPod& pod : simulation_.pods) Pod(pod);
    canvas_.Blank();
    Free();
    canvas_.Blank();
    Sum();
    return canvas_.text();
  }

 private:
  void Wrapped(const std::string& text, int indent, Style style) {
    for (const std::string& line : base::Wrap(Clean(text), canvas_.width() - indent)) {
      canvas_.Text({{std::string(static_cast<std::size_t>(indent), ' ') + line, style}});
    }
  }

  // A word, and beside it parts that wrap below themselves.
  void Row(const std::string& word, const std::vector<std::string>& parts,
           Style style = Style::kPlain) {
    const std::string head =
        std::string(kIndent, ' ') + base::Truncate(Clean(word), column_ - kIndent - 2, glyphs_);
    bool first = true;
    for (const std::string& line : base::JoinWrapped(parts, canvas_.width() - column_, glyphs_)) {
      canvas_.Text({{base::Pad(first ? head : "", column_), style}, {line, style}});
      first = false;
    }
  }

  std::string Clean(const std::string& text) const { return base::Clean(text, glyphs_); }

  std::string CpusText(const base::CpuSet& cpus) const {
    return fmt::format("{} {}", base::Count(cpus.size(), "CPU"),
                       base::ShortList(cpus, canvas_.width() / 3, glyphs_));
  }

  void Head() {
    const placement::KubeletFacts& kubelet = simulation_.kubelet;
    if (!simulation_.node_name.empty()) {
      canvas_.Text({{Clean(simulation_.node_name), Style::kBold}});
    }
    std::vector<std::string> parts;
    const auto setting = [](const std::string& value) { return value.empty() ? "unknown" : value; };
    parts.push_back(fmt::format("topology {}{}", setting(kubelet.topology_policy),
                                Options(kubelet.topology_options)));
    parts.push_back(fmt::format("scope {}", setting(kubelet.topology_scope)));
    parts.push_back(
        fmt::format("CPUs {}{}", setting(kubelet.cpu_policy), Options(kubelet.cpu_options)));
    if (kubelet.reserved_cpus && !kubelet.reserved_cpus->empty()) {
      parts.push_back(fmt::format("reserved {}", kubelet.reserved_cpus->ToString()));
    }
    parts.push_back(fmt::format("memory {}", setting(kubelet.memory_policy)));
    parts.push_back(fmt::format("kubelet {}", setting(kubelet.version)));
    for (std::string& part : parts) part = Clean(part);
    for (const std::string& line : base::JoinWrapped(parts, canvas_.width(), glyphs_)) {
      canvas_.Text({{line, Style::kPlain}});
    }
    for (const std::string& note : simulation_.notes) Wrapped(note, 0, Style::kNote);
  }

  void Pod(const SimulatedPod& pod) {
    canvas_.Blank();
    const std::string name =
        pod.namespace_name.empty() ? pod.name : pod.namespace_name + "/" + pod.name;
    const base::Span title{Clean(name) + "  ", Style::kBold};
    switch (pod.verdict) {
      case SimulatedPod::Verdict::kAdmitted: {
        const base::NumaMask nodes = pod.nodes();
        const std::string place = pod.held.empty() ? "" : glyphs_.dot + NodesText(nodes);
        canvas_.Text({title, {"admitted", Style::kGood}, {place, Style::kPlain}});
        for (const SimulatedContainer& container : pod.containers) Container(container);
        if (pod.held.size() > 1) Spread(pod);
        break;
      }
      case SimulatedPod::Verdict::kRefused:
        canvas_.Text(
            {title, {"refused", Style::kBad}, {glyphs_.dot + Clean(pod.reason), Style::kBad}});
        break;
      case SimulatedPod::Verdict::kUnknown:
        canvas_.Text({title, {"not known", Style::kNote}});
        break;
      case SimulatedPod::Verdict::kAlreadyThere:
        canvas_.Text({title, {"already there", Style::kNote}});
        break;
    }
    if (!pod.why.empty()) Wrapped(pod.why, 2, Style::kDim);
  }

  void Container(const SimulatedContainer& container) {
    std::vector<std::string> parts;
    if (!container.cpus.empty()) {
      parts.push_back(
          fmt::format("{} on {}", CpusText(container.cpus), container.cpu_nodes.ToString()));
    }
    for (const placement::PlacedMemory& block : container.memory) {
      if (block.bytes == 0) continue;  // an init container's, of which a later one took over all
      parts.push_back(Clean(fmt::format("{}{} on {}", base::HumanBytes(block.bytes),
                                        MemoryWord(block.type), block.numa_nodes.ToString())));
    }
    for (const SimulatedDevices& devices : container.devices) {
      const std::string nodes = devices.nodes.empty() ? "no NUMA node" : devices.nodes.ToString();
      parts.push_back(
          Clean(fmt::format("{} {} on {}", devices.ids.size(), Short(devices.resource), nodes)));
    }
    if (parts.empty()) parts.push_back("nothing of its own");
    Row(container.name, parts);
  }

  // What is where, of a pod on several NUMA nodes.
  void Spread(const SimulatedPod& pod) {
    for (const Share& share : pod.held) {
      std::vector<std::string> parts;
      if (!share.cpus.empty()) parts.push_back(CpusText(share.cpus));
      for (const auto& [type, bytes] : share.memory) {
        parts.push_back(Clean(base::HumanBytes(bytes) + MemoryWord(type)));
      }
      for (const auto& [resource, count] : share.devices) {
        parts.push_back(Clean(fmt::format("{} {}", count, Short(resource))));
      }
      Row(NodesText(share.nodes), parts, Style::kDim);
    }
  }

  void Free() {
    canvas_.Text({{"Free after that", Style::kTitle}});
    for (std::size_t i = 0; i < simulation_.total.size(); ++i) {
      const Share& total = simulation_.total[i];
      const Share& free = simulation_.free[i];
      std::vector<std::string> parts;
      if (!total.cpus.empty()) {
        std::string cpus =
            fmt::format("{} of {}", free.cpus.size(), base::Count(total.cpus.size(), "CPU"));
        if (!free.cpus.empty())
          cpus += " " + base::ShortList(free.cpus, canvas_.width() / 3, glyphs_);
        parts.push_back(cpus);
      }
      for (const auto& [type, bytes] : total.memory) {
        if (bytes == 0) continue;
        const auto left = free.memory.find(type);
        parts.push_back(Clean(fmt::format(
            "{} of {}{}", base::HumanBytes(left == free.memory.end() ? 0 : left->second),
            base::HumanBytes(bytes), MemoryWord(type))));
      }
      for (const auto& [resource, count] : total.devices) {
        const auto left = free.devices.find(resource);
        parts.push_back(Clean(fmt::format(
            "{} of {} {}", left == free.devices.end() ? 0 : left->second, count, resource)));
      }
      if (parts.empty()) parts.push_back("nothing that is given out exclusively");
      Row(NodesText(total.nodes), parts);
    }
  }

  void Sum() {
    const int admitted = simulation_.Count(SimulatedPod::Verdict::kAdmitted);
    const int refused = simulation_.Count(SimulatedPod::Verdict::kRefused);
    const int there = simulation_.Count(SimulatedPod::Verdict::kAlreadyThere);
    base::Line line = {
        {fmt::format("{}: {} admitted, ", base::Count(std::ssize(simulation_.pods), "pod"),
                     admitted),
         Style::kPlain},
        {fmt::format("{} refused", refused), refused > 0 ? Style::kBad : Style::kPlain}};
    if (there > 0) line.push_back({fmt::format(", {} already there", there), Style::kPlain});
    const int unknown = simulation_.Count(SimulatedPod::Verdict::kUnknown);
    if (unknown > 0) line.push_back({fmt::format(", {} not known", unknown), Style::kNote});
    canvas_.Text(line);
  }

  static constexpr int kIndent = 2;

  const Simulation& simulation_;
  const base::Glyphs& glyphs_;
  base::Canvas canvas_;
  int column_ = 0;  // where the rows' parts begin
};

}  // namespace

std::string ToText(const Simulation& simulation, const Look& look) {
  return TextReport(simulation, look).Draw();
}

}  // namespace cli
