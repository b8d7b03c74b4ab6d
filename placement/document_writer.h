#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace placement {

// Takes one document as a stream of events: the objects are described once, in encode.cc, and
// written as JSON or as YAML. Maps keep the order in which their keys come.
class DocumentWriter {
 public:
  virtual ~DocumentWriter() = default;
  virtual void BeginMap() = 0;
  virtual void EndMap() = 0;
  virtual void BeginList() = 0;
  virtual void EndList() = 0;
  virtual void Key(std::string_view key) = 0;
  virtual void String(std::string_view text) = 0;
  virtual void Int(std::int64_t number) = 0;
  virtual void Bool(bool value) = 0;
};

// Block style, every map and list entry on a line of its own. Strings are quoted unless every YAML
// 1.1 reader (kubectl's is one) takes them for strings: "yes", "0-3", "1e3" and "null" are quoted.
class YamlWriter : public DocumentWriter {
 public:
  void BeginMap() override { Begin(Kind::kMap); }
  void EndMap() override { End("{}"); }
  void BeginList() override { Begin(Kind::kList); }
  void EndList() override { End("[]"); }
  void Key(std::string_view key) override;
  void String(std::string_view text) override;
  void Int(std::int64_t number) override;
  void Bool(bool value) override { Scalar(value ? "true" : "false"); }
  const std::string& text() const { return text_; }

 private:
  enum class Kind { kMap, kList };
  struct Level {
    Kind kind;
    bool empty = true;
  };
  void Begin(Kind kind);
  void End(std::string_view if_empty);
  void Scalar(std::string_view text);
  void BeforeValue();
  void NewLine();

  std::string text_;
  std::vector<Level> open_;  // outermost first
  bool after_dash_ = false;  // the next key stands on the line of its list's dash
};

// Bytes that are no UTF-8 become U+FFFD: both writers must write what a reader accepts.
std::string ValidUtf8(std::string_view text);

// DEL, a control beyond ASCII, a line separator or a mark that turns the direction of writing: what
// both writers escape, since terminals obey it. Length 0 if the text does not begin with one.
struct Control {
  std::size_t length = 0;
  unsigned code = 0;
};
Control ControlAt(std::string_view text);

}  // namespace placement
