#include "agent/picture_node.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "agent/picture_devices.h"
#include "base/quantity.h"
#include "placement/amounts.h"

namespace agent {
namespace {

constexpr int kLabel = 11;              // columns of a row's label
constexpr std::size_t kPodsShown = 24;  // on one node; more, and aligned ones without devices fold

int BarCells(const Canvas& canvas) { return std::clamp(canvas.width() / 4, 12, 24); }

void Row(const Drawing& drawing, std::string_view label, Line rest) {
  rest.insert(rest.begin(), {Pad(std::string(label), kLabel), Style::kDim});
  drawing.canvas.BoxLine(rest);
}

void Rows(const Drawing& drawing, std::string_view label, const std::vector<std::string>& parts) {
  const Canvas& canvas = drawing.canvas;
  for (const std::string& line :
       JoinWrapped(parts, canvas.inner_width() - kLabel, canvas.glyphs())) {
    Row(drawing, std::exchange(label, ""), {{line}});
  }
}

void BarRow(const Drawing& drawing, std::string_view label, double used, const std::string& text) {
  Line line = Bar(used, BarCells(drawing.canvas), drawing.canvas.glyphs());
  line.push_back({"  " + text});
  Row(drawing, label, std::move(line));
}

double UsedShare(std::int64_t free, std::int64_t total) {
  if (total <= 0) return 0;
  return 1.0 - static_cast<double>(free) / static_cast<double>(total);
}

std::vector<std::string> CpuParts(const Drawing& drawing, const hwinfo::NumaNode& node) {
  std::set<std::pair<int, int>> cores;
  std::set<int> caches;
  std::map<int, int> kinds;
  for (const hwinfo::Cpu& cpu : drawing.topology.cpus) {
    if (!node.cpus.Contains(cpu.id)) continue;
    cores.insert({cpu.siblings.empty() ? -1 - cpu.id : cpu.siblings.First(), cpu.socket});
    if (cpu.l3 >= 0) caches.insert(cpu.l3);
    if (cpu.kind >= 0) ++kinds[cpu.kind];
  }
  std::vector<std::string> parts;
  const auto core_count = static_cast<int>(cores.size());
  const char* times = drawing.canvas.glyphs().times;
  if (core_count > 0 && node.cpus.size() % core_count == 0) {
    parts.push_back(fmt::format("{} {} {}", Count(core_count, "core"), times,
                                Count(node.cpus.size() / core_count, "thread")));
  } else if (core_count > 0) {
    parts.push_back(Count(core_count, "core"));
  }
  if (caches.size() > 1) parts.push_back(Count(static_cast<int>(caches.size()), "L3"));
  if (kinds.size() > 1) {
    for (const auto& [kind, count] : kinds)
      parts.push_back(fmt::format("{} of kind {}", count, kind));
  }
  return parts;
}

void DrawCpus(const Drawing& drawing, const NodeView& view) {
  const hwinfo::NumaNode& node = *view.hardware;
  const Canvas& canvas = drawing.canvas;
  if (node.cpus.empty()) {
    Rows(drawing, "CPUs",
         {"none", node.nearest_cpus.empty()
                      ? "nearest not known"
                      : "nearest " + ShortList(node.nearest_cpus, 30, canvas.glyphs())});
    return;
  }
  std::vector<std::string> parts = CpuParts(drawing, node);
  const int room = canvas.inner_width() - kLabel - 5;
  if (view.placed == nullptr || !view.placed->free_cpus) {
    parts.insert(parts.begin(), Count(node.cpus.size(), "CPU"));
    Rows(drawing, "CPUs", parts);
    Row(drawing, "", {{ShortList(node.cpus, room, canvas.glyphs())}});
    return;
  }
  const base::CpuSet& free = *view.placed->free_cpus;
  parts.insert(parts.begin(), fmt::format("{} of {} free", free.size(), node.cpus.size()));
  const int text_room = canvas.inner_width() - kLabel - BarCells(canvas) - 2;
  const std::vector<std::string> lines = JoinWrapped(parts, text_room, canvas.glyphs());
  BarRow(drawing, "CPUs", UsedShare(free.size(), node.cpus.size()), lines.front());
  for (std::size_t i = 1; i < lines.size(); ++i) {
    Row(drawing, "",
        {{std::string(static_cast<std::size_t>(BarCells(canvas)) + 2, ' ') + lines[i]}});
  }
  Row(drawing, "", {{"all  ", Style::kDim}, {ShortList(node.cpus, room, canvas.glyphs())}});
  Row(drawing, "",
      {{"free ", Style::kDim}, {free.empty() ? "none" : ShortList(free, room, canvas.glyphs())}});
}

const placement::NodeMemory* FindMemory(const NodeView& view, const std::string& type) {
  if (view.placed == nullptr) return nullptr;
  for (const placement::NodeMemory& memory : view.placed->memory) {
    if (memory.type == type) return &memory;
  }
  return nullptr;
}

// What the kubelet's memory manager can still give, where it keeps such an account.
void DrawToGive(const Drawing& drawing, const NodeView& view, const std::string& type) {
  const placement::NodeMemory* memory = FindMemory(view, type);
  if (memory == nullptr || !memory->free || memory->allocatable <= 0) return;
  BarRow(
      drawing, "  for pods", UsedShare(*memory->free, memory->allocatable),
      fmt::format("{} of {} to give", HumanBytes(*memory->free), HumanBytes(memory->allocatable)));
}

void DrawHugePages(const Drawing& drawing, const hwinfo::HugePages& pages) {
  const std::string label = base::FormatBytes(pages.page_bytes) + " pages";
  const std::string size = drawing.canvas.glyphs().dot + HumanBytes(placement::BytesOf(pages));
  if (pages.free < 0) {  // hwloc's XML does not say
    Row(drawing, label, {{fmt::format("{}{}", pages.total, size)}});
    return;
  }
  BarRow(drawing, label, UsedShare(pages.free, pages.total),
         fmt::format("{} of {} free{}", pages.free, pages.total, size));
}

void DrawMemory(const Drawing& drawing, const NodeView& view) {
  const hwinfo::NumaNode& node = *view.hardware;
  const std::string kind =
      node.memory_type.empty()
          ? ""
          : drawing.canvas.glyphs().dot + Clean(node.memory_type, drawing.canvas.glyphs());
  if (!node.memory_bytes) {
    Row(drawing, "memory", {{"size not known" + kind}});
  } else if (*node.memory_bytes == 0) {
    Row(drawing, "memory", {{"none"}});
  } else if (node.free_bytes) {
    BarRow(drawing, "memory", UsedShare(*node.free_bytes, *node.memory_bytes),
           fmt::format("{} of {} free{}", HumanBytes(*node.free_bytes),
                       HumanBytes(*node.memory_bytes), kind));
  } else {
    Row(drawing, "memory", {{HumanBytes(*node.memory_bytes) + kind}});
  }
  DrawToGive(drawing, view, "memory");
  for (const hwinfo::HugePages& pages : node.huge_pages) {
    if (pages.total <= 0) continue;
    DrawHugePages(drawing, pages);
    DrawToGive(drawing, view, base::HugePagesResource(pages.page_bytes));
  }
  if (view.placed != nullptr && view.placed->memory_group &&
      view.placed->memory_group->size() > 1) {
    Row(drawing, "  group",
        {{"nodes " + view.placed->memory_group->ToString() + " give their memory together",
          Style::kNote}});
  }
}

void DrawDistances(const Drawing& drawing, const hwinfo::NumaNode& node) {
  if (node.distances.size() < 2) return;
  std::map<int, base::NumaMask> by_distance;
  for (const auto& [other, distance] : node.distances) {
    if (other != node.id) by_distance[distance].Insert(other);
  }
  std::vector<std::string> parts;
  if (const auto self = node.distances.find(node.id); self != node.distances.end()) {
    parts.push_back(fmt::format("{} within", self->second));
  }
  for (const auto& [distance, others] : by_distance) {
    parts.push_back(fmt::format("{} to {} {}", distance, others.size() == 1 ? "node" : "nodes",
                                ShortList(others, 24, drawing.canvas.glyphs())));
  }
  Rows(drawing, "distance", parts);
}

std::string MemoryText(const placement::PlacedMemory& block) {
  std::string text = HumanBytes(block.bytes);
  constexpr std::string_view kHugePages = "hugepages-";
  if (block.type.starts_with(kHugePages)) {
    text += fmt::format(" in {} pages", block.type.substr(kHugePages.size()));
  } else if (block.type != "memory") {
    text += " " + block.type;
  }
  if (block.numa_nodes.size() > 1) text += " over nodes " + block.numa_nodes.ToString();
  return text;
}

std::vector<std::string> HeldParts(const PodView& pod, int width, const Glyphs& glyphs) {
  std::vector<std::string> parts;
  if (!pod.cpus.empty()) {
    const std::string count = Count(pod.cpus.size(), "CPU") + " ";
    parts.push_back(count + ShortList(pod.cpus, width - Width(count), glyphs));
  }
  for (const auto& [resource, count] : pod.devices) {
    const std::size_t slash = resource.find_last_of('/');
    const std::string noun = slash == std::string::npos ? resource : resource.substr(slash + 1);
    parts.push_back(Clean(fmt::format("{} {}", count, noun), glyphs));
  }
  for (const placement::PlacedMemory& block : pod.memory) {
    parts.push_back(Clean(MemoryText(block), glyphs));
  }
  return parts;
}

std::string PodName(const placement::PlacedPod& pod, const Glyphs& glyphs) {
  return Clean(pod.namespace_name + "/" + pod.name, glyphs);
}

bool Folds(const PodView& pod) {
  return pod.pod->alignment == placement::Alignment::kAligned && pod.devices.empty();
}

void DrawPod(const Drawing& drawing, const PodView& pod, int name_width) {
  const Canvas& canvas = drawing.canvas;
  constexpr int kState = 10;
  const int indent = name_width + kState + 4;
  const std::string name =
      Truncate(PodName(*pod.pod, canvas.glyphs()), name_width, canvas.glyphs());
  const int room = canvas.inner_width() - indent;
  const std::vector<std::string> held =
      JoinWrapped(HeldParts(pod, room, canvas.glyphs()), room, canvas.glyphs());
  Span state = AlignmentWord(pod.pod->alignment);
  state.text = Pad(state.text, kState + 2);
  drawing.canvas.BoxLine({{Pad(name, name_width + 2)}, state, {held.empty() ? "" : held.front()}});
  for (std::size_t i = 1; i < held.size(); ++i) {
    drawing.canvas.BoxLine({{std::string(static_cast<std::size_t>(indent), ' ') + held[i]}});
  }
}

void DrawPods(const Drawing& drawing, const std::vector<PodView>& pods) {
  if (pods.empty()) return;
  const Glyphs& glyphs = drawing.canvas.glyphs();
  const bool fold = pods.size() > kPodsShown;
  int name_width = 4;
  int folded = 0;
  int cpus = 0;
  std::int64_t bytes = 0;
  for (const PodView& pod : pods) {
    if (fold && Folds(pod)) continue;
    name_width = std::max(name_width, Width(PodName(*pod.pod, glyphs)));
  }
  name_width = std::min(name_width, drawing.canvas.inner_width() * 2 / 5);
  drawing.canvas.BoxRule({{Count(static_cast<int>(pods.size()), "pod"), Style::kBold}});
  for (const PodView& pod : pods) {
    if (!fold || !Folds(pod)) {
      DrawPod(drawing, pod, name_width);
      continue;
    }
    ++folded;
    cpus += pod.cpus.size();
    for (const placement::PlacedMemory& block : pod.memory) {
      bytes = placement::SaturatingAdd(bytes, block.bytes);
    }
  }
  if (folded == 0) return;
  std::string text =
      fmt::format("and {} aligned without devices: {}", Count(folded, "pod"), Count(cpus, "CPU"));
  if (bytes > 0) text += glyphs.dot + HumanBytes(bytes);
  drawing.canvas.BoxLine({{text, Style::kDim}});
}

std::string SocketText(const Drawing& drawing, const hwinfo::NumaNode& node) {
  if (node.socket >= 0) return fmt::format("socket {}", node.socket);
  std::string sockets;
  for (const hwinfo::Socket& socket : drawing.topology.sockets) {
    if (!socket.cpus.Intersects(node.cpus)) continue;
    sockets += fmt::format("{}{}", sockets.empty() ? "sockets " : ",", socket.id);
  }
  return Truncate(sockets, 24, drawing.canvas.glyphs());
}

std::string KindText(const hwinfo::NumaNode& node) {
  const std::string gpu = node.gpu ? " of " + hwinfo::ToString(*node.gpu) : "";
  switch (node.kind) {
    case hwinfo::NumaNodeKind::kDram:
      return "";
    case hwinfo::NumaNodeKind::kCpuOnly:
      return "CPUs only";
    case hwinfo::NumaNodeKind::kMemoryOnly:
      return "memory only";
    case hwinfo::NumaNodeKind::kGpuMemory:
      return "GPU memory" + gpu;
    case hwinfo::NumaNodeKind::kEmpty:
      return "empty" + gpu;
  }
  return "";
}

// How far the others are, from the nearest to the farthest.
std::string DistanceSpan(const hwinfo::NumaNode& node) {
  std::optional<std::pair<int, int>> span;
  for (const auto& [other, distance] : node.distances) {
    if (other == node.id) continue;
    if (!span) span = {distance, distance};
    span->first = std::min(span->first, distance);
    span->second = std::max(span->second, distance);
  }
  if (!span) return "";
  return span->first == span->second ? fmt::format("distance {}", span->first)
                                     : fmt::format("distance {}-{}", span->first, span->second);
}

void DrawQuietNode(const Drawing& drawing, const NodeView& view) {
  const hwinfo::NumaNode& node = *view.hardware;
  const Glyphs& glyphs = drawing.canvas.glyphs();
  std::vector<std::string> parts;
  for (const std::string& text : {SocketText(drawing, node), KindText(node)}) {
    if (!text.empty()) parts.push_back(text);
  }
  if (!node.cpus.empty()) {
    parts.push_back(Count(node.cpus.size(), "CPU") + " " + ShortList(node.cpus, 24, glyphs));
  }
  if (node.memory_bytes && *node.memory_bytes > 0) {
    const std::string total = HumanBytes(*node.memory_bytes);
    parts.push_back(node.free_bytes
                        ? fmt::format("{} of {} free", HumanBytes(*node.free_bytes), total)
                        : total);
  }
  if (!view.devices.empty())
    parts.push_back(Count(static_cast<int>(view.devices.size()), "device"));
  if (const std::string span = DistanceSpan(node); !span.empty()) parts.push_back(span);
  Rows(drawing, fmt::format("node {}", node.id), parts);
}

}  // namespace

Span AlignmentWord(placement::Alignment alignment) {
  switch (alignment) {
    case placement::Alignment::kUnknown:
      return {"unknown", Style::kNote};
    case placement::Alignment::kAligned:
      return {"aligned", Style::kGood};
    case placement::Alignment::kSpread:
      return {"spread", Style::kNote};
    case placement::Alignment::kMisaligned:
      return {"misaligned", Style::kBad};
    case placement::Alignment::kUnpinned:
      return {"unpinned", Style::kNote};
    case placement::Alignment::kDrifted:
      return {"drifted", Style::kBad};
  }
  return {"unknown", Style::kNote};
}

void DrawNode(const Drawing& drawing, const NodeView& view) {
  const hwinfo::NumaNode& node = *view.hardware;
  const char* dot = drawing.canvas.glyphs().dot;
  Line title = {{fmt::format("NUMA node {}", node.id), Style::kTitle}};
  for (const std::string& text : {SocketText(drawing, node), KindText(node)}) {
    if (!text.empty()) title.push_back({dot + text});
  }
  drawing.canvas.BoxTop(title);
  DrawCpus(drawing, view);
  DrawMemory(drawing, view);
  DrawDistances(drawing, node);
  DrawDevices(drawing, view.devices);
  DrawPods(drawing, view.pods);
  drawing.canvas.BoxBottom();
}

void DrawQuietNodes(const Drawing& drawing, const std::vector<const NodeView*>& nodes) {
  if (nodes.empty()) return;
  drawing.canvas.BoxTop({{"NUMA nodes without pods and GPUs", Style::kTitle}});
  base::NumaMask empty;
  for (const NodeView* node : nodes) {
    if (node->hardware->kind == hwinfo::NumaNodeKind::kEmpty && node->devices.empty()) {
      empty.Insert(node->hardware->id);
    } else {
      DrawQuietNode(drawing, *node);
    }
  }
  if (!empty.empty()) {
    const int room = drawing.canvas.inner_width() - kLabel;
    Rows(drawing, "empty",
         {fmt::format("{} with neither CPUs nor memory", Count(empty.size(), "node")),
          ShortList(empty, room, drawing.canvas.glyphs())});
  }
  drawing.canvas.BoxBottom();
}

void DrawNowhere(const Drawing& drawing, const NodeView& nowhere) {
  if (nowhere.devices.empty() && nowhere.pods.empty()) return;
  drawing.canvas.BoxTop({{"No NUMA node known", Style::kTitle}});
  drawing.canvas.BoxLine(
      {{"Nobody says which node these are on; they are never taken for node 0.", Style::kDim}});
  DrawDevices(drawing, nowhere.devices);
  DrawPods(drawing, nowhere.pods);
  drawing.canvas.BoxBottom();
}

}  // namespace agent
