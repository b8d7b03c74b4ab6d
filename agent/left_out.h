#pragma once

#include <set>
#include <string>
#include <string_view>

// An agent may be newer than the definition of an object that it writes. Server-side apply refuses
// what the definition does not declare, so that is left out.
namespace agent {

// The fields that a refusal calls undeclared, wherever in a list they are: of
// `.status.pods[3].seat: field not declared in schema` it is "status.pods.seat".
std::set<std::string> UndeclaredFields(std::string_view refusal);

// Whether an object as JSON has this field, in any entry of a list.
bool Has(const std::string& json, std::string_view field);

// An object as JSON, without these fields.
std::string Without(const std::string& json, const std::set<std::string>& fields);

}  // namespace agent
