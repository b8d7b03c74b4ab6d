#include "podresources/kubelet_yaml.h"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cstddef>
#include <exception>
#include <string_view>
#include <utility>

#include "base/status_macros.h"

namespace podresources {
namespace {

constexpr std::size_t kMaxBytes = std::size_t{1} << 20;
constexpr int kMaxDepth = 100;
constexpr int kMaxValues = 100000;

absl::Status Wrong(int line, std::string_view problem) {
  return absl::InvalidArgumentError(fmt::format("line {}: {}", line, problem));
}

// yaml-cpp 0.7 parses with one stack frame or more for each level. Levels come from brackets or
// from indentation, where "- - -" and "? ? ?" open several on one line; counting both before
// parsing bounds its stack. Brackets within quotes count too: a bound, not a parser.
absl::Status CheckNesting(std::string_view text) {
  int line = 1;
  int brackets = 0;
  int leading = 0;  // blanks and indicators at the start of the line
  bool at_start = true;
  for (const char c : text) {
    if (c == '\n' || c == '\r') {
      if (c == '\n') ++line;
      leading = 0;
      at_start = true;
      continue;
    }
    if (c == '[' || c == '{') ++brackets;
    if (c == ']' || c == '}') brackets = std::max(0, brackets - 1);
    at_start = at_start && std::string_view(" \t-?:!&*|>").find(c) != std::string_view::npos;
    if (at_start) ++leading;
    if (brackets > kMaxDepth || leading > 4 * kMaxDepth) {
      return Wrong(line, "nested too deeply to be a configuration");
    }
  }
  return absl::OkStatus();
}

// Recursion is bounded by kMaxDepth, also where an alias contains itself.
class Converter {
 public:
  absl::StatusOr<YamlValue> Convert(const YAML::Node& node, int depth) {
    const int line = node.Mark().line + 1;
    if (depth > kMaxDepth) return Wrong(line, "nested too deeply to be a configuration");
    if (++values_ > kMaxValues) return Wrong(line, "too many values for a configuration");
    switch (node.Type()) {
      case YAML::NodeType::Undefined:
      case YAML::NodeType::Null:
        return YamlValue();
      case YAML::NodeType::Scalar:
        return YamlValue::Scalar(node.Scalar());
      case YAML::NodeType::Sequence:
        return ConvertList(node, depth);
      case YAML::NodeType::Map:
        return ConvertMap(node, depth);
    }
    return Wrong(line, "no kind of value that YAML knows");
  }

 private:
  absl::StatusOr<YamlValue> ConvertList(const YAML::Node& node, int depth) {
    YamlValue value = YamlValue::List();
    for (const YAML::Node& element : node) {
      ASSIGN_OR_RETURN(YamlValue converted, Convert(element, depth + 1));
      value.list.push_back(std::move(converted));
    }
    return value;
  }

  absl::StatusOr<YamlValue> ConvertMap(const YAML::Node& node, int depth) {
    YamlValue value = YamlValue::Map();
    for (const auto& member : node) {
      const int line = member.first.Mark().line + 1;
      if (!member.first.IsScalar()) return Wrong(line, "a key that is no text");
      const std::string& key = member.first.Scalar();
      if (key == "<<") return Wrong(line, "merge keys (<<) are not supported");
      ASSIGN_OR_RETURN(YamlValue converted, Convert(member.second, depth + 1));
      if (!value.map.emplace(key, std::move(converted)).second) {
        return Wrong(line, fmt::format("the key \"{}\" appears twice", key));
      }
    }
    return value;
  }

  int values_ = 0;
};

}  // namespace

YamlValue YamlValue::OfKind(Kind kind) {
  YamlValue value;
  value.kind = kind;
  return value;
}

YamlValue YamlValue::Scalar(std::string text) {
  YamlValue value = OfKind(Kind::kScalar);
  value.text = std::move(text);
  return value;
}

const YamlValue* YamlValue::Find(const std::string& name) const {
  const auto member = map.find(name);
  if (member == map.end() || member->second.kind == Kind::kNull) return nullptr;
  return &member->second;
}

absl::StatusOr<YamlValue> ParseYaml(const std::string& text) {
  if (text.size() > kMaxBytes) {
    return absl::InvalidArgumentError(
        fmt::format("{} bytes, too large for a configuration", text.size()));
  }
  RETURN_IF_ERROR(CheckNesting(text));
  try {
    return Converter().Convert(YAML::Load(text), 0);
  } catch (const YAML::Exception& error) {
    return Wrong(error.mark.line + 1, error.msg);
  } catch (const std::exception& error) {
    return absl::InvalidArgumentError(error.what());
  }
}

void MergePatch(YamlValue& base, const YamlValue& patch) {
  if (patch.kind != YamlValue::Kind::kMap) {
    base = patch;
    return;
  }
  if (base.kind != YamlValue::Kind::kMap) base = YamlValue::Map();
  for (const auto& [name, value] : patch.map) {
    if (value.kind == YamlValue::Kind::kNull) {
      base.map.erase(name);
    } else {
      MergePatch(base.map[name], value);
    }
  }
}

}  // namespace podresources
