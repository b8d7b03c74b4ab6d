#include "podresources/kubelet_flags.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>
#include <utility>

#include "base/text.h"

namespace podresources {
namespace {

// How a flag's text becomes the value of its field.
enum class Form {
  kText,            // a
  kMap,             // k=v,k=v
  kMapNoSplit,      // k=v; the value may have commas
  kThresholds,      // k<v,k<v
  kReservedMemory,  // 0:memory=1Gi,hugepages-1Gi=2Gi;1:memory=1Gi
};

struct FieldFlag {
  const char* flag;
  const char* field;
  Form form;
};

constexpr std::array kFieldFlags = {
    FieldFlag{"topology-manager-policy", "topologyManagerPolicy", Form::kText},
    FieldFlag{"topology-manager-scope", "topologyManagerScope", Form::kText},
    FieldFlag{"topology-manager-policy-options", "topologyManagerPolicyOptions", Form::kMap},
    FieldFlag{"cpu-manager-policy", "cpuManagerPolicy", Form::kText},
    FieldFlag{"cpu-manager-policy-options", "cpuManagerPolicyOptions", Form::kMapNoSplit},
    FieldFlag{"memory-manager-policy", "memoryManagerPolicy", Form::kText},
    FieldFlag{"reserved-memory", "reservedMemory", Form::kReservedMemory},
    FieldFlag{"reserved-cpus", "reservedSystemCPUs", Form::kText},
    FieldFlag{"kube-reserved", "kubeReserved", Form::kMap},
    FieldFlag{"system-reserved", "systemReserved", Form::kMap},
    FieldFlag{"eviction-hard", "evictionHard", Form::kThresholds},
    FieldFlag{"feature-gates", "featureGates", Form::kMap},
};

std::vector<std::string_view> Split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

// False if a part has no separator.
bool AddPairs(const std::vector<std::string_view>& parts, char separator, YamlValue& map) {
  for (const std::string_view part : parts) {
    if (part.empty()) continue;
    const std::size_t middle = part.find(separator);
    if (middle == std::string_view::npos) return false;
    map.map[std::string(base::Trim(part.substr(0, middle)))] =
        YamlValue::Scalar(std::string(base::Trim(part.substr(middle + 1))));
  }
  return true;
}

bool AddReservedMemory(std::string_view text, YamlValue& list) {
  for (const std::string_view node : Split(text, ';')) {
    const std::size_t middle = node.find(':');
    if (middle == std::string_view::npos) return false;
    YamlValue limits = YamlValue::Map();
    if (!AddPairs(Split(node.substr(middle + 1), ','), '=', limits)) return false;
    YamlValue reservation = YamlValue::Map();
    reservation.map["numaNode"] = YamlValue::Scalar(std::string(node.substr(0, middle)));
    reservation.map["limits"] = std::move(limits);
    list.list.push_back(std::move(reservation));
  }
  return true;
}

bool Apply(Form form, const std::string& text, YamlValue& value) {
  if (form == Form::kText) {
    value = YamlValue::Scalar(text);
    return true;
  }
  if (form == Form::kReservedMemory) {
    if (value.kind != YamlValue::Kind::kList) value = YamlValue::List();
    return text.empty() || AddReservedMemory(text, value);
  }
  if (value.kind != YamlValue::Kind::kMap) value = YamlValue::Map();
  if (form == Form::kMapNoSplit) return AddPairs({std::string_view(text)}, '=', value);
  return AddPairs(Split(text, ','), form == Form::kThresholds ? '<' : '=', value);
}

// "--x_y" as "x-y"; "" for what is no flag.
std::string FlagName(std::string_view argument) {
  if (argument.size() < 2 || argument.front() != '-') return {};
  argument.remove_prefix(argument[1] == '-' ? 2 : 1);
  std::string name(argument.substr(0, argument.find('=')));
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

// Calls visit(name, value) for each flag; a flag without '=' takes the next argument unless that is
// a flag itself.
template <class Visit>
void ForEachFlag(const std::vector<std::string>& arguments, const Visit& visit) {
  for (std::size_t i = 0; i < arguments.size() && arguments[i] != "--"; ++i) {
    const std::string name = FlagName(arguments[i]);
    if (name.empty()) continue;
    const std::size_t equals = arguments[i].find('=');
    if (equals != std::string::npos) {
      visit(name, arguments[i].substr(equals + 1));
    } else if (i + 1 < arguments.size() && !arguments[i + 1].starts_with('-')) {
      visit(name, arguments[i + 1]);
    } else {
      visit(name, std::string());
    }
  }
}

void ApplyFieldFlag(const FieldFlag& known, const std::string& value, KubeletFlags& flags) {
  YamlValue& field = flags.fields[known.field];
  if (!Apply(known.form, value, field)) field = YamlValue::Scalar(value);
  flags.flag_of[known.field] = fmt::format("--{}", known.flag);
}

}  // namespace

KubeletFlags ParseKubeletFlags(const std::vector<std::string>& arguments) {
  KubeletFlags flags;
  ForEachFlag(arguments, [&flags](const std::string& name, const std::string& value) {
    if (name == "config") flags.config = value;
    if (name == "config-dir") flags.config_dir = value;
    if (name == "root-dir") flags.root_dir = value;
    for (const FieldFlag& known : kFieldFlags) {
      if (name == known.flag) ApplyFieldFlag(known, value, flags);
    }
  });
  return flags;
}

std::vector<std::string> FlagValues(const std::vector<std::string>& arguments,
                                    const std::string& flag) {
  std::vector<std::string> values;
  ForEachFlag(arguments, [&](const std::string& name, const std::string& value) {
    if (name == flag) values.push_back(value);
  });
  return values;
}

std::vector<std::string> ParseArgumentsFile(const std::string& text) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kVariables = {{
      {"${SNAP_DATA}", "/var/snap/microk8s/current"},
      {"$SNAP_DATA", "/var/snap/microk8s/current"},
      {"${SNAP_COMMON}", "/var/snap/microk8s/common"},
      {"$SNAP_COMMON", "/var/snap/microk8s/common"},
  }};
  std::vector<std::string> arguments;
  for (const std::string_view raw : Split(text, '\n')) {
    std::string line(base::Trim(raw.substr(0, raw.find('\r'))));
    if (!line.starts_with('-')) continue;
    for (const auto& [variable, folder] : kVariables) {
      for (std::size_t at = line.find(variable); at != std::string::npos;
           at = line.find(variable, at + folder.size())) {
        line.replace(at, variable.size(), folder);
      }
    }
    const std::size_t blank = line.find_first_of(" \t");
    if (blank != std::string::npos && line.find('=') > blank) line[blank] = '=';
    arguments.push_back(std::move(line));
  }
  return arguments;
}

}  // namespace podresources
