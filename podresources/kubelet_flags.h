#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "podresources/kubelet_yaml.h"

namespace podresources {

// The flags of a kubelet that matter here. Those that stand for a field of its configuration come
// as that field, in the form that the file would have; a value of another form stays a scalar,
// which whoever reads the field refuses.
struct KubeletFlags {
  std::optional<std::string> config;
  std::optional<std::string> config_dir;
  std::optional<std::string> root_dir;
  std::map<std::string, YamlValue> fields;     // "topologyManagerPolicy"
  std::map<std::string, std::string> flag_of;  // field -> "--topology-manager-policy"
};

// As the kubelet reads its arguments: "--x v", "--x=v", also with one dash and with '_' for '-';
// the last one wins, except that options of a map add up. A map replaces that of the files;
// --feature-gates is laid over it by whoever merges.
KubeletFlags ParseKubeletFlags(const std::vector<std::string>& arguments);

// The values of a flag that may be repeated, such as k3s's --kubelet-arg, without the '=' form's
// name.
std::vector<std::string> FlagValues(const std::vector<std::string>& arguments,
                                    const std::string& flag);

// Text to a list of lines that look like flags: MicroK8s keeps a kubelet's arguments in a file, one
// a line, with variables of its snap.
std::vector<std::string> ParseArgumentsFile(const std::string& text);

}  // namespace podresources
