#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/cpu_set.h"
#include "kube/pod.h"

namespace cli {

// A JSON value as plain values.
struct Json {
  enum class Kind { kNull, kBool, kInteger, kReal, kText, kList, kMap };
  Kind kind = Kind::kNull;
  bool flag = false;
  std::int64_t integer = 0;
  std::string text;                // of kReal: its shortest decimal form
  std::vector<std::string> names;  // of kMap: those of `values`
  std::vector<Json> values;        // of kList and kMap, in the text's order

  // A member; nullptr if there is none.
  const Json* Find(std::string_view name) const;
};

// InvalidArgument if the text is no JSON, is nested deeper than 100 levels, or an object has a
// member twice.
absl::StatusOr<Json> ParseJson(const std::string& text);

// Amounts above this are refused: sums of many of them stay within 64 bits.
inline constexpr std::int64_t kMaxAmount = std::int64_t{1} << 50;

// Reads a document strictly: what is absent or null has a default, what is there with a type or
// value that cannot be is an error that names its place ("events[3].pod.uid: is no text"). The
// first error is kept, in the status that all readers of a document share; what is read after it
// does not count. Does not outlive the document.
class JsonReader {
 public:
  JsonReader(const Json& json, absl::Status& error) : json_(&json), error_(&error) {}

  bool present() const { return json_ != nullptr; }
  bool is_map() const { return present() && json_->kind == Json::Kind::kMap; }

  // A member of this object. Need: it is an error if there is none.
  JsonReader Find(const char* name) const;
  JsonReader Need(const char* name) const;

  std::string Text() const;  // "" if absent
  bool Flag() const;         // false if absent
  std::int64_t Integer(std::int64_t least, std::int64_t most, std::int64_t otherwise) const;
  std::int64_t Amount() const { return Integer(0, kMaxAmount, 0); }
  int Id(int otherwise = 0) const { return static_cast<int>(Integer(0, 65535, otherwise)); }
  // One of these texts; "" if absent.
  std::string OneOf(std::span<const char* const> known) const;
  std::string Word() const;     // a text, a truth value or a whole number, as text
  base::CpuSet Cpus() const;    // "0-3,8"
  base::CpuSet CpuIds() const;  // [0, 1]
  base::NumaMask NodeIds() const;
  std::vector<std::string> Texts() const;
  // Kubernetes quantities, as text or as a whole number, not below 0 and not above kMaxAmount.
  std::int64_t Quantity() const;
  kube::Resources Quantities() const;  // by resource name

  // Calls visit(reader) for each element of a list; a null among them is an error.
  template <class Visit>
  void Each(Visit visit) const {
    if (!Is(Json::Kind::kList, "is no list")) return;
    for (std::size_t i = 0; i < json_->values.size(); ++i) {
      const JsonReader element = Element(i);
      element.present() ? visit(element) : element.Fail("is null");
    }
  }
  // Calls visit(name, reader) for each member of an object, nulls left out.
  template <class Visit>
  void EachMember(Visit visit) const {
    if (!Is(Json::Kind::kMap, "is no object")) return;
    for (std::size_t i = 0; i < json_->values.size(); ++i) {
      const std::string& name = json_->names[i];
      const JsonReader member = Member(name, &json_->values[i]);
      if (member.present()) visit(name, member);
    }
  }

  // An error if the object has a member with another name than these, unless it begins so.
  void RefuseOthers(std::initializer_list<const char*> known,
                    const char* beginning = nullptr) const;
  void Fail(const std::string& why) const;

 private:
  JsonReader(const Json* json, std::string path, absl::Status* error)
      : json_(json != nullptr && json->kind == Json::Kind::kNull ? nullptr : json),
        path_(std::move(path)),
        error_(error) {}
  bool Is(Json::Kind kind, const char* otherwise) const;
  JsonReader Member(const std::string& name, const Json* value) const;
  JsonReader Element(std::size_t index) const;
  template <class Set>
  Set Ids() const;
  std::int64_t Scaled(bool milli) const;

  const Json* json_;  // nullptr: absent or null
  std::string path_;  // "" at the top
  absl::Status* error_;
};

}  // namespace cli
