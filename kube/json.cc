#include "kube/json.h"

#include <fmt/format.h>
#include <rapidjson/error/en.h>
#include <rapidjson/memorystream.h>
#include <rapidjson/reader.h>
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

#include <cstddef>
#include <utility>

#include "absl/status/status.h"
#include "base/status_macros.h"
#include "base/text.h"

namespace kube {
namespace {

using rapidjson::MemoryStream;
using rapidjson::SizeType;

// More than any object has: Kubernetes' own schemas nest a few dozen. The reader keeps a note for
// each level.
constexpr int kMaxDepth = 1000;
// More than a page of a list, or any object, has: each costs some words, and {} only three bytes.
constexpr std::size_t kMaxMembers = 100'000;

// A member of an object, or an element of a list (without a name).
struct Slice {
  std::string name;
  std::string_view value;
};

// Cuts a text into its outermost members or elements. RapidJSON's iterative reader calls a handler
// before it takes a bracket and after it took a scalar or a key.
class Slicer : public rapidjson::BaseReaderHandler<rapidjson::UTF8<>, Slicer> {
 public:
  Slicer(std::string_view text, const MemoryStream& stream) : text_(text), stream_(stream) {}

  bool Key(const char* name, SizeType length, bool /*copy*/) {
    if (depth_ == 1) name_.assign(name, length);
    if (depth_ == 1) from_ = stream_.Tell();
    return true;
  }
  bool StartObject() { return Open(); }
  bool StartArray() { return Open(); }
  bool EndObject(SizeType /*members*/) { return Close(); }
  bool EndArray(SizeType /*elements*/) { return Close(); }
  bool Default() { return Take(stream_.Tell()); }  // every scalar

  std::vector<Slice> slices() && { return std::move(slices_); }
  bool too_deep() const { return depth_ > kMaxDepth; }
  bool too_many() const { return slices_.size() > kMaxMembers; }

 private:
  bool Open() {
    if (depth_ == 0) from_ = stream_.Tell() + 1;
    ++depth_;
    return !too_deep();  // which ends the reading
  }
  bool Close() {
    --depth_;
    return Take(stream_.Tell() + 1);
  }
  // A value ends at `end`; between where the one before it ended and it are only delimiters.
  bool Take(std::size_t end) {
    if (depth_ != 1) return true;
    const std::size_t begin = text_.find_first_not_of(" \t\r\n:,", from_);
    slices_.push_back({.name = name_, .value = text_.substr(begin, end - begin)});
    from_ = end;
    return !too_many();
  }

