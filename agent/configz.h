#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>

#include "absl/status/statusor.h"
#include "agent/kubelet_run.h"
#include "agent/this_node.h"
#include "base/clock.h"
#include "base/file_tree.h"
#include "kube/backoff.h"
#include "kube/config.h"

namespace agent {

struct ConfigzOptions {
  // Who we are to the kubelet: the credentials that we have for the API server, which the kubelet
  // asks about us, and the cluster's authority. Its server and proxy do not count.
  kube::Config credentials = {};
  // Of the whole question: each address has an equal part of what is left when its turn comes, so
  // that dead ones do not keep those behind them from being asked.
  std::chrono::milliseconds deadline{5'000};
  std::chrono::milliseconds first_pause{5'000};
  std::chrono::milliseconds longest_pause{300'000};
  kube::Random random = kube::SystemRandom();
};

// Asks the running kubelet for its configuration: GET /configz on the address and port that the
// Node object names, once in each run of the kubelet, and again while that fails.
//
// The kubelet's certificate must be one of the cluster's authority and for that address, or the
// very one that the kubelet keeps in its folder on this node: a certificate that it signed itself
// names no address. If it is neither, nothing is sent, so no token either.
//
// Asking is done on a thread of its own. Safe for concurrent use.
class Configz {
 public:
  // The text, or why there is none; nullptr: not answered yet.
  using Answer = std::shared_ptr<const absl::StatusOr<std::string>>;
  // Waits until the Node is known; nullptr if told to stop.
  using Node = std::function<std::shared_ptr<const NodeObject>(const std::stop_token&)>;

  // `files` of this node. `changed` is called on the thread when there is another answer.
  Configz(Node node, base::FileTree files, base::Clock& clock, ConfigzOptions options,
          std::function<void()> changed);
  ~Configz();
  Configz(const Configz&) = delete;
  Configz& operator=(const Configz&) = delete;

  // What the kubelet of this run has answered. Asks if it is another run than before, and waits for
  // the first answer, but no longer than `patience`.
  Answer Of(const KubeletRun& run, std::chrono::milliseconds patience);

 private:
  struct Question {
    KubeletRun run;
    std::stop_token until;  // stopped when another run's answer is wanted
  };
  void Run(const std::stop_token& stop);
  // Waits for a run that has not answered yet; nullopt if told to stop.
  std::optional<Question> NextQuestion(const KubeletRun& answered, const std::stop_token& stop);
  void Put(absl::StatusOr<std::string> answer, const KubeletRun& of);

  const Node node_;
  const base::FileTree files_;
  base::Clock& clock_;
  const ConfigzOptions options_;
  const std::function<void()> changed_;

  std::mutex mutex_;
  std::condition_variable_any told_;
  KubeletRun run_;          // guarded by mutex_, as these three: whose answer is wanted
  Answer answer_;           // of it
  std::stop_source pause_;  // ends when another run's is wanted
  std::jthread thread_;     // the last: it uses all of them
};

// One question to the kubelet of a Node, by one of its addresses, within the deadline. Unavailable:
// no connection, or none that can be trusted; PermissionDenied: the missing permission;
// Unauthenticated: the token does not count, or cannot be read; Unknown and the like as of
// kube::Transport.
absl::StatusOr<std::string> AskConfigz(const NodeObject& node, const base::FileTree& files,
                                       const ConfigzOptions& options, base::Clock& clock,
                                       const std::stop_token& stop);

}  // namespace agent
