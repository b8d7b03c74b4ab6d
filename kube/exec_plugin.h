#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "kube/config.h"

// Programs that print a credential, as kubectl runs them (client.authentication.k8s.io/v1).
namespace kube {

struct PluginAnswer {
  std::string token = {};
  std::string certificate_pem = {};
  std::string key_pem = {};
  std::optional<base::Time> expires = {};  // nothing: until the server refuses it
  bool operator==(const PluginAnswer&) const = default;
};

// Runs the program of config.exec, which must be there, and reads what it prints. It shares our
// standard input and error output, since it may ask a person. Unauthenticated: it is not installed
// (with its own hint), failed, took over five minutes, or printed something else.
absl::StatusOr<PluginAnswer> RunPlugin(const Config& config);

// What a plugin prints: an ExecCredential with a status.
absl::StatusOr<PluginAnswer> ParsePluginAnswer(std::string_view json, const std::string& version);

}  // namespace kube
