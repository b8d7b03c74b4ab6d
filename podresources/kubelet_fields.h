#pragma once

#include <map>
#include <string>

#include "podresources/kubelet_config.h"
#include "podresources/kubelet_flags.h"
#include "podresources/kubelet_yaml.h"

namespace podresources {

// What the kubelet was given, laid over each other in its order: the file, drop-in files, flags.
struct MergedConfig {
  struct Origin {
    ConfigSource source = ConfigSource::kUnknown;
    std::string where;
  };
  YamlValue tree = YamlValue::Map();
  std::map<std::string, Origin> origins;  // of the top-level fields: who set it last
  bool whole = false;  // nothing is missing: a field that is not set has the kubelet's default
};

void LayDocument(const YamlValue& document, const MergedConfig::Origin& origin,
                 MergedConfig& merged);
void LayFlags(const KubeletFlags& flags, MergedConfig& merged);
// To call between the file and the drop-ins: evictionHard is the one default that is put in there.
void LayEvictionDefault(MergedConfig& merged);

// Sets the sourced values of `config` and podLogsDir. A field whose value is not understood is
// unknown and has a diagnostic.
void ReadFields(const MergedConfig& merged, KubeletConfig& config);

}  // namespace podresources
