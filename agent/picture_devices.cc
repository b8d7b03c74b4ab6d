#include "agent/picture_devices.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>

namespace agent {
namespace {

constexpr std::size_t kRowsShown = 16;  // of one kind on one node

struct Vendor {
  std::uint16_t id;
  const char* name;
};
// From the PCI ID registry: vendors of what GPU nodes are made of.
constexpr std::array kVendors = {
    Vendor{0x1002, "AMD"},       Vendor{0x1022, "AMD"},      Vendor{0x1077, "QLogic"},
    Vendor{0x10de, "NVIDIA"},    Vendor{0x1137, "Cisco"},    Vendor{0x1234, "QEMU"},
    Vendor{0x1414, "Microsoft"}, Vendor{0x1425, "Chelsio"},  Vendor{0x14e4, "Broadcom"},
    Vendor{0x15ad, "VMware"},    Vendor{0x15b3, "Mellanox"}, Vendor{0x177d, "Marvell"},
    Vendor{0x19e5, "Huawei"},    Vendor{0x1a03, "ASPEED"},   Vendor{0x1ae0, "Google"},
    Vendor{0x1af4, "virtio"},    Vendor{0x1b36, "Red Hat"},  Vendor{0x1d0f, "Amazon"},
    Vendor{0x1da3, "Habana"},    Vendor{0x1dd8, "Pensando"}, Vendor{0x1e0f, "Kioxia"},
    Vendor{0x1e3b, "DERA"},      Vendor{0x8086, "Intel"}};

std::string ModelText(const hwinfo::PciDevice& device, const Glyphs& glyphs) {
  if (!device.model.empty()) return Clean(device.model, glyphs);
  const std::uint16_t id = device.vendor;
  const auto* vendor =
      std::ranges::find_if(kVendors, [id](const Vendor& known) { return known.id == id; });
  if (vendor != kVendors.end()) return fmt::format("{} {:04x}", vendor->name, device.device);
  return fmt::format("{:04x}:{:04x}", device.vendor, device.device);
}

std::string AddressText(const Drawing& drawing, const hwinfo::PciDevice& device) {
  const std::string whole = hwinfo::ToString(device.address);
  constexpr std::string_view kDomain = "0000:";
  return drawing.short_addresses ? whole.substr(kDomain.size()) : whole;
}

std::string NameText(const hwinfo::PciDevice& device, const Glyphs& glyphs) {
  if (device.minor) return fmt::format("nvidia{}", *device.minor);
  std::string text;
  for (const std::string& name : device.names) {
    if (!text.empty()) text += ' ';
    text += Clean(name, glyphs);
  }
  return text.empty() && !device.driver.empty() ? Clean(device.driver, glyphs) : text;
}

std::string PodNames(const std::set<const placement::PlacedPod*>& pods, const Glyphs& glyphs) {
  std::vector<std::string> names;
  for (const placement::PlacedPod* pod : pods)
    names.push_back(pod->namespace_name + "/" + pod->name);
  std::ranges::sort(names);
  constexpr std::size_t kNamed = 2;
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), kNamed); ++i) {
    text += (text.empty() ? "" : ", ") + Clean(names[i], glyphs);
  }
  if (names.size() > kNamed) text += fmt::format(" +{}", names.size() - kNamed);
  return text;
}

Line StateSpans(const DeviceView& view, const Glyphs& glyphs) {
  Line line;
  if (view.unhealthy) line.push_back({"unhealthy ", Style::kBad});
  const std::string names = PodNames({view.holders.begin(), view.holders.end()}, glyphs);
  if (view.ids > 1) {
    line.push_back({fmt::format("{} of {} held {}", view.ids_held, view.ids, names), Style::kBold});
  } else if (!names.empty()) {
    line.push_back({names, Style::kBold});
  } else if (view.ids == 1 && !view.unhealthy) {
    line.push_back({"free", Style::kGood});
  }
  if (!view.other_claim.empty()) {
    line.push_back(
        {fmt::format(" (its plugin says node {})", view.other_claim.ToString()), Style::kNote});
  }
  return line;
}

// One kind of device on one place, with the columns that its rows share.
struct Table {
  std::vector<const DeviceView*> rows;
  std::size_t left_out = 0;
  std::string common_model;  // "" if the models differ
  int address = 0;
  int name = 0;
  int model = 0;
  int pcie_switch = 0;
};

bool IsHeld(const DeviceView* view) { return view->ids_held > 0; }

