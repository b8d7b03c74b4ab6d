#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "agent/dra_devices.h"
#include "agent/kubelet_run.h"
#include "agent/notice.h"
#include "agent/sources.h"
#include "base/clock.h"
#include "placement/observation.h"
#include "podresources/client.h"

namespace agent {

// What the running kubelet says is its configuration, or why that is not known; nullptr: not
// answered yet. Waits for an answer as long as `patience` (configz.h).
using ConfigzOf = std::function<std::shared_ptr<const absl::StatusOr<std::string>>(
    const KubeletRun& run, std::chrono::milliseconds patience)>;

// This node's pods, sorted by namespace and name, or why they are not known; nullptr: not answered
// yet (node_pods.h).
using KnownPods = std::shared_ptr<const absl::StatusOr<std::vector<placement::ApiPod>>>;

// What this node's DRA drivers publish, or why that is not known; nullptr: not answered yet
// (resource_slices.h).
using KnownDraDevices = std::shared_ptr<const absl::StatusOr<DraDevices>>;

struct ReaderOptions {
  podresources::ConnectOptions connect = {};
  int readings = 1;  // of the kubelet in one look, see AskKubelet
  // Where there is an API server to ask. Called at each look; each of them says with a hint
  // (Notice::Poke) that it has something else to say.
  ConfigzOf configz = nullptr;                             // none: files are read
  std::function<std::string()> kubelet_version = nullptr;  // "" unknown
  // Why the Node object may not be read; OK: it may, or the API server does not answer.
  std::function<absl::Status()> node_refusal = nullptr;
  std::function<KnownPods()> pods = nullptr;  // none: log folders tell of them
  // None: DRA devices are told by their names.
  std::function<KnownDraDevices()> dra_devices = nullptr;
};

// What a look has found.
struct Look {
  bool kubelet_changed = false;  // its answer or its files are other ones than before
  bool changed = false;          // any of the facts
};

// Reads one node again and again, each part of it only when it may have changed, since hwloc and a
// walk over all cgroups cost many times what a question to the kubelet does:
//   hardware       if cheap facts about it changed, which are looked at once a second; if the
//   kubelet
//                  has a device that it had not before; and every 5 minutes
//   configuration  if its files changed, the kubelet is another run, or it has said itself what it
//                  is. While one kubelet runs, the values that it started with stay in force,
//                  whatever its files say by now. A new run whose files say what they said before
//                  is taken to have what the last run had named, until it has had time to say it
//   state files    if one of them is another file than before
//   cgroups        if a hint says so, if the kubelet's answer changed, and every 30 s
// One thread.
class Reader {
 public:
  static constexpr std::chrono::minutes kHardwareInterval{5};
  static constexpr std::chrono::seconds kCgroupInterval{30};
  static constexpr std::chrono::seconds kCheapInterval{1};
  // How long a kubelet is given for its own word on its configuration. The first look waits so
  // long, also for the API server's on the node's pods, so that a restart of the agent is no news;
  // later ones go by the word of the run before.
  static constexpr std::chrono::milliseconds kFirstPatience{300};

  Reader(Sources sources, ReaderOptions options, base::Clock& clock);

  // The first look, at everything. Errors are a machine that cannot be shown at all and a
  // configuration file that was named and cannot be used; what the kubelet or the cgroups do not
  // answer is an error inside the facts.
  absl::Status Start();
  // A later look. What can no longer be read stays as it was, with a diagnostic.
  Look Again(const Hints& hints);

  placement::Facts& facts() { return facts_; }
  // The run of the kubelet that gave the last answer.
  const KubeletRun& run() const { return run_; }
  // How long ago that run began, by the process or by the socket file; nullopt: nobody says.
  std::optional<std::chrono::milliseconds> KubeletAge();
  // Where changes of all this show.
  Places places() const;

 private:
  absl::Status ReadConfig();
  void AwaitConfigz();
  void AwaitPods(base::Instant until);
  bool TakeConfigz(const KubeletRun& run, std::chrono::milliseconds patience);
  bool TakeVersion();
  void GoByLastWord();
  bool MayStillSay() const;
  void FollowConfig(const Hints& hints, Look& look);
  void FollowHardware(const Hints& hints, bool new_devices, Look& look);
  void FollowCgroups(const Hints& hints, Look& look);
  void ReadCgroups();
  void AskKubelet(Look& look);
  void TakeWhatApiServerSays(Look& look);
  podresources::KubeletState ReadState();
  KubeletRun CurrentRun() const;
  std::string FingerprintConfig() const;
  bool HasNewDevices();
  void ResolveDevices();
  bool IsDue(base::Instant& last, std::chrono::milliseconds interval);

  const Sources sources_;
  const ReaderOptions options_;
  base::Clock& clock_;
  placement::Facts facts_;
  std::unique_ptr<podresources::Client> client_;
  podresources::KubeletState state_;  // the files as last parsed
  KubeletRun run_;
  KnownPods pods_;  // what facts_.api_pods is of
  KnownDraDevices dra_devices_;
  absl::Status node_refusal_;
  KubeletRun configured_run_;                                   // the one that facts_.config is of
  std::shared_ptr<const absl::StatusOr<std::string>> configz_;  // its own word, if it has given it
  std::optional<podresources::KubeletConfig> last_word_;        // of a run, while it may be gone by
  bool goes_by_last_word_ = false;                              // facts_.config does
  std::optional<podresources::KubeletConfig> by_files_;         // as the files and flags last said
  std::string config_fingerprint_;
  std::string hardware_fingerprint_;
  std::set<std::string> known_devices_;
  base::Instant run_noticed_;  // when configured_run_ was first seen
  base::Instant config_checked_;
  base::Instant hardware_checked_;
  base::Instant hardware_read_;
  base::Instant cgroups_read_;
};

// One look for the dry run, with patience: it has no next look.
absl::StatusOr<placement::Facts> Gather(const Sources& sources, base::Clock& clock);

}  // namespace agent
