#pragma once

#include <optional>
#include <string>

namespace kube {

// A YAML scalar as JSON has it.
struct Scalar {
  enum class Kind { kNull, kLiteral, kString };
  Kind kind = Kind::kNull;
  std::string text;  // a number or a truth value as JSON writes it, or the string itself
  bool operator==(const Scalar&) const = default;
};

// What go-yaml v2 makes of a scalar (resolve.go). `tag` is yaml-cpp's: "?" for a plain one without
// tag, "!" for a quoted one, or the tag itself. Nothing for what JSON cannot say: .inf, .nan, and
// tags of other kinds than YAML's own scalars.
std::optional<Scalar> ResolveScalar(const std::string& tag, const std::string& text);

}  // namespace kube
