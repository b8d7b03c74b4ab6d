#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.h"

// NodeResourceTopology (topology.node.k8s.io/v1alpha2), the community's standard, as plain values.
namespace placement {

// The zone type that schedulers read, and the one they ignore: scheduler-plugins indexes an array
// of 64 by the id in the name of a zone of type Node, so larger ids must not have that type.
inline constexpr const char* kZoneType = "Node";
inline constexpr const char* kZoneTypeAbove63 = "NodeAbove63";

// The id of the NUMA node that a zone or a cost is named after, "node-<id>"; nullopt for other
// names.
inline std::optional<int> NumaNodeNamed(std::string_view name) {
  constexpr std::string_view kPrefix = "node-";
  if (!name.starts_with(kPrefix)) return std::nullopt;
  const std::optional<int> id = base::ParseNumber<int>(name.substr(kPrefix.size()));
  return id.value_or(-1) < 0 ? std::nullopt : id;
}

struct NrtAttribute {
  std::string name;
  std::string value;
  auto operator<=>(const NrtAttribute&) const = default;
};

struct NrtCost {
  std::string name;  // "node-1"
  std::int64_t value = 0;
  auto operator<=>(const NrtCost&) const = default;
};

// Amounts in the resource's own unit: CPUs, bytes, devices; published as plain integers. nullopt:
// the publisher does not say, which is not zero.
struct NrtResource {
  std::string name;
  std::optional<std::int64_t> capacity;
  std::optional<std::int64_t> allocatable;
  std::optional<std::int64_t> available;
  auto operator<=>(const NrtResource&) const = default;
};

struct NrtZone {
  std::string name;                      // "node-0"
  std::string type;                      // "Node"; other types are no NUMA nodes
  std::vector<NrtCost> costs;            // sorted by NUMA node id
  std::vector<NrtAttribute> attributes;  // sorted by name
  std::vector<NrtResource> resources;    // sorted by name
  bool operator==(const NrtZone&) const = default;
};

struct NodeResourceTopology {
  std::string name;                            // the Node's
  std::vector<NrtAttribute> annotations;       // sorted by name
  std::vector<std::string> topology_policies;  // the deprecated field, at most one entry
  std::vector<NrtAttribute> attributes;        // sorted by name
  std::vector<NrtZone> zones;                  // ascending by NUMA node id, then those without one
  bool operator==(const NodeResourceTopology&) const = default;
};

}  // namespace placement
