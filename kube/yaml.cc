#include "kube/yaml.h"

#include <fmt/format.h>
#include <rapidjson/error/en.h>
#include <rapidjson/reader.h>
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <sstream>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "base/status_macros.h"
#include "base/text.h"
#include "kube/yaml_scalar.h"

namespace kube {
namespace {

constexpr std::size_t kMaxBytes = std::size_t{64} << 20;
constexpr std::size_t kMaxValues = 4'000'000;
constexpr int kMaxDepth = 100;

using Writer = rapidjson::Writer<rapidjson::StringBuffer, rapidjson::UTF8<>, rapidjson::UTF8<>,
                                 rapidjson::CrtAllocator, rapidjson::kWriteValidateEncodingFlag>;

// --- JSON ---

// Hands a JSON text on to a writer and refuses what the header says. Numbers pass as text.
class CompactJson : public rapidjson::BaseReaderHandler<rapidjson::UTF8<>, CompactJson> {
 public:
  explicit CompactJson(Writer& writer) : writer_(writer) {}

  const std::string& problem() const { return problem_; }

  bool Null() { return writer_.Null(); }
  bool Bool(bool value) { return writer_.Bool(value); }
  bool RawNumber(const char* text, rapidjson::SizeType size, bool /*copy*/) {
    return writer_.RawValue(text, size, rapidjson::kNumberType);
  }
  bool String(const char* text, rapidjson::SizeType size, bool /*copy*/) {
    return writer_.String(text, size);
  }
  bool Key(const char* text, rapidjson::SizeType size, bool /*copy*/) {
    if (!keys_.back().emplace(text, size).second) {
      return Fail(fmt::format("the key \"{:.80}\" appears twice", std::string(text, size)));
    }
    return writer_.Key(text, size);
  }
  bool StartObject() { return Enter() && writer_.StartObject(); }
  bool StartArray() { return Enter() && writer_.StartArray(); }
  bool EndObject(rapidjson::SizeType /*members*/) { return Leave() && writer_.EndObject(); }
  bool EndArray(rapidjson::SizeType /*elements*/) { return Leave() && writer_.EndArray(); }

 private:
  bool Fail(std::string problem) {
    problem_ = std::move(problem);
    return false;
  }
  bool Enter() {
    if (keys_.size() >= kMaxDepth) return Fail("nested too deeply");
    keys_.emplace_back();
    return true;
  }
  bool Leave() {
    keys_.pop_back();
    return true;
  }

  Writer& writer_;
  std::vector<std::set<std::string>> keys_;  // of the objects around; empty for a list
  std::string problem_;
};

// JSON values one after the other.
absl::StatusOr<std::vector<std::string>> ReadJson(const std::string& text) {
  constexpr unsigned kFlags = rapidjson::kParseIterativeFlag | rapidjson::kParseStopWhenDoneFlag |
                              rapidjson::kParseNumbersAsStringsFlag |
                              rapidjson::kParseValidateEncodingFlag;
  std::vector<std::string> documents;
  rapidjson::StringStream stream(text.c_str());  // ends at a NUL, which JSON does not have
  rapidjson::Reader reader;
  while (true) {
    rapidjson::SkipWhitespace(stream);
    if (stream.Tell() >= text.size()) return documents;
    rapidjson::StringBuffer buffer;
    Writer writer(buffer);
    CompactJson compact(writer);
    const rapidjson::ParseResult result = reader.Parse<kFlags>(stream, compact);
    if (result.IsError()) {
      const std::string problem = compact.problem().empty()
                                      ? rapidjson::GetParseError_En(result.Code())
                                      : compact.problem();
      return absl::InvalidArgumentError(fmt::format("JSON, byte {}: {}", result.Offset(), problem));
    }
    documents.emplace_back(buffer.GetString(), buffer.GetSize());
    if (documents.back() == "null") documents.pop_back();
  }
}

// --- YAML ---

struct Node;
using Ref = std::shared_ptr<const Node>;  // an alias shares what its anchor names

struct Node {
  enum class Kind { kScalar, kList, kMap };
  Kind kind = Kind::kScalar;
  Scalar scalar;
  std::vector<Ref> list;
  std::vector<std::pair<std::string, Ref>> map;  // in the text's order
  // With aliases followed.
  int depth = 0;
  std::size_t values = 1;
  std::size_t bytes = 0;
};

[[noreturn]] void Throw(const YAML::Mark& mark, const std::string& problem) {
  throw YAML::ParserException(mark, problem);
}

// Makes trees of the parser's events. yaml-cpp tells of errors by throwing; so does this, within
// ReadYaml alone.
class Builder : public YAML::EventHandler {
 public:
  // The document that was read last; null if it holds nothing.
  Ref Take() { return std::exchange(document_, nullptr); }

