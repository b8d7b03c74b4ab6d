#include "agent/other_writers.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <string_view>

#include "agent/api_access.h"
#include "base/status_macros.h"
#include "kube/json.h"

namespace agent {
namespace {

using kube::ManagedFields;
using Names = std::set<std::string>;

constexpr std::array<const char*, 3> kContent = {"attributes", "topologyPolicies", "zones"};

bool WritesContent(const ManagedFields& managed) {
  return managed.manager != kFieldManager && std::ranges::any_of(kContent, [&](const char* field) {
           return managed.top.contains(field);
         });
}

// What the writers own and nobody else.
Names OnlyOf(const std::vector<std::string>& writers, const kube::Metadata& metadata,
             Names ManagedFields::*fields) {
  Names theirs;
  Names kept;
  for (const ManagedFields& managed : metadata.managed) {
    Names& names = std::ranges::count(writers, managed.manager) > 0 ? theirs : kept;
    names.insert((managed.*fields).begin(), (managed.*fields).end());
  }
  for (const std::string& name : kept) theirs.erase(name);
  return theirs;
}

std::string Join(const std::vector<std::string>& parts) {
  return fmt::format("{}", fmt::join(parts, ","));
}

// "name":null for each: so a merge patch removes.
std::string Nulls(const Names& names) {
  std::vector<std::string> members;
  for (const std::string& name : names) members.push_back(kube::JsonQuote(name) + ":null");
  return "{" + Join(members) + "}";
}

}  // namespace

std::vector<std::string> OtherWriters(const kube::Metadata& metadata) {
  Names names;
  for (const ManagedFields& managed : metadata.managed) {
    if (WritesContent(managed)) names.insert(managed.manager);
  }
  return {names.begin(), names.end()};
}

absl::StatusOr<std::string> RemovalOf(const std::vector<std::string>& writers,
                                      const kube::Metadata& metadata, const std::string& applied) {
  ASSIGN_OR_RETURN(const kube::JsonObject ours, kube::JsonObject::Parse(applied));
  std::vector<std::string> managed;
  for (const ManagedFields& entry : metadata.managed) {
    if (std::ranges::count(writers, entry.manager) == 0) managed.push_back(entry.json);
  }
  const Names their_owners = OnlyOf(writers, metadata, &ManagedFields::owner_uids);
  std::vector<std::string> owners;
  for (const kube::OwnerReference& owner : metadata.owners) {
    if (!their_owners.contains(owner.uid)) owners.push_back(owner.json);
  }
  std::vector<std::string> content;
  for (const char* field : kContent) {
    const std::string_view value = ours.Raw(field);
    content.push_back(fmt::format(R"("{}":{})", field, value.empty() ? "null" : value));
  }
  // The version: what somebody does meanwhile is not to be undone unseen.
  return fmt::format(
      R"({{"metadata":{{"resourceVersion":{},"annotations":{},"labels":{},"ownerReferences":[{}],)"
      R"("managedFields":[{}]}},{}}})",
      kube::JsonQuote(metadata.resource_version),
      Nulls(OnlyOf(writers, metadata, &ManagedFields::annotations)),
      Nulls(OnlyOf(writers, metadata, &ManagedFields::labels)), Join(owners), Join(managed),
      Join(content));
}

}  // namespace agent
