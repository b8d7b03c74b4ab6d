#include "agent/picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "agent/picture_model.h"
#include "agent/picture_node.h"
#include "base/text_layout.h"
#include "placement/amounts.h"

namespace agent {
namespace {

constexpr std::size_t kManyNodes = 8;   // above it, nodes without pods and GPUs get one line each
constexpr std::size_t kPodsNamed = 16;  // in the list of pods to look at
constexpr std::size_t kSubjectsNamed = 4;  // of diagnostics that are alike

void WrappedText(Canvas& canvas, const Span& first, const std::string& text, int indent) {
  const int room = canvas.width() - indent;
  Line line = {first};
  for (const std::string& piece :
       Wrap(text, room - (Width(first.text) > indent ? Width(first.text) - indent : 0))) {
    if (line.size() == 1 && Width(line[0].text) < indent) {
      line[0].text = Pad(line[0].text, indent);
    }
    line.push_back({piece});
    canvas.Text(line);
    line = {{std::string(static_cast<std::size_t>(indent), ' ')}};
  }
}

std::string OrUnknown(const std::string& value, const Glyphs& glyphs) {
  return value.empty() ? "?" : Clean(value, glyphs);
}

int CountKind(const hwinfo::Topology& topology, hwinfo::DeviceKind kind) {
  return static_cast<int>(std::ranges::count(topology.devices, kind, &hwinfo::PciDevice::kind));
}

std::vector<std::string> HardwareParts(const hwinfo::Topology& topology, const Glyphs& glyphs) {
  std::set<std::pair<int, int>> cores;
  for (const hwinfo::Cpu& cpu : topology.cpus) {
    cores.insert({cpu.socket, cpu.siblings.empty() ? -1 - cpu.id : cpu.siblings.First()});
  }
  std::int64_t bytes = 0;
  for (const hwinfo::NumaNode& node : topology.numa_nodes) {
    bytes = placement::SaturatingAdd(bytes, node.memory_bytes.value_or(0));
  }
  std::vector<std::string> parts;
  if (!topology.architecture.empty()) parts.push_back(Clean(topology.architecture, glyphs));
  parts.push_back(Count(static_cast<int>(topology.sockets.size()), "socket"));
  parts.push_back(Count(static_cast<int>(topology.numa_nodes.size()), "NUMA node"));
  parts.push_back(fmt::format("{}, {}", Count(static_cast<int>(cores.size()), "core"),
                              Count(static_cast<int>(topology.cpus.size()), "CPU")));
  if (bytes > 0) parts.push_back(HumanBytes(bytes));
  const std::pair<hwinfo::DeviceKind, const char*> kinds[] = {
      {hwinfo::DeviceKind::kGpu, "GPU"},
      {hwinfo::DeviceKind::kAccelerator, "accelerator"},
      {hwinfo::DeviceKind::kNic, "NIC"}};
  for (const auto& [kind, noun] : kinds) {
    if (const int count = CountKind(topology, kind); count > 0) parts.push_back(Count(count, noun));
  }
  return parts;
}

std::vector<std::string> KubeletParts(const placement::KubeletFacts& kubelet,
                                      const Glyphs& glyphs) {
  if (kubelet.version.empty() && kubelet.topology_policy.empty() && kubelet.cpu_policy.empty() &&
      kubelet.memory_policy.empty()) {
    return {};
  }
  std::vector<std::string> parts = {
      "kubelet " + OrUnknown(kubelet.version, glyphs),
      fmt::format("topology {}, scope {}", OrUnknown(kubelet.topology_policy, glyphs),
                  OrUnknown(kubelet.topology_scope, glyphs)),
      "CPUs " + OrUnknown(kubelet.cpu_policy, glyphs),
      "memory " + OrUnknown(kubelet.memory_policy, glyphs)};
  if (kubelet.reserved_cpus && !kubelet.reserved_cpus->empty()) {
    parts.push_back("reserved CPUs " + ShortList(*kubelet.reserved_cpus, 24, glyphs));
  }
  return parts;
}

std::vector<std::string> PodParts(const placement::NodePlacement& placement) {
  const placement::Summary& summary = placement.summary;
  if (summary.pods == 0 && placement.pods.empty()) return {};
  const std::pair<int, placement::Alignment> counts[] = {
      {summary.aligned, placement::Alignment::kAligned},
      {summary.spread, placement::Alignment::kSpread},
      {summary.misaligned, placement::Alignment::kMisaligned},
      {summary.unpinned, placement::Alignment::kUnpinned},
      {summary.drifted, placement::Alignment::kDrifted},
      {summary.unknown, placement::Alignment::kUnknown}};
  std::vector<std::string> parts = {Count(summary.pods, "pod")};
  for (const auto& [count, alignment] : counts) {
    if (count > 0) parts.push_back(fmt::format("{} {}", count, AlignmentWord(alignment).text));
  }
  return parts;
}

void DrawParts(Canvas& canvas, const std::vector<std::string>& parts) {
  if (parts.empty()) return;
  for (const std::string& line : JoinWrapped(parts, canvas.width(), canvas.glyphs())) {
    canvas.Text({{line}});
  }
}

void DrawHeader(Canvas& canvas, const hwinfo::Topology& topology,
                const placement::NodePlacement& placement, const PictureOptions& options) {
  const Glyphs& glyphs = canvas.glyphs();
  Line title = {{Clean(placement.node_name, glyphs), Style::kTitle}};
  if (topology.source != "live" && !topology.source.empty()) {
    title.push_back({glyphs.dot + Clean(topology.source, glyphs), Style::kDim});
  }
  canvas.Text(title);
  DrawParts(canvas, HardwareParts(topology, glyphs));
  std::vector<std::string> oddities;
  if (!topology.numa_visible) {
    oddities.push_back("the kernel shows no NUMA nodes: node 0 stands for the whole host");
  }
  if (!topology.offline_cpus.empty()) {
    oddities.push_back("offline CPUs " + ShortList(topology.offline_cpus, 40, glyphs));
  }
  if (!topology.isolated_cpus.empty()) {
    oddities.push_back("isolated CPUs " + ShortList(topology.isolated_cpus, 40, glyphs));
  }
  DrawParts(canvas, oddities);
  DrawParts(canvas, KubeletParts(placement.kubelet, glyphs));
  DrawParts(canvas, PodParts(placement));
  for (const std::string& note : options.notes) {
    for (const std::string& line : Wrap(Clean(note, glyphs), canvas.width())) {
      canvas.Text({{line, Style::kNote}});
    }
  }
}

bool IsQuiet(const NodeView& node) {
  return node.pods.empty() && std::ranges::none_of(node.devices, [](const DeviceView* view) {
           return view->device->kind == hwinfo::DeviceKind::kGpu ||
                  view->device->kind == hwinfo::DeviceKind::kAccelerator || view->ids_held > 0;
         });
}

void DrawNodes(const Drawing& drawing, const PictureModel& model) {
  const bool many = model.nodes.size() > kManyNodes;
  std::vector<const NodeView*> quiet;
  for (const NodeView& node : model.nodes) {
    const bool empty = node.hardware->kind == hwinfo::NumaNodeKind::kEmpty;
    if ((many || empty) && IsQuiet(node)) {
      quiet.push_back(&node);
    } else {
      DrawNode(drawing, node);
    }
  }
  DrawQuietNodes(drawing, quiet);
  DrawNowhere(drawing, model.nowhere);
}

// The worst first, as the enumeration does not order them.
int Severity(placement::Alignment alignment) {
  switch (alignment) {
    case placement::Alignment::kDrifted:
      return 0;
    case placement::Alignment::kMisaligned:
      return 1;
    case placement::Alignment::kUnpinned:
      return 2;
    case placement::Alignment::kUnknown:
      return 3;
    case placement::Alignment::kSpread:
      return 4;
    case placement::Alignment::kAligned:
      return 5;
  }
  return 5;
}

void DrawFindings(Canvas& canvas, const placement::NodePlacement& placement) {
  std::vector<const placement::PlacedPod*> pods;
  for (const placement::PlacedPod& pod : placement.pods) {
    if (pod.alignment != placement::Alignment::kAligned) pods.push_back(&pod);
  }
  if (pods.empty()) return;
  std::ranges::stable_sort(
      pods, {}, [](const placement::PlacedPod* pod) { return Severity(pod->alignment); });
  canvas.Blank();
  canvas.Text({{"Pods to look at", Style::kBold}});
  const Glyphs& glyphs = canvas.glyphs();
  for (std::size_t i = 0; i < std::min(pods.size(), kPodsNamed); ++i) {
    const placement::PlacedPod& pod = *pods[i];
    Span word = AlignmentWord(pod.alignment);
    word.text = "  " + Pad(word.text, 12);
    WrappedText(canvas, word,
                Clean(fmt::format("{}/{}: {}", pod.namespace_name, pod.name, pod.message), glyphs),
                Width(word.text));
  }
  if (pods.size() > kPodsNamed) {
    canvas.Text(
        {{fmt::format("  and {}", Count(static_cast<int>(pods.size() - kPodsNamed), "more pod")),
          Style::kDim}});
  }
}

// Findings of one kind: the first in its own words, the others by name, the rest by number.
struct Unknown {
  std::string message;
  std::vector<std::string> subjects;
};

void DrawUnknown(Canvas& canvas, const std::string& code, const Unknown& unknown) {
  const Glyphs& glyphs = canvas.glyphs();
  Line heading = {{"  " + Clean(code, glyphs), Style::kNote}};
  const std::size_t count = unknown.subjects.size();
  if (count > 1) heading.push_back({fmt::format(" {}{}", glyphs.times, count), Style::kDim});
  canvas.Text(heading);
  const std::string& subject = unknown.subjects.front();
  const bool named = subject.empty() || unknown.message.find(subject) != std::string::npos;
  WrappedText(canvas, {""},
              Clean(named ? unknown.message : subject + ": " + unknown.message, glyphs), 4);
  if (count < 2) return;
  std::string others = "also ";
  for (std::size_t i = 1; i < std::min(count, kSubjectsNamed + 1); ++i) {
    others += (i > 1 ? ", " : "") + Clean(unknown.subjects[i], glyphs);
  }
  if (count > kSubjectsNamed + 1) others += fmt::format(" and {} more", count - kSubjectsNamed - 1);
  for (const std::string& line : Wrap(others, canvas.width() - 4)) {
    canvas.Text({{"    " + line, Style::kDim}});
  }
}

// Reasons of conditions that sum up findings: where one of those is shown, they say nothing new. A
// code that ends in "*" is the beginning of several.
constexpr std::pair<std::string_view, std::string_view> kSummedUp[] = {
    {"Settling", "DevicePluginNotRegistered"},
    {"PartlyCompared", "KernelFactsMissing"},
    {"FilesMissing", "KubeletFile*"},
    {"SourcesDisagree", "CpusUnusable"},
    {"SourcesDisagree", "DeviceClaimsUnknownNumaNode"},
    {"SourcesDisagree", "DeviceLocalityDisagrees"},
    {"SourcesDisagree", "PolicyDiffersFromState"},
};

bool IsCode(std::string_view code, std::string_view pattern) {
  if (!pattern.ends_with('*')) return code == pattern;
  return code.starts_with(pattern.substr(0, pattern.size() - 1));
}

bool SumsUpWhatIsShown(const placement::Condition& condition,
                       const std::map<std::string, Unknown>& shown) {
  return std::ranges::any_of(kSummedUp, [&](const auto& entry) {
    return entry.first == condition.reason && std::ranges::any_of(shown, [&](const auto& group) {
             return IsCode(group.first, entry.second);
           });
  });
}

void DrawUnknowns(Canvas& canvas, const base::Diagnostics& diagnostics,
                  const std::vector<placement::Condition>& conditions) {
  std::map<std::string, Unknown> groups;
  std::set<std::string> said;
  for (const base::Diagnostic& diagnostic : diagnostics) {
    Unknown& group = groups[diagnostic.code];
    if (group.message.empty()) group.message = diagnostic.message;
    group.subjects.push_back(diagnostic.subject);
    said.insert(diagnostic.message);
  }
  const std::map<std::string, Unknown> shown = groups;
  for (const placement::Condition& condition : conditions) {
    const bool news = condition.status != "True" && !condition.message.empty();
    if (!news || said.contains(condition.message)) continue;
    if (SumsUpWhatIsShown(condition, shown)) continue;
    Unknown& group = groups[condition.reason.empty() ? condition.type : condition.reason];
    if (group.message.empty()) group.message = condition.message;
    if (group.subjects.empty()) group.subjects.emplace_back();
  }
  if (groups.empty()) return;
  canvas.Blank();
  canvas.Text({{"Not known, or in doubt", Style::kBold}});
  for (const auto& [code, unknown] : groups) DrawUnknown(canvas, code, unknown);
}

}  // namespace

std::string Picture(const hwinfo::Topology& topology, const placement::Observation& observation,
                    const PictureOptions& options) {
  Canvas canvas(options.width, options.color,
                options.ascii ? base::AsciiGlyphs() : base::UnicodeGlyphs());
  const PictureModel model = BuildPictureModel(topology, observation.placement);
  const bool one_domain = std::ranges::all_of(
      topology.devices, [](const hwinfo::PciDevice& device) { return device.address.domain == 0; });
  DrawHeader(canvas, topology, observation.placement, options);
  canvas.Blank();
  DrawNodes({.canvas = canvas, .topology = topology, .short_addresses = one_domain}, model);
  DrawFindings(canvas, observation.placement);
  if (options.hardware_only) {
    DrawUnknowns(canvas, topology.diagnostics, {});
  } else {
    DrawUnknowns(canvas, observation.diagnostics, observation.placement.conditions);
  }
  return canvas.text();
}

}  // namespace agent