  void OnDocumentStart(const YAML::Mark& /*mark*/) override { anchors_.clear(); }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    OnScalar(mark, "?", anchor, "");
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end()) Throw(mark, "an alias within what it stands for");
    Put(mark, found->second, false);
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    std::optional<Scalar> scalar = ResolveScalar(tag, value);
    if (!scalar) Throw(mark, fmt::format("\"{:.60}\" is nothing that JSON can say", value));
    const bool merge = tag == "?" && value == "<<";
    auto node = std::make_shared<Node>();
    node->bytes = scalar->text.size() + 3;  // quotes and what stands before or after
    node->scalar = *std::move(scalar);
    Finish(mark, anchor, std::move(node), merge);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& /*tag*/, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value /*style*/) override {
    Open(mark, anchor, Node::Kind::kList);
  }
  void OnMapStart(const YAML::Mark& mark, const std::string& /*tag*/, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value /*style*/) override {
    Open(mark, anchor, Node::Kind::kMap);
  }
  void OnSequenceEnd() override { Close(); }
  void OnMapEnd() override { Close(); }

 private:
  struct Level {
    YAML::Mark mark;
    YAML::anchor_t anchor = 0;
    std::shared_ptr<Node> node;
    std::optional<std::string> key = {};  // of a map: read, its value is not
    bool merge = false;                   // that key is a plain <<
    // Of the keys in the map; true if it is the map's own, not merged in.
    std::map<std::string, std::pair<std::size_t, bool>> places = {};
  };

  void Open(const YAML::Mark& mark, YAML::anchor_t anchor, Node::Kind kind) {
    if (levels_.size() >= kMaxDepth) Throw(mark, "nested too deeply");
    auto node = std::make_shared<Node>();
    node->kind = kind;
    node->depth = 1;
    node->bytes = 3;
    levels_.push_back({.mark = mark, .anchor = anchor, .node = std::move(node)});
  }

  void Close() {
    Level level = std::move(levels_.back());
    levels_.pop_back();
    for (const Ref& element : level.node->list) Count(level.mark, *level.node, *element);
    for (const auto& [key, value] : level.node->map) {
      level.node->bytes += key.size() + 3;
      Count(level.mark, *level.node, *value);
    }
    Finish(level.mark, level.anchor, std::move(level.node), false);
  }

  static void Count(const YAML::Mark& mark, Node& node, const Node& part) {
    node.depth = std::max(node.depth, part.depth + 1);
    node.values += part.values;
    node.bytes += part.bytes;
    if (node.depth > kMaxDepth) Throw(mark, "nested too deeply");
    if (node.values > kMaxValues || node.bytes > kMaxBytes) Throw(mark, "too many values");
  }

  void Finish(const YAML::Mark& mark, YAML::anchor_t anchor, Ref node, bool merge) {
    if (anchor != YAML::NullAnchor) anchors_[anchor] = node;
    Put(mark, std::move(node), merge);
  }

  void Put(const YAML::Mark& mark, Ref node, bool merge) {
    if (levels_.empty()) {
      document_ = std::move(node);
      return;
    }
    Level& level = levels_.back();
    if (level.node->kind == Node::Kind::kList) {
      level.node->list.push_back(std::move(node));
    } else if (!level.key) {
      level.key = KeyOf(mark, *node);
      level.merge = merge;
    } else if (level.merge) {
      Merge(mark, level, *node);
      level.key.reset();
    } else {
      if (!Set(level, *level.key, std::move(node), true)) {
        Throw(mark, fmt::format("the key \"{:.80}\" appears twice", *level.key));
      }
      level.key.reset();
    }
  }