  const std::string_view text_;
  const MemoryStream& stream_;
  int depth_ = 0;
  std::size_t from_ = 0;  // where the last key or value at depth 1 ended
  std::string name_;
  std::vector<Slice> slices_;
};

class StringTaker : public rapidjson::BaseReaderHandler<rapidjson::UTF8<>, StringTaker> {
 public:
  bool String(const char* text, SizeType length, bool /*copy*/) {
    value.assign(text, length);
    return true;
  }
  std::string value;
};

// Numbers stay text, so none loses digits.
constexpr unsigned kFlags = rapidjson::kParseIterativeFlag | rapidjson::kParseValidateEncodingFlag |
                            rapidjson::kParseNumbersAsStringsFlag;

absl::Status Wrong(const std::string& path, std::string_view problem) {
  return absl::InvalidArgumentError(path.empty() ? std::string(problem)
                                                 : fmt::format("{}: {}", path, problem));
}

absl::StatusOr<std::vector<Slice>> SliceUp(std::string_view text, const std::string& path) {
  MemoryStream stream(text.data(), text.size());
  rapidjson::Reader reader;
  Slicer slicer(text, stream);
  const rapidjson::ParseResult result = reader.Parse<kFlags>(stream, slicer);
  if (slicer.too_deep()) {
    return Wrong(path, fmt::format("is nested deeper than {} levels", kMaxDepth));
  }
  if (slicer.too_many()) {
    return Wrong(path, fmt::format("has more than {} members", kMaxMembers));
  }
  if (result.IsError()) {
    return Wrong(path, fmt::format("is no JSON: {} at byte {}",
                                   rapidjson::GetParseError_En(result.Code()), result.Offset()));
  }
  // A NUL ends the text for the reader.
  if (stream.Tell() != text.size()) {
    return Wrong(path, fmt::format("is no JSON: a NUL at byte {}", stream.Tell()));
  }
  return std::move(slicer).slices();
}

bool StartsWith(std::string_view value, char first) {
  return !value.empty() && value.front() == first;
}

absl::StatusOr<std::string> Unquote(std::string_view value, const std::string& path) {
  if (!StartsWith(value, '"')) return Wrong(path, "is no string");
  MemoryStream stream(value.data(), value.size());
  rapidjson::Reader reader;
  StringTaker taker;
  reader.Parse<kFlags>(stream, taker);  // it was checked when it was cut out
  return std::move(taker.value);
}

}  // namespace

absl::StatusOr<JsonObject> JsonObject::Parse(std::string_view text) { return ParseAt(text, ""); }

absl::StatusOr<JsonObject> JsonObject::ParseAt(std::string_view text, std::string path) {
  text = base::Trim(text);
  JsonObject object;
  ASSIGN_OR_RETURN(std::vector<Slice> slices, SliceUp(text, path));
  if (!StartsWith(text, '{')) return Wrong(path, "is no object");
  object.text_ = text;
  object.path_ = std::move(path);
  for (Slice& slice : slices) {
    if (slice.value == "null") {
      object.members_.erase(slice.name);
    } else {
      object.members_[std::move(slice.name)] = slice.value;
    }
  }
  return object;
}

std::vector<std::string> JsonObject::Names() const {
  std::vector<std::string> names;
  names.reserve(members_.size());
  for (const auto& [name, value] : members_) names.push_back(name);
  return names;
}

std::string_view JsonObject::Raw(const std::string& name) const {
  const auto member = members_.find(name);
  return member == members_.end() ? std::string_view() : member->second;
}

std::string JsonObject::Path(const std::string& name) const {
  return path_.empty() ? name : fmt::format("{}.{}", path_, name);
}

absl::StatusOr<std::string> JsonObject::Text(const std::string& name) const {
  if (!Has(name)) return std::string();
  return Unquote(Raw(name), Path(name));
}

absl::StatusOr<bool> JsonObject::Flag(const std::string& name) const {
  const std::string_view value = Raw(name);
  if (value.empty() || value == "false") return false;
  if (value == "true") return true;
  return Wrong(Path(name), "is neither true nor false");
}

absl::StatusOr<std::optional<std::int64_t>> JsonObject::Number(const std::string& name) const {
  if (!Has(name)) return std::nullopt;
  const std::optional<std::int64_t> number = base::ParseNumber<std::int64_t>(Raw(name));
  if (!number) return Wrong(Path(name), "is no whole number");
  return number;
}

absl::StatusOr<std::vector<std::int64_t>> JsonObject::Numbers(const std::string& name) const {
  ASSIGN_OR_RETURN(const std::vector<std::string_view> elements, Elements(name));
  std::vector<std::int64_t> numbers;
  for (const std::string_view element : elements) {
    const std::optional<std::int64_t> number = base::ParseNumber<std::int64_t>(element);
    if (!number) return Wrong(Path(name), "is no list of whole numbers");
    numbers.push_back(*number);
  }
  return numbers;
}

absl::StatusOr<JsonObject> JsonObject::Object(const std::string& name) const {
  if (!Has(name)) return JsonObject();
  return ParseAt(Raw(name), Path(name));
}

absl::StatusOr<std::vector<std::string_view>> JsonObject::Elements(const std::string& name) const {
  std::vector<std::string_view> elements;
  if (!Has(name)) return elements;
  if (!StartsWith(Raw(name), '[')) return Wrong(Path(name), "is no list");
  ASSIGN_OR_RETURN(const std::vector<Slice> slices, SliceUp(Raw(name), Path(name)));
  elements.reserve(slices.size());
  for (const Slice& slice : slices) elements.push_back(slice.value);
  return elements;
}

absl::Status JsonObject::EachObject(
    const std::string& name, const std::function<absl::Status(const JsonObject&)>& take) const {
  ASSIGN_OR_RETURN(const std::vector<std::string_view> elements, Elements(name));
  for (std::size_t i = 0; i < elements.size(); ++i) {
    ASSIGN_OR_RETURN(const JsonObject object,
                     ParseAt(elements[i], fmt::format("{}[{}]", Path(name), i)));
    RETURN_IF_ERROR(take(object));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<JsonObject>> JsonObject::Objects(const std::string& name) const {
  std::vector<JsonObject> objects;
  RETURN_IF_ERROR(EachObject(name, [&objects](const JsonObject& object) {
    objects.push_back(object);
    return absl::OkStatus();
  }));
  return objects;
}

absl::StatusOr<std::vector<std::string>> JsonObject::Texts(const std::string& name) const {
  ASSIGN_OR_RETURN(const std::vector<std::string_view> elements, Elements(name));
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < elements.size(); ++i) {
    ASSIGN_OR_RETURN(std::string text, Unquote(elements[i], fmt::format("{}[{}]", Path(name), i)));
    texts.push_back(std::move(text));
  }
  return texts;
}

std::string JsonQuote(std::string_view text) {
  rapidjson::StringBuffer buffer;
  rapidjson::Writer<rapidjson::StringBuffer> writer(buffer);
  writer.String(text.data(), static_cast<SizeType>(text.size()));
  return {buffer.GetString(), buffer.GetSize()};
}

}  // namespace kube
