#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>

// The names that settings of the kubelet may have: KubeletConfiguration of 1.37.
namespace cli {

inline constexpr std::array kTopologyPolicies = {"none", "best-effort", "restricted",
                                                 "single-numa-node"};
inline constexpr std::array kTopologyScopes = {"container", "pod"};
inline constexpr std::array kTopologyOptions = {"prefer-closest-numa-nodes",
                                                "max-allowable-numa-nodes"};
inline constexpr std::array kCpuPolicies = {"none", "static"};
inline constexpr std::array kCpuOptions = {
    "full-pcpus-only",        "distribute-cpus-across-numa",  "align-by-socket",
    "strict-cpu-reservation", "distribute-cpus-across-cores", "prefer-align-cpus-by-uncorecache"};
inline constexpr std::array kMemoryPolicies = {"None", "Static"};

// Settings to try in place of a node's own; nullopt: the node's.
struct OtherSettings {
  std::optional<std::string> policy;
  std::optional<std::string> scope;
  std::optional<std::string> cpu_policy;
  std::optional<std::string> memory_policy;
  std::map<std::string, std::string> cpu_options;
  bool operator==(const OtherSettings&) const = default;
};

}  // namespace cli
