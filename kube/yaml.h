#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace kube {

// What kubectl reads from a file: any number of YAML documents, or of JSON values one after the
// other. One JSON text for each document, compact; documents that hold nothing are left out.
//
// Plain scalars become what kubectl's reader (sigs.k8s.io/yaml, that is YAML 1.1 as go-yaml v2
// reads it) makes of them: true, yes, on and their kind are truth values, ~ and nothing are null,
// 0x1f, 017 and 1_000 are whole numbers; quoted ones are strings. Keys become strings. Numbers that
// JSON has no words for (.inf, .nan) are refused. JSON is passed on with its numbers untouched.
//
// A merge key (<<) puts in what it names; a key of its own that stands after it replaces that.
//
// InvalidArgument names the line (of YAML) or the byte (of JSON). Refused: text that is not UTF-8,
// a key that appears twice, a key that is a list, a map or null, tags other than YAML's own for
// scalars, an alias that leads to itself. Bounded, so that no input exhausts memory or stack: 64
// MiB of text, 100 levels, and of YAML 4 million values in 64 MiB after aliases are followed.
absl::StatusOr<std::vector<std::string>> YamlToJson(const std::string& text);

}  // namespace kube
