#include "agent/resource_slices.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "hwinfo/pci_address.h"
#include "kube/json.h"

namespace agent {
namespace {

using hwinfo::DraAttributes;
using kube::JsonObject;

// Names of attributes, the standard one first. Those without a domain are the driver's own; drivers
// also write theirs with their domain.
constexpr std::array<std::string_view, 5> kAddress = {"resource.kubernetes.io/pcibusid", "pcibusid",
                                                      "pciebusid", "pciaddress", "pciaddr"};
constexpr std::array<std::string_view, 4> kNumaNode = {"resource.kubernetes.io/numanode",
                                                       "numanode", "numanodeid", "numa"};
// A partition has its GPU's and its own.
constexpr std::array<std::string_view, 2> kGpuUuid = {"parentuuid", "uuid"};

std::string LowerCase(std::string_view text) {
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return lower;
}

bool IsCalled(const std::string& attribute, std::string_view wanted) {
  const std::string lower = LowerCase(attribute);
  return lower == wanted || lower.substr(lower.find('/') + 1) == wanted;
}

// The values of the attributes that have one of these names, the first name's before the others'.
template <std::size_t N>
absl::StatusOr<std::vector<JsonObject>> ValuesOf(const JsonObject& attributes,
                                                 const std::array<std::string_view, N>& names) {
  std::vector<JsonObject> values;
  const std::vector<std::string> all = attributes.Names();
  for (const std::string_view name : names) {
    for (const std::string& attribute : all) {
      if (!IsCalled(attribute, name)) continue;
      ASSIGN_OR_RETURN(JsonObject value, attributes.Object(attribute));
      values.push_back(std::move(value));
    }
  }
  return values;
}

absl::StatusOr<std::optional<hwinfo::PciAddress>> ReadAddress(const JsonObject& attributes) {
  ASSIGN_OR_RETURN(const std::vector<JsonObject> values, ValuesOf(attributes, kAddress));
  for (const JsonObject& value : values) {
    ASSIGN_OR_RETURN(const std::string text, value.Text("string"));
    if (const auto address = hwinfo::ParsePciAddress(text)) return address;
  }
  return std::nullopt;
}

// One number, or a list of which the first is where the device is.
absl::StatusOr<std::optional<int>> ReadNumaNode(const JsonObject& attributes) {
  ASSIGN_OR_RETURN(const std::vector<JsonObject> values, ValuesOf(attributes, kNumaNode));
  for (const JsonObject& value : values) {
    ASSIGN_OR_RETURN(std::optional<std::int64_t> node, value.Number("int"));
    ASSIGN_OR_RETURN(const std::vector<std::int64_t> nodes, value.Numbers("ints"));
    if (!node && !nodes.empty()) node = nodes.front();
    if (node && *node >= 0 && *node <= 65'535) return static_cast<int>(*node);
  }
  return std::nullopt;
}

absl::StatusOr<std::string> ReadGpuUuid(const JsonObject& attributes) {
  ASSIGN_OR_RETURN(const std::vector<JsonObject> values, ValuesOf(attributes, kGpuUuid));
  for (const JsonObject& value : values) {
    ASSIGN_OR_RETURN(std::string text, value.Text("string"));
    if (text.starts_with("GPU-")) return text;
  }
  return std::string();
}

// v1beta1 has them one level deeper.
absl::StatusOr<JsonObject> AttributesOf(const JsonObject& device) {
  if (!device.Has("basic")) return device.Object("attributes");
  ASSIGN_OR_RETURN(const JsonObject basic, device.Object("basic"));
  return basic.Object("attributes");
}

absl::StatusOr<DraAttributes> ReadAttributes(const JsonObject& device) {
  ASSIGN_OR_RETURN(const JsonObject attributes, AttributesOf(device));
  DraAttributes read;
  ASSIGN_OR_RETURN(read.address, ReadAddress(attributes));
  ASSIGN_OR_RETURN(read.numa_node, ReadNumaNode(attributes));
  ASSIGN_OR_RETURN(read.gpu_uuid, ReadGpuUuid(attributes));
  return read;
}

DraDevices DevicesOf(const ResourceSlices::Items& slices) {
  std::map<std::pair<std::string, std::string>, std::int64_t> newest;
  for (const auto& [key, slice] : slices) {
    std::int64_t& generation = newest[{slice.driver, slice.pool}];
    generation = std::max(generation, slice.generation);
  }
  DraDevices devices;
  for (const auto& [key, slice] : slices) {
    if (slice.generation < newest[{slice.driver, slice.pool}]) continue;
    for (const auto& [device, attributes] : slice.devices) {
      devices[{.driver = slice.driver, .pool = slice.pool, .name = device}] = attributes;
    }
  }
  return devices;
}

kube::WatchOptions OptionsFor(const std::string& node_name) {
  kube::WatchOptions options;
  options.selection = {
      .resource = {.group = "resource.k8s.io", .version = "v1", .plural = "resourceslices"},
      .field_selector = "spec.nodeName=" + node_name};
  options.older_versions = {"v1beta2", "v1beta1"};  // before Kubernetes 1.34, before 1.33
  options.refused_pause = std::chrono::minutes(10);
  return options;
}

}  // namespace

absl::StatusOr<ResourceSlice> ReadResourceSlice(const kube::Object& object) {
  ResourceSlice slice;
  ASSIGN_OR_RETURN(const JsonObject root, JsonObject::Parse(object.json));
  ASSIGN_OR_RETURN(const JsonObject spec, root.Object("spec"));
  ASSIGN_OR_RETURN(slice.driver, spec.Text("driver"));
  ASSIGN_OR_RETURN(const JsonObject pool, spec.Object("pool"));
  ASSIGN_OR_RETURN(slice.pool, pool.Text("name"));
  ASSIGN_OR_RETURN(const std::optional<std::int64_t> generation, pool.Number("generation"));
  slice.generation = generation.value_or(0);
  ASSIGN_OR_RETURN(const std::vector<JsonObject> devices, spec.Objects("devices"));
  for (const JsonObject& device : devices) {
    ASSIGN_OR_RETURN(const std::string name, device.Text("name"));
    ASSIGN_OR_RETURN(slice.devices[name], ReadAttributes(device));
  }
  return slice;
}

ResourceSlices::ResourceSlices(kube::Client& client, const std::string& node_name,
                               std::function<void()> changed)
    : Followed(client, OptionsFor(node_name),
               {.name = {.prefix = "resource_", .noun = "slice", .is_expected = false},
                .read = ReadResourceSlice,
                .sum_up = DevicesOf},
               std::move(changed)) {}

}  // namespace agent
