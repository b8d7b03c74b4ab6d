#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

// NodeResourceTopology (topology.node.k8s.io/v1alpha2), the community's standard, as plain values.
namespace placement {

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

// Amounts in the resource's own unit: CPUs, bytes, devices; published as plain integers.
struct NrtResource {
  std::string name;
  std::int64_t capacity = 0;
  std::int64_t allocatable = 0;
  std::int64_t available = 0;
  auto operator<=>(const NrtResource&) const = default;
};

struct NrtZone {
  std::string name;                      // "node-0"
  std::string type;                      // "Node"
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
  std::vector<NrtZone> zones;                  // ascending by NUMA node id
  bool operator==(const NodeResourceTopology&) const = default;
};

}  // namespace placement
