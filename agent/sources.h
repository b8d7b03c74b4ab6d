#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "absl/status/statusor.h"
#include "agent/options.h"
#include "base/clock.h"
#include "base/file_tree.h"
#include "hwinfo/read.h"
#include "podresources/assignments.h"
#include "podresources/client.h"
#include "podresources/kubelet_config.h"
#include "podresources/kubelet_state.h"

namespace agent {

// Where one node's facts are.
struct Sources {
  hwinfo::Source hardware;
  std::optional<base::FileTree> files;        // the kubelet's files and the cgroups; nullopt: none
  std::optional<std::string> podresources;    // a socket or a recording; nullopt: in `files`
  std::optional<std::string> kubelet_config;  // below `files`
  std::string node_name;
  std::set<std::string> excluded_resources = {};  // from NodeResourceTopology
};

// What the kubelet said and what its files said around it.
struct Answer {
  absl::StatusOr<podresources::Assignments> assignments = absl::UnavailableError("not asked");
  podresources::KubeletState state;
  bool settled = true;
};

// Between two readings of one look: the kubelet waits for its disk at each step of a change.
inline constexpr std::chrono::milliseconds kReadingPause{50};

// Asks the kubelet and reads its state files before and after: they belong to the answer only if
// none changed meanwhile, and tell of one moment only if they are not half of a change. Else all of
// it is done again after a pause, `readings` times at most; then the last reading is returned as
// not settled.
Answer AskKubelet(podresources::Client& client,
                  const std::function<podresources::KubeletState()>& read_state, int readings,
                  base::Clock& clock);

// As the command line names them. NotFound and the like if the root cannot be opened.
absl::StatusOr<Sources> OpenSources(const Options& options);

// Whom to ask, as a path of this process: the one that was named, else the socket of the kubelet
// with this configuration; "" if there is no tree to look for one in.
std::string AskedPath(const Sources& sources, const podresources::KubeletConfig& config);

// Socket or recording, told apart by what the path is; nullptr if nobody can be
// asked.
std::unique_ptr<podresources::Client> OpenClient(const Sources& sources,
                                                 const podresources::KubeletConfig& config,
                                                 podresources::ConnectOptions options,
                                                 base::Clock& clock);

}  // namespace agent
