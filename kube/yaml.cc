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
#include <cstdint>
#include <exception>
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

using Writer = rapidjson::Writer<rapidjson::StringBuffer>;

// RapidJSON's own check reads beyond a text that ends in the middle of a character.
bool IsUtf8(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    const std::uint32_t lead = static_cast<unsigned char>(text[i++]);
    if (lead < 0x80) continue;
    if (lead < 0xC2 || lead > 0xF4) return false;
    const int more = lead < 0xE0 ? 1 : lead < 0xF0 ? 2 : 3;
    std::uint32_t code = lead & (0x3FU >> more);
    for (int k = 0; k < more; ++k, ++i) {
      if (i == text.size() || (text[i] & 0xC0) != 0x80) return false;
      code = code << 6 | (static_cast<unsigned char>(text[i]) & 0x3FU);
    }
    const bool longer_than_needed = code < (more == 2 ? 0x800U : more == 3 ? 0x10000U : 0x80U);
    if (longer_than_needed || (code >> 11) == 0x1B || code > 0x10FFFF) return false;
  }
  return true;
}

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
                              rapidjson::kParseNumbersAsStringsFlag;
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

struct Tree;
using Ref = std::shared_ptr<const Tree>;  // an alias shares what its anchor names

struct Tree {
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

  // yaml-cpp 0.7 takes a bracket that closes nothing for an empty document, and for another one,
  // and never gets past it.
  void OnDocumentStart(const YAML::Mark& mark) override {
    if (mark.pos == start_) Throw(mark, "what closes here was never opened");
    start_ = mark.pos;
    anchors_.clear();
  }
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
    auto tree = std::make_shared<Tree>();
    tree->bytes = scalar->text.size() + 3;  // quotes and what stands before or after
    tree->scalar = *std::move(scalar);
    Finish(mark, anchor, std::move(tree), merge);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& /*tag*/, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value /*style*/) override {
    Open(mark, anchor, Tree::Kind::kList);
  }
  void OnMapStart(const YAML::Mark& mark, const std::string& /*tag*/, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value /*style*/) override {
    Open(mark, anchor, Tree::Kind::kMap);
  }
  void OnSequenceEnd() override { Close(); }
  void OnMapEnd() override { Close(); }

 private:
  struct Level {
    YAML::Mark mark;
    YAML::anchor_t anchor = 0;
    std::shared_ptr<Tree> tree;
    std::optional<std::string> key = {};  // of a map: read, its value is not
    bool merge = false;                   // that key is a plain <<
    // Of the keys in the map; true if it is the map's own, not merged in.
    std::map<std::string, std::pair<std::size_t, bool>> places = {};
  };

  void Open(const YAML::Mark& mark, YAML::anchor_t anchor, Tree::Kind kind) {
    if (levels_.size() >= kMaxDepth) Throw(mark, "nested too deeply");
    auto tree = std::make_shared<Tree>();
    tree->kind = kind;
    tree->depth = 1;
    tree->bytes = 3;
    levels_.push_back({.mark = mark, .anchor = anchor, .tree = std::move(tree)});
  }

  void Close() {
    Level level = std::move(levels_.back());
    levels_.pop_back();
    for (const Ref& element : level.tree->list) Count(level.mark, *level.tree, *element);
    for (const auto& [key, value] : level.tree->map) {
      level.tree->bytes += key.size() + 3;
      Count(level.mark, *level.tree, *value);
    }
    Finish(level.mark, level.anchor, std::move(level.tree), false);
  }

  static void Count(const YAML::Mark& mark, Tree& tree, const Tree& part) {
    tree.depth = std::max(tree.depth, part.depth + 1);
    tree.values += part.values;
    tree.bytes += part.bytes;
    if (tree.depth > kMaxDepth) Throw(mark, "nested too deeply");
    if (tree.values > kMaxValues || tree.bytes > kMaxBytes) Throw(mark, "too many values");
  }

  void Finish(const YAML::Mark& mark, YAML::anchor_t anchor, Ref tree, bool merge) {
    if (anchor != YAML::NullAnchor) anchors_[anchor] = tree;
    Put(mark, std::move(tree), merge);
  }

  void Put(const YAML::Mark& mark, Ref tree, bool merge) {
    if (levels_.empty()) {
      document_ = std::move(tree);
      return;
    }
    Level& level = levels_.back();
    if (level.tree->kind == Tree::Kind::kList) {
      level.tree->list.push_back(std::move(tree));
    } else if (!level.key) {
      level.key = KeyOf(mark, *tree);
      level.merge = merge;
    } else if (level.merge) {
      Merge(mark, level, *tree);
      level.key.reset();
    } else {
      if (!Set(level, *level.key, std::move(tree), true)) {
        Throw(mark, fmt::format("the key \"{:.80}\" appears twice", *level.key));
      }
      level.key.reset();
    }
  }

  static std::string KeyOf(const YAML::Mark& mark, const Tree& tree) {
    if (tree.kind != Tree::Kind::kScalar || tree.scalar.kind == Scalar::Kind::kNull) {
      Throw(mark, "a key that is a list, a map or null");
    }
    return tree.scalar.text;
  }

  // Later ones replace what was merged in, and what is merged in replaces earlier ones, as go-yaml
  // v2 does. False if both are the map's own.
  static bool Set(Level& level, const std::string& key, Ref value, bool own) {
    const auto [entry, added] = level.places.try_emplace(key, level.tree->map.size(), own);
    if (added) {
      level.tree->map.emplace_back(key, std::move(value));
      return true;
    }
    if (own && entry->second.second) return false;
    entry->second.second = entry->second.second || own;
    level.tree->map[entry->second.first].second = std::move(value);
    return true;
  }

  static void Merge(const YAML::Mark& mark, Level& level, const Tree& tree) {
    if (tree.kind == Tree::Kind::kMap) {
      for (const auto& [key, value] : tree.map) Set(level, key, value, false);
      return;
    }
    if (tree.kind != Tree::Kind::kList) Throw(mark, "<< without a map");
    for (auto part = tree.list.rbegin(); part != tree.list.rend(); ++part) {
      if ((*part)->kind != Tree::Kind::kMap) Throw(mark, "<< without a map");
      for (const auto& [key, value] : (*part)->map) Set(level, key, value, false);
    }
  }

  int start_ = -1;  // where the document begins
  std::vector<Level> levels_;
  std::map<YAML::anchor_t, Ref> anchors_;  // complete ones of this document
  Ref document_;
};

