#pragma once

#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "kube/config.h"
#include "kube/exec_plugin.h"

namespace kube {

// What proves to the API server who we are.
struct Credential {
  std::string token = {};  // "" for none
  std::string certificate_pem = {};
  std::string key_pem = {};
  bool operator==(const Credential&) const = default;
};

// Where credentials come from, as they are at this moment: files are read at each question, so a
// rotated one is used by the next request. A plugin's answer is kept until it expires or the server
// refuses it. Safe for concurrent use.
class Credentials {
 public:
  // `config` as LoadKubeconfig or InClusterConfig gave it: what may not be used was refused there.
  Credentials(Config config, base::Clock& clock) : config_(std::move(config)), clock_(clock) {}

  // An error names the file or the plugin and the cause; its code is Unauthenticated.
  absl::StatusOr<Credential> Read();
  // The server answered 401 to the last one.
  void Refused();

 private:
  absl::StatusOr<Credential> ReadFiles() const;
  absl::StatusOr<Credential> AskPlugin();

  const Config config_;
  base::Clock& clock_;
  std::mutex mutex_;                    // one plugin at a time: it may ask a person
  std::optional<PluginAnswer> answer_;  // guarded by it
};

}  // namespace kube