  static std::string KeyOf(const YAML::Mark& mark, const Node& node) {
    if (node.kind != Node::Kind::kScalar || node.scalar.kind == Scalar::Kind::kNull) {
      Throw(mark, "a key that is a list, a map or null");
    }
    return node.scalar.text;
  }

  // Later ones replace what was merged in, and what is merged in replaces earlier ones, as go-yaml
  // v2 does. False if both are the map's own.
  static bool Set(Level& level, const std::string& key, Ref value, bool own) {
    const auto [entry, added] = level.places.try_emplace(key, level.node->map.size(), own);
    if (added) {
      level.node->map.emplace_back(key, std::move(value));
      return true;
    }
    if (own && entry->second.second) return false;
    entry->second.second = entry->second.second || own;
    level.node->map[entry->second.first].second = std::move(value);
    return true;
  }

  static void Merge(const YAML::Mark& mark, Level& level, const Node& node) {
    if (node.kind == Node::Kind::kMap) {
      for (const auto& [key, value] : node.map) Set(level, key, value, false);
      return;
    }
    if (node.kind != Node::Kind::kList) Throw(mark, "<< without a map");
    for (auto part = node.list.rbegin(); part != node.list.rend(); ++part) {
      if ((*part)->kind != Node::Kind::kMap) Throw(mark, "<< without a map");
      for (const auto& [key, value] : (*part)->map) Set(level, key, value, false);
    }
  }

  std::vector<Level> levels_;
  std::map<YAML::anchor_t, Ref> anchors_;  // complete ones of this document
  Ref document_;
};

// False if a string is not UTF-8. Recursion is bounded by kMaxDepth.
bool Write(const Node& node, Writer& writer) {
  const auto size = [](const std::string& text) {
    return static_cast<rapidjson::SizeType>(text.size());
  };
  bool good = true;
  switch (node.kind) {
    case Node::Kind::kScalar: {
      const std::string& text = node.scalar.text;
      if (node.scalar.kind == Scalar::Kind::kString) return writer.String(text.data(), size(text));
      if (node.scalar.kind == Scalar::Kind::kNull) return writer.Null();
      return writer.RawValue(text.data(), text.size(), rapidjson::kNumberType);
    }
    case Node::Kind::kList:
      writer.StartArray();
      for (const Ref& element : node.list) good = good && Write(*element, writer);
      return writer.EndArray() && good;
    case Node::Kind::kMap:
      writer.StartObject();
      for (const auto& [key, value] : node.map) {
        good = good && writer.Key(key.data(), size(key)) && Write(*value, writer);
      }
      return writer.EndObject() && good;
  }
  return false;
}

absl::StatusOr<std::vector<std::string>> ReadYaml(const std::string& text) {
  std::vector<std::string> documents;
  try {
    std::istringstream stream(text);
    YAML::Parser parser(stream);
    Builder builder;
    while (parser.HandleNextDocument(builder)) {
      const Ref document = builder.Take();
      if (document == nullptr ||
          (document->kind == Node::Kind::kScalar && document->scalar.kind == Scalar::Kind::kNull)) {
        continue;
      }
      rapidjson::StringBuffer buffer;
      Writer writer(buffer);
      if (!Write(*document, writer)) return absl::InvalidArgumentError("a text is not UTF-8");
      documents.emplace_back(buffer.GetString(), buffer.GetSize());
    }
  } catch (const YAML::Exception& error) {
    return absl::InvalidArgumentError(
        fmt::format("YAML, line {}: {}", error.mark.line + 1, error.msg));
  } catch (const std::exception& error) {
    return absl::InvalidArgumentError(error.what());
  }
  return documents;
}

}  // namespace

absl::StatusOr<std::vector<std::string>> YamlToJson(const std::string& text) {
  if (text.size() > kMaxBytes) {
    return absl::InvalidArgumentError(fmt::format("{} bytes, too large to be read", text.size()));
  }
  const std::string_view start = base::Trim(text);
  if (start.empty() || start.front() != '{') return ReadYaml(text);
  // Either JSON or a YAML map in braces, as kubectl takes it.
  absl::StatusOr<std::vector<std::string>> json = ReadJson(text);
  if (json.ok()) return json;
  absl::StatusOr<std::vector<std::string>> yaml = ReadYaml(text);
  return yaml.ok() ? yaml : json;
}

}  // namespace kube