Table MakeTable(const Drawing& drawing, std::vector<const DeviceView*> rows) {
  const Glyphs& glyphs = drawing.canvas.glyphs();
  Table table;
  if (rows.size() > kRowsShown) {
    std::stable_partition(rows.begin(), rows.end(), IsHeld);
    table.left_out = rows.size() - kRowsShown;
    rows.resize(kRowsShown);
    std::ranges::sort(rows, {}, [](const DeviceView* view) { return view->device->address; });
  }
  std::set<std::string> models;
  for (const DeviceView* view : rows) {
    const std::string model = ModelText(*view->device, glyphs);
    models.insert(model);
    table.address = std::max(table.address, Width(AddressText(drawing, *view->device)));
    table.name = std::max(table.name, Width(NameText(*view->device, glyphs)));
    table.model = std::max(table.model, Width(model));
    if (!view->pcie_switch.empty()) {
      table.pcie_switch = std::max(table.pcie_switch, Width("switch " + view->pcie_switch));
    }
  }
  const int room = drawing.canvas.inner_width();
  if (models.size() == 1) {
    table.common_model = *models.begin();
    table.model = 0;
  }
  table.name = std::min(table.name, table.model > 0 ? room / 4 : room / 3);
  table.model = std::min(table.model, room * 3 / 10);
  table.rows = std::move(rows);
  return table;
}

void Cell(Line& line, const std::string& text, int width, Style style, const Glyphs& glyphs) {
  if (width > 0) line.push_back({Pad(Truncate(text, width, glyphs), width + 2), style});
}

// The virtual functions of a device, which are many and alike, on one line below it.
void DrawFunctions(const Drawing& drawing, const DeviceView& view) {
  if (view.functions.empty()) return;
  std::set<const placement::PlacedPod*> holders;
  int held = 0;
  for (const DeviceView* function : view.functions) {
    holders.insert(function->holders.begin(), function->holders.end());
    held += IsHeld(function) ? 1 : 0;
  }
  std::string text =
      "    with " + Count(static_cast<int>(view.functions.size()), "virtual function");
  if (held > 0) {
    text += fmt::format(", {} held by {}", held, PodNames(holders, drawing.canvas.glyphs()));
  }
  drawing.canvas.BoxLine({{text, Style::kDim}});
}

void DrawTable(const Drawing& drawing, const std::string& title,
               std::vector<const DeviceView*> devices) {
  if (devices.empty()) return;
  const Glyphs& glyphs = drawing.canvas.glyphs();
  const std::size_t count = devices.size();
  const Table table = MakeTable(drawing, std::move(devices));
  Line heading = {{Count(static_cast<int>(count), title), Style::kBold}};
  if (!table.common_model.empty()) heading.push_back({glyphs.dot + table.common_model});
  drawing.canvas.BoxRule(heading);
  for (const DeviceView* view : table.rows) {
    const hwinfo::PciDevice& device = *view->device;
    Line line;
    Cell(line, AddressText(drawing, device), table.address, Style::kDevice, glyphs);
    Cell(line, NameText(device, glyphs), table.name, Style::kPlain, glyphs);
    Cell(line, ModelText(device, glyphs), table.model, Style::kPlain, glyphs);
    Cell(line, view->pcie_switch.empty() ? "" : "switch " + view->pcie_switch, table.pcie_switch,
         Style::kDim, glyphs);
    for (Span& span : StateSpans(*view, glyphs)) line.push_back(std::move(span));
    drawing.canvas.BoxLine(line);
    DrawFunctions(drawing, *view);
  }
  if (table.left_out > 0) {
    drawing.canvas.BoxLine({{fmt::format("and {} more", table.left_out), Style::kDim}});
  }
}

// Everything else in a few words: what it is and how many.
void DrawRest(const Drawing& drawing, const std::vector<const DeviceView*>& devices) {
  if (devices.empty()) return;
  std::map<std::string, int> counts;
  for (const DeviceView* view : devices) {
    const bool nvswitch = view->device->kind == hwinfo::DeviceKind::kNvSwitch;
    ++counts[nvswitch ? "NVSwitch" : ModelText(*view->device, drawing.canvas.glyphs())];
  }
  std::vector<std::string> parts;
  for (const auto& [name, count] : counts) {
    parts.push_back(name == "NVSwitch"
                        ? Count(count, name)
                        : fmt::format("{} {} {}", count, drawing.canvas.glyphs().times, name));
  }
  drawing.canvas.BoxRule({{"other devices", Style::kBold}});
  for (const std::string& line :
       JoinWrapped(parts, drawing.canvas.inner_width(), drawing.canvas.glyphs())) {
    drawing.canvas.BoxLine({{line}});
  }
}

}  // namespace

void DrawDevices(const Drawing& drawing, const std::vector<const DeviceView*>& devices) {
  std::map<hwinfo::DeviceKind, std::vector<const DeviceView*>> kinds;
  for (const DeviceView* view : devices) kinds[view->device->kind].push_back(view);
  DrawTable(drawing, "GPU", kinds[hwinfo::DeviceKind::kGpu]);
  DrawTable(drawing, "accelerator", kinds[hwinfo::DeviceKind::kAccelerator]);
  DrawTable(drawing, "NIC", kinds[hwinfo::DeviceKind::kNic]);
  std::vector<const DeviceView*> rest = kinds[hwinfo::DeviceKind::kNvSwitch];
  const std::vector<const DeviceView*>& other = kinds[hwinfo::DeviceKind::kOther];
  rest.insert(rest.end(), other.begin(), other.end());
  DrawRest(drawing, rest);
}

}  // namespace agent
