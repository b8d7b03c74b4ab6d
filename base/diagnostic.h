#pragma once

#include <compare>
#include <string>
#include <vector>

namespace base {

// Something a person should know about what was read: a value that is missing, two sources that
// disagree, a limit that was met. It travels with the result and never replaces it.
struct Diagnostic {
  std::string code;  // stable and CamelCase, for machines: "NumaNodesMerged"
  std::string
      subject;  // what it is about: "0000:1b:00.0", "node 3", "pod ml/llm-0"; "" is the host
  std::string message;  // one sentence for people, with the numbers
  auto operator<=>(const Diagnostic&) const = default;
};

using Diagnostics = std::vector<Diagnostic>;

}  // namespace base
