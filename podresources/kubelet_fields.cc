#include "podresources/kubelet_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "base/quantity.h"
#include "base/text.h"

namespace podresources {
namespace {

using Kind = YamlValue::Kind;

// The release whose defaults and rules these are; older ones back to 1.22 have the same.
constexpr const char* kDefaultsOf = "default of kubelet v1.37";

class FieldReader {
 public:
  FieldReader(const MergedConfig& merged, base::Diagnostics& diagnostics)
      : merged_(merged), diagnostics_(diagnostics) {}

  Sourced<std::string> Text(const std::string& field, const std::string& unset) {
    const YamlValue* value = merged_.tree.Find(field);
    if (value == nullptr) return Unset(unset);
    if (value->kind != Kind::kScalar) return Refuse<std::string>(field, "it is no text");
    return value->text.empty() ? Unset(unset) : Found(field, value->text);
  }

  Sourced<Options> Map(const std::string& field) {
    const YamlValue* value = merged_.tree.Find(field);
    if (value == nullptr) return Unset(Options());
    if (value->kind != Kind::kMap) return Refuse<Options>(field, "it is no map");
    Options options;
    for (const auto& [key, option] : value->map) {
      if (option.kind != Kind::kScalar) {
        return Refuse<Options>(field, fmt::format("\"{}\" has no plain value", key));
      }
      options[key] = option.text;
    }
    return Found(field, std::move(options));
  }

  Sourced<Options> Gates(const std::string& field) {
    Sourced<Options> gates = Map(field);
    if (!gates.value) return gates;
    for (auto& [gate, state] : *gates.value) {
      const std::string truth = Truth(state);
      if (truth.empty()) {
        return Refuse<Options>(field, fmt::format("{} is \"{}\", not true or false", gate, state));
      }
      state = truth;
    }
    return gates;
  }

  Sourced<base::CpuSet> Cpus(const std::string& field) {
    const Sourced<std::string> text = Text(field, "");
    if (!text.value) return {};
    const absl::StatusOr<base::CpuSet> cpus = base::CpuSet::Parse(*text.value);
    if (!cpus.ok()) {
      return Refuse<base::CpuSet>(field, std::string(cpus.status().message()));
    }
    return {*cpus, text.source, text.where};
  }

  Sourced<std::vector<ReservedMemory>> Reservations(const std::string& field) {
    const YamlValue* value = merged_.tree.Find(field);
    if (value == nullptr) return Unset(std::vector<ReservedMemory>());
    std::vector<ReservedMemory> reserved;
    bool understood = value->kind == Kind::kList;
    for (const YamlValue& element : value->list) {
      understood = understood && AddReservation(element, reserved);
    }
    if (!understood) {
      return Refuse<std::vector<ReservedMemory>>(
          field, "it is no list of {numaNode, limits: {memory: quantity}}");
    }
    std::sort(reserved.begin(), reserved.end());
    return Found(field, std::move(reserved));
  }

  using Parser = absl::StatusOr<std::int64_t> (*)(std::string_view);
  // The sum of one member of several maps: what the kubelet sets aside of a resource.
  Sourced<std::int64_t> Sum(const std::vector<std::pair<std::string, std::string>>& members,
                            Parser parse) {
    Sourced<std::int64_t> sum = Unset(std::int64_t{0});
    if (!sum.value) sum.value = 0;
    bool complete = merged_.whole;
    for (const auto& [field, member] : members) {
      const Sourced<Options> map = Map(field);
      if (!map.value) {
        complete = complete && merged_.tree.Find(field) == nullptr;
        continue;
      }
      const auto amount = map.value->find(member);
      if (amount == map.value->end()) continue;
      const absl::StatusOr<std::int64_t> parsed = parse(amount->second);
      if (!parsed.ok() || *parsed < 0 || __builtin_add_overflow(*sum.value, *parsed, &*sum.value)) {
        return Refuse<std::int64_t>(
            field, !parsed.ok() ? std::string(parsed.status().message())
                                : fmt::format("{}: \"{}\" is no amount that can be added up",
                                              member, amount->second));
      }
      Credit(map, sum);
    }
    return complete ? sum : Sourced<std::int64_t>();
  }

 private:
  template <class T>
  Sourced<T> Unset(T value) const {
    if (!merged_.whole) return {};
    return {std::move(value), ConfigSource::kDefault, kDefaultsOf};
  }

  template <class T>
  Sourced<T> Found(const std::string& field, T value) const {
    const auto origin = merged_.origins.find(field);
    if (origin == merged_.origins.end())
      return {std::move(value), ConfigSource::kDefault, kDefaultsOf};
    return {std::move(value), origin->second.source, origin->second.where};
  }

  template <class T>
  Sourced<T> Refuse(const std::string& field, const std::string& problem) {
    const auto origin = merged_.origins.find(field);
    base::Diagnostic diagnostic = {
        "KubeletValueInvalid", field,
        fmt::format("{} in {} cannot be used: {}", field,
                    origin == merged_.origins.end() ? "the defaults" : origin->second.where,
                    problem)};
    // Sums read a map that was read, and refused, before.
    if (std::find(diagnostics_.begin(), diagnostics_.end(), diagnostic) == diagnostics_.end()) {
      diagnostics_.push_back(std::move(diagnostic));
    }
    return {};
  }

