#include "cli/json.h"

#include <fmt/format.h>
#include <rapidjson/document.h>
#include <rapidjson/error/en.h>

#include <algorithm>
#include <set>

#include "base/quantity.h"
#include "base/status_macros.h"

namespace cli {
namespace {

constexpr int kMaxDepth = 100;

absl::StatusOr<Json> Convert(const rapidjson::Value& value, int depth);

absl::StatusOr<Json> ConvertMap(const rapidjson::Value& value, int depth) {
  Json json;
  json.kind = Json::Kind::kMap;
  std::set<std::string> seen;
  for (const auto& member : value.GetObject()) {
    std::string name(member.name.GetString(), member.name.GetStringLength());
    if (!seen.insert(name).second) {
      return absl::InvalidArgumentError(fmt::format("\"{}\" appears twice in one object", name));
    }
    ASSIGN_OR_RETURN(Json converted, Convert(member.value, depth + 1));
    json.names.push_back(std::move(name));
    json.values.push_back(std::move(converted));
  }
  return json;
}

absl::StatusOr<Json> ConvertList(const rapidjson::Value& value, int depth) {
  Json json;
  json.kind = Json::Kind::kList;
  for (const rapidjson::Value& element : value.GetArray()) {
    ASSIGN_OR_RETURN(Json converted, Convert(element, depth + 1));
    json.values.push_back(std::move(converted));
  }
  return json;
}

// Recursion is bounded by kMaxDepth.
absl::StatusOr<Json> Convert(const rapidjson::Value& value, int depth) {
  if (depth > kMaxDepth) {
    return absl::InvalidArgumentError(fmt::format("nested deeper than {} levels", kMaxDepth));
  }
  if (value.IsObject()) return ConvertMap(value, depth);
  if (value.IsArray()) return ConvertList(value, depth);
  Json json;
  if (value.IsBool()) {
    json.kind = Json::Kind::kBool;
    json.flag = value.GetBool();
  } else if (value.IsInt64()) {
    json.kind = Json::Kind::kInteger;
    json.integer = value.GetInt64();
  } else if (value.IsNumber()) {
    json.kind = Json::Kind::kReal;
    json.text = fmt::format("{}", value.GetDouble());
  } else if (value.IsString()) {
    json.kind = Json::Kind::kText;
    json.text.assign(value.GetString(), value.GetStringLength());
  }
  return json;
}

}  // namespace

const Json* Json::Find(std::string_view name) const {
  const auto found = std::ranges::find(names, name);
  return found == names.end() ? nullptr : &values[static_cast<std::size_t>(found - names.begin())];
}

absl::StatusOr<Json> ParseJson(const std::string& text) {
  rapidjson::Document document;
  document.Parse<rapidjson::kParseIterativeFlag | rapidjson::kParseValidateEncodingFlag>(
      text.c_str(), text.size());
  if (document.HasParseError()) {
    return absl::InvalidArgumentError(
        fmt::format("no JSON at offset {}: {}", document.GetErrorOffset(),
                    rapidjson::GetParseError_En(document.GetParseError())));
  }
  return Convert(document, 0);
}

void JsonReader::Fail(const std::string& why) const {
  if (!error_->ok()) return;
  *error_ = absl::InvalidArgumentError(path_.empty() ? why : fmt::format("{}: {}", path_, why));
}

bool JsonReader::Is(Json::Kind kind, const char* otherwise) const {
  if (!present()) return false;
  if (json_->kind != kind) Fail(otherwise);
  return json_->kind == kind;
}

JsonReader JsonReader::Member(const std::string& name, const Json* value) const {
  return {value, path_.empty() ? name : fmt::format("{}.{}", path_, name), error_};
}

JsonReader JsonReader::Element(std::size_t index) const {
  return {&json_->values[index], fmt::format("{}[{}]", path_, index), error_};
}

JsonReader JsonReader::Find(const char* name) const {
  return Member(name, Is(Json::Kind::kMap, "is no object") ? json_->Find(name) : nullptr);
}

JsonReader JsonReader::Need(const char* name) const {
  JsonReader member = Find(name);
  if (!member.present()) member.Fail("is missing");
  return member;
}

std::string JsonReader::Text() const {
  return Is(Json::Kind::kText, "is no text") ? json_->text : "";
}

bool JsonReader::Flag() const {
  return Is(Json::Kind::kBool, "is neither true nor false") && json_->flag;
}

std::int64_t JsonReader::Integer(std::int64_t least, std::int64_t most,
                                 std::int64_t otherwise) const {
  if (!Is(Json::Kind::kInteger, "is no whole number")) return otherwise;
  if (json_->integer >= least && json_->integer <= most) return json_->integer;
  Fail(fmt::format("{} is not within {} to {}", json_->integer, least, most));
  return otherwise;
}

std::string JsonReader::OneOf(std::span<const char* const> known) const {
  std::string text = Text();
  if (!present() || std::ranges::find(known, text) != known.end()) return text;
  Fail(fmt::format("\"{}\" is none of {}", text, fmt::join(known, ", ")));
  return "";
}

std::string JsonReader::Word() const {
  if (!present()) return "";
  if (json_->kind == Json::Kind::kBool) return json_->flag ? "true" : "false";
  if (json_->kind == Json::Kind::kInteger) return fmt::format("{}", json_->integer);
  return Text();
}

base::CpuSet JsonReader::Cpus() const {
  const absl::StatusOr<base::CpuSet> cpus = base::CpuSet::Parse(Text());
  if (!cpus.ok()) Fail(std::string(cpus.status().message()));
  return cpus.ok() ? *cpus : base::CpuSet();
}

template <class Set>
Set JsonReader::Ids() const {
  Set ids;
  Each([&](const JsonReader& id) {
    if (!ids.Insert(id.Id())) id.Fail("is no id");
  });
  return ids;
}
base::CpuSet JsonReader::CpuIds() const { return Ids<base::CpuSet>(); }
base::NumaMask JsonReader::NodeIds() const { return Ids<base::NumaMask>(); }

std::vector<std::string> JsonReader::Texts() const {
  std::vector<std::string> texts;
  Each([&](const JsonReader& text) { texts.push_back(text.Text()); });
  return texts;
}

std::int64_t JsonReader::Scaled(bool milli) const {
  const bool flag = present() && json_->kind == Json::Kind::kBool;
  const std::string text = flag ? Text() : Word();  // the former is an error
  if (!present() || !error_->ok()) return 0;
  const absl::StatusOr<std::int64_t> amount =
      milli ? base::ParseMilliQuantity(text) : base::ParseQuantity(text);
  if (!amount.ok()) {
    Fail(std::string(amount.status().message()));
  } else if (*amount < 0 || *amount > kMaxAmount) {
    Fail(fmt::format("{} is not within 0 to {}", text, base::FormatBytes(kMaxAmount)));
  } else {
    return *amount;
  }
  return 0;
}

std::int64_t JsonReader::Quantity() const { return Scaled(false); }

kube::Resources JsonReader::Quantities() const {
  kube::Resources amounts;
  EachMember([&](const std::string& name, const JsonReader& amount) {
    amounts[name] = amount.Scaled(name == kube::kCpu);
  });
  return amounts;
}

void JsonReader::RefuseOthers(std::initializer_list<const char*> known,
                              const char* beginning) const {
  if (!Is(Json::Kind::kMap, "is no object")) return;
  for (const std::string& name : json_->names) {
    if (std::ranges::find(known, name) != known.end()) continue;
    if (beginning != nullptr && name.starts_with(beginning)) continue;
    Fail(fmt::format("\"{}\" is not known; there are {}", name, fmt::join(known, ", ")));
  }
}

}  // namespace cli
