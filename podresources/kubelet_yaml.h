#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace podresources {

// A YAML or JSON document as plain values. Scalars stay text: what a number or a truth value means
// is for whoever knows the field.
struct YamlValue {
  enum class Kind { kNull, kScalar, kList, kMap };
  Kind kind = Kind::kNull;
  std::string text;
  std::vector<YamlValue> list;
  std::map<std::string, YamlValue> map;

  static YamlValue Scalar(std::string text);
  static YamlValue Map() { return OfKind(Kind::kMap); }
  static YamlValue List() { return OfKind(Kind::kList); }
  // A member of a map; nullptr if this is no map, has no such member or a null one.
  const YamlValue* Find(const std::string& name) const;

 private:
  static YamlValue OfKind(Kind kind);
};

// The first document of a text. InvalidArgument names the line. Bounded, so that no input can
// exhaust memory or stack: 1 MiB of text, 100 levels, 100,000 values after aliases are followed.
// Refused because readers disagree on them: a key that appears twice, merge keys ("<<").
absl::StatusOr<YamlValue> ParseYaml(const std::string& text);

// JSON merge patch (RFC 7386), the kubelet's way to lay a drop-in file over what it has: maps are
// merged, lists and scalars replaced, null removes.
void MergePatch(YamlValue& base, const YamlValue& patch);

}  // namespace podresources
