#include "placement/json_writer.h"

#include <fmt/format.h>
#include <rapidjson/prettywriter.h>
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

#include <algorithm>
#include <cstddef>

namespace placement {
namespace {

// RapidJSON leaves DEL and the controls beyond ASCII as they are, and a terminal obeys some of
// them. Outside of text JSON has none, so they can be found in the whole.
std::string EscapeControls(std::string_view json) {
  std::string escaped;
  escaped.reserve(json.size());
  while (!json.empty()) {
    const Control control = ControlAt(json);
    escaped +=
        control.length == 0 ? std::string(1, json.front()) : fmt::format("\\u{:04x}", control.code);
    json.remove_prefix(std::max<std::size_t>(1, control.length));
  }
  return escaped;
}

// RapidJSON's writers differ in type only.
template <class Writer>
class RapidJsonWriter : public JsonWriter {
 public:
  RapidJsonWriter() : writer_(buffer_) {}
  Writer& writer() { return writer_; }

  void BeginMap() override { writer_.StartObject(); }
  void EndMap() override { writer_.EndObject(); }
  void BeginList() override { writer_.StartArray(); }
  void EndList() override { writer_.EndArray(); }
  void Key(std::string_view key) override { String(key); }
  void String(std::string_view text) override {
    const std::string valid = ValidUtf8(text);
    writer_.String(valid.data(), static_cast<rapidjson::SizeType>(valid.size()));
  }
  void Int(std::int64_t number) override { writer_.Int64(number); }
  void Bool(bool value) override { writer_.Bool(value); }
  std::string text() const override {
    return EscapeControls({buffer_.GetString(), buffer_.GetSize()});
  }

 private:
  rapidjson::StringBuffer buffer_;
  Writer writer_;
};

}  // namespace

std::unique_ptr<JsonWriter> NewJsonWriter(bool indented) {
  if (!indented) {
    return std::make_unique<RapidJsonWriter<rapidjson::Writer<rapidjson::StringBuffer>>>();
  }
  auto pretty =
      std::make_unique<RapidJsonWriter<rapidjson::PrettyWriter<rapidjson::StringBuffer>>>();
  pretty->writer().SetIndent(' ', 2);
  return pretty;
}

}  // namespace placement