  static void Credit(const Sourced<Options>& part, Sourced<std::int64_t>& sum) {
    if (part.source == ConfigSource::kDefault) return;
    if (sum.source == ConfigSource::kDefault || sum.source == ConfigSource::kUnknown) {
      sum.source = part.source;
      sum.where = part.where;
      return;
    }
    sum.source = std::max(sum.source, part.source);
    if (sum.where.find(part.where) == std::string::npos) sum.where += ", " + part.where;
  }

  // Go's ParseBool for flags, YAML 1.1's words for files.
  static std::string Truth(const std::string& text) {
    std::string lower = text;
    std::transform(lower.begin(), lower.end(), lower.begin(), [](char c) {
      return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    });
    for (const char* word : {"true", "t", "1", "yes", "y", "on"}) {
      if (lower == word) return "true";
    }
    for (const char* word : {"false", "f", "0", "no", "n", "off"}) {
      if (lower == word) return "false";
    }
    return {};
  }

  static bool AddReservation(const YamlValue& element, std::vector<ReservedMemory>& reserved) {
    const YamlValue* node = element.Find("numaNode");
    const YamlValue* limits = element.Find("limits");
    if (limits == nullptr || limits->kind != Kind::kMap) return false;
    // Go's zero value: numaNode may be left out.
    const std::optional<int> id = node == nullptr ? 0 : base::ParseNumber<int>(node->text);
    if (!id || !base::NumaMask::Fits(*id)) return false;
    for (const auto& [type, amount] : limits->map) {
      const absl::StatusOr<std::int64_t> bytes = base::ParseQuantity(amount.text);
      if (!bytes.ok() || *bytes < 0) return false;
      reserved.push_back({*id, type, *bytes});
    }
    return true;
  }

  const MergedConfig& merged_;
  base::Diagnostics& diagnostics_;
};

// evictionHard: 0% and 100% switch a threshold off; another share is a share of the memory that the
// kubelet counts, which its configuration does not say.
absl::StatusOr<std::int64_t> ParseThreshold(std::string_view text) {
  if (text == "0%" || text == "100%") return 0;
  if (text.ends_with('%')) {
    return absl::FailedPreconditionError(
        fmt::format("{} is a share of a memory capacity that is not known here", text));
  }
  return base::ParseQuantity(text);
}

}  // namespace

void LayDocument(const YamlValue& document, const MergedConfig::Origin& origin,
                 MergedConfig& merged) {
  MergePatch(merged.tree, document);
  for (const auto& [field, value] : document.map) {
    if (value.kind == Kind::kNull) {
      merged.origins.erase(field);
    } else {
      merged.origins[field] = origin;
    }
  }
}

void LayFlags(const KubeletFlags& flags, MergedConfig& merged) {
  for (const auto& [field, value] : flags.fields) {
    if (field == "featureGates" && value.kind == Kind::kMap) {
      MergePatch(merged.tree.map[field], value);
    } else {
      merged.tree.map[field] = value;
    }
    const auto flag = flags.flag_of.find(field);
    merged.origins[field] = {ConfigSource::kCommandLine,
                             flag == flags.flag_of.end() ? std::string() : flag->second};
  }
}

void LayEvictionDefault(MergedConfig& merged) {
  const YamlValue memory = YamlValue::Scalar("100Mi");
  const YamlValue* merge = merged.tree.Find("mergeDefaultEvictionSettings");
  YamlValue& eviction = merged.tree.map["evictionHard"];
  if (eviction.kind == Kind::kNull) {
    eviction = YamlValue::Map();
    eviction.map["memory.available"] = memory;
  } else if (eviction.kind == Kind::kMap && merge != nullptr && merge->text == "true") {
    eviction.map.emplace("memory.available", memory);
  }
}

void ReadFields(const MergedConfig& merged, KubeletConfig& config) {
  FieldReader read(merged, config.diagnostics);
  config.topology_policy = read.Text("topologyManagerPolicy", "none");
  config.topology_scope = read.Text("topologyManagerScope", "container");
  config.topology_options = read.Map("topologyManagerPolicyOptions");
  config.cpu_policy = read.Text("cpuManagerPolicy", "none");
  config.cpu_options = read.Map("cpuManagerPolicyOptions");
  config.reserved_cpus = read.Cpus("reservedSystemCPUs");
  config.reserved_cpu_milli =
      read.Sum({{"kubeReserved", "cpu"}, {"systemReserved", "cpu"}}, base::ParseMilliQuantity);
  config.memory_policy = read.Text("memoryManagerPolicy", "None");
  config.reserved_memory = read.Reservations("reservedMemory");
  config.reserved_memory_bytes = read.Sum({{"kubeReserved", "memory"},
                                           {"systemReserved", "memory"},
                                           {"evictionHard", "memory.available"}},
                                          ParseThreshold);
  config.feature_gates = read.Gates("featureGates");
  const Sourced<std::string> logs = read.Text("podLogsDir", config.pod_logs_dir);
  if (logs.value) config.pod_logs_dir = *logs.value;
}

}  // namespace podresources