// Recursion is bounded by kMaxDepth.
void Write(const Tree& tree, Writer& writer) {
  const auto size = [](const std::string& text) {
    return static_cast<rapidjson::SizeType>(text.size());
  };
  const std::string& text = tree.scalar.text;
  switch (tree.kind) {
    case Tree::Kind::kScalar:
      if (tree.scalar.kind == Scalar::Kind::kNull) {
        writer.Null();
      } else if (tree.scalar.kind == Scalar::Kind::kString) {
        writer.String(text.data(), size(text));
      } else {
        writer.RawValue(text.data(), text.size(), rapidjson::kNumberType);
      }
      return;
    case Tree::Kind::kList:
      writer.StartArray();
      for (const Ref& element : tree.list) Write(*element, writer);
      writer.EndArray();
      return;
    case Tree::Kind::kMap:
      writer.StartObject();
      for (const auto& [key, value] : tree.map) {
        writer.Key(key.data(), size(key));
        Write(*value, writer);
      }
      writer.EndObject();
      return;
  }
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
          (document->kind == Tree::Kind::kScalar && document->scalar.kind == Scalar::Kind::kNull)) {
        continue;
      }
      rapidjson::StringBuffer buffer;
      Writer writer(buffer);
      Write(*document, writer);
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
  if (!IsUtf8(text)) return absl::InvalidArgumentError("the text is not UTF-8");
  const std::string_view start = base::Trim(text);
  if (start.empty() || start.front() != '{') return ReadYaml(text);
  // Either JSON or a YAML map in braces, as kubectl takes it.
  absl::StatusOr<std::vector<std::string>> json = ReadJson(text);
  if (json.ok()) return json;
  absl::StatusOr<std::vector<std::string>> yaml = ReadYaml(text);
  return yaml.ok() ? yaml : json;
}

}  // namespace kube
