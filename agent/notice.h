#pragma once

#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/file_tree.h"

namespace agent {

// What may have changed, as far as somebody says. A hint tells where to look, never what is there.
struct Hints {
  bool kubelet =
      false;  // its state files, its socket, its plugins' sockets, the folders of pod logs
  bool config = false;    // its configuration
  bool pods = false;      // cgroups of pods or containers came or went
  bool cpusets = false;   // somebody wrote a cpuset of theirs, or it may have been missed
  bool anything = false;  // events were lost, a folder was replaced, or somebody called Poke
  bool lost = false;      // of `anything`: more happened than the kernel keeps

  bool any() const { return kubelet || config || pods || cpusets || anything; }
  Hints& operator|=(const Hints& other);
  bool operator==(const Hints&) const = default;
};

// Where changes show; paths in the tree.
struct Places {
  std::string kubelet_dir;           // /var/lib/kubelet
  std::string pod_logs_dir;          // /var/log/pods
  std::vector<std::string> config;   // files and folders, also those that may come
  std::vector<std::string> cgroups;  // hwinfo::Enforced::folders
  bool operator==(const Places&) const = default;
};

// Waits for hints by inotify, which tells who changed what in a folder, but neither follows a
// folder that is replaced nor waits for one that is missing. So for a missing folder the nearest
// one above it that exists is watched, and the folders (cgroups aside: theirs tell when they go)
// are looked up anew whenever something about them changed and at each Wait that ran to its end.
//
// One thread, Poke aside.
class Notice {
 public:
  // Where the kernel grants no inotify instance (fs.inotify.max_user_instances) it is only Poke and
  // the time that end a wait, until it grants one. ResourceExhausted: not even that.
  static absl::StatusOr<std::unique_ptr<Notice>> Open(base::FileTree files);
  ~Notice();
  Notice(const Notice&) = delete;
  Notice& operator=(const Notice&) = delete;

  // From now on these places. What happened in a folder before it was watched was not seen, so that
  // one that is new here is a hint of its own.
  void Watch(const Places& places);
  // Until there is a hint, at the latest until then. Returns early, without one, if told to stop.
  Hints Wait(base::Instant until, const std::stop_token& stop);
  // Makes Wait return with `anything`. Safe to call from any thread.
  void Poke();

  // Whether there is inotify at all.
  bool HasInotify() const { return inotify_ >= 0; }
  // Whether every place is watched itself. If not, hints are missing.
  bool Complete() const { return folders_complete_ && cgroups_complete_; }

 private:
  // Why a folder is watched.
  struct Interest {
    enum class Kind { kKubelet, kPlugins, kSocket, kPodLogs, kConfig, kArrival };
    Kind kind = Kind::kKubelet;
    std::string name;  // kConfig: of the file, "" for all; kArrival: of what is missing here
    bool operator==(const Interest&) const = default;
  };
  struct Wanted {
    std::string folder;
    Interest interest;
  };
  struct Event;

  Notice(base::FileTree files, int wake);
  bool OpenInotify();
  void ArmFolders();
  void ArmCgroups(const std::vector<std::string>& folders);
  // The watch of this folder, or of the nearest above it; -1 if there is none.
  int Arm(const Wanted& wanted, std::map<int, std::vector<Interest>>& armed);
  int AddWatch(const std::string& folder);
  Hints ReadEvents();
  void Take(const Event& event, Hints& hints);
  void Lose(int watch, Hints& hints);
  bool TakePoke();
  static Hints HintOf(const Interest& interest, std::string_view name);

  const base::FileTree files_;
  int inotify_ = -1;  // -1: not granted
  const int wake_;    // an eventfd
  Places places_;
  std::vector<Wanted> wanted_;
  std::map<int, std::vector<Interest>> folders_;  // by watch
  std::map<std::string, int> cgroups_;            // watch by folder
  std::map<int, std::string> cgroup_of_;          // and back
  Hints pending_;                                 // found outside Wait
  bool stale_ = false;                            // folders have to be looked up anew
  bool folders_complete_ = false;                 // each folder is watched itself
  bool cgroups_complete_ = false;                 // and so is each cgroup that there is
  bool all_cgroups_ = false;                      // of places_ are watched
};

}  // namespace agent
