#include "agent/left_out.h"

#include <rapidjson/document.h>
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

#include <algorithm>

namespace agent {
namespace {

constexpr std::string_view kRefusal = ": field not declared in schema";

// Which entry of a list it is stands in brackets, as an index or as its keys.
std::string WithoutEntries(std::string_view path) {
  std::string fields;
  bool in_entry = false;
  for (const char c : path) {
    if (c == '[') in_entry = true;
    if (!in_entry) fields += c;
    if (c == ']') in_entry = false;
  }
  return fields;
}

void Remove(std::string_view path, rapidjson::Value& value) {
  if (value.IsArray()) {
    for (rapidjson::Value& entry : value.GetArray()) Remove(path, entry);
    return;
  }
  if (!value.IsObject()) return;
  const std::size_t dot = path.find('.');
  const std::string name(path.substr(0, dot));
  if (!value.HasMember(name.c_str())) return;
  if (dot == std::string_view::npos) {
    value.EraseMember(name.c_str());
  } else {
    Remove(path.substr(dot + 1), value[name.c_str()]);
  }
}

bool Contains(std::string_view path, const rapidjson::Value& value) {
  if (value.IsArray()) {
    return std::ranges::any_of(value.GetArray(),
                               [&](const auto& entry) { return Contains(path, entry); });
  }
  if (!value.IsObject()) return false;
  const std::size_t dot = path.find('.');
  const auto member = value.FindMember(std::string(path.substr(0, dot)).c_str());
  if (member == value.MemberEnd()) return false;
  return dot == std::string_view::npos || Contains(path.substr(dot + 1), member->value);
}

}  // namespace

std::set<std::string> UndeclaredFields(std::string_view refusal) {
  std::set<std::string> fields;
  for (std::size_t end = refusal.find(kRefusal); end != std::string_view::npos;
       end = refusal.find(kRefusal, end + 1)) {
    const std::size_t begin = refusal.substr(0, end).rfind(" .");
    if (begin == std::string_view::npos) continue;
    fields.insert(WithoutEntries(refusal.substr(begin + 2, end - begin - 2)));
  }
  return fields;
}

bool Has(const std::string& json, std::string_view field) {
  rapidjson::Document document;
  document.Parse(json.data(), json.size());
  return Contains(field, document);
}

std::string Without(const std::string& json, const std::set<std::string>& fields) {
  if (fields.empty()) return json;
  rapidjson::Document document;
  document.Parse(json.data(), json.size());
  for (const std::string& field : fields) Remove(field, document);
  rapidjson::StringBuffer text;
  rapidjson::Writer<rapidjson::StringBuffer> writer(text);
  document.Accept(writer);
  return {text.GetString(), text.GetSize()};
}

}  // namespace agent
