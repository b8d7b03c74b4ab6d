#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace kube {

// A JSON object as slices of its text: nothing is built but the list of its members, so a large
// object costs no more than its text, which must outlive this. Absent and null are the same, as for
// Kubernetes; of a name that appears twice the last counts. All errors are InvalidArgument and name
// the field from the root: "users[0].user.token: is no string".
class JsonObject {
 public:
  JsonObject() = default;  // without members

  // Checks the whole text. Nesting takes heap and no stack, and ends at 1000 levels; an object or a
  // list may have 100,000 members.
  static absl::StatusOr<JsonObject> Parse(std::string_view text);

  bool Has(const std::string& name) const { return members_.contains(name); }
  // Of all members that are not null, sorted.
  std::vector<std::string> Names() const;
  // Its value as it stands in the text; "" if absent.
  std::string_view Raw(const std::string& name) const;
  absl::StatusOr<std::string> Text(const std::string& name) const;  // "" if absent
  absl::StatusOr<bool> Flag(const std::string& name) const;         // false if absent
  absl::StatusOr<std::optional<std::int64_t>> Number(const std::string& name) const;
  absl::StatusOr<std::vector<std::int64_t>> Numbers(const std::string& name) const;
  absl::StatusOr<JsonObject> Object(const std::string& name) const;  // without members if absent
  absl::StatusOr<std::vector<JsonObject>> Objects(const std::string& name) const;
  // The same one after the other, until the first error: of a long list only one is held.
  absl::Status EachObject(const std::string& name,
                          const std::function<absl::Status(const JsonObject&)>& take) const;
  absl::StatusOr<std::vector<std::string>> Texts(const std::string& name) const;

  // The path of a member, for messages of those who look closer.
  std::string Path(const std::string& name) const;
  // The object's own text.
  std::string_view text() const { return text_; }

 private:
  static absl::StatusOr<JsonObject> ParseAt(std::string_view text, std::string path);
  absl::StatusOr<std::vector<std::string_view>> Elements(const std::string& name) const;

  std::string_view text_;
  std::string path_;  // "" for the root
  std::map<std::string, std::string_view> members_;
};

// A text as a JSON string, with its quotes.
std::string JsonQuote(std::string_view text);

}  // namespace kube
