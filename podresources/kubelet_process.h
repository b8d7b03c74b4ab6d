#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/diagnostic.h"
#include "base/file_tree.h"

namespace podresources {

// A running kubelet, as /proc shows it.
struct KubeletProcess {
  enum class Kind {
    kKubelet,   // its own process: kubelet, hyperkube kubelet; also under k0s, RKE2, Talos
    kKubelite,  // MicroK8s: inside kubelite, with its flags in a file
    kEmbedded,  // inside "k3s server" and the like, which makes most flags itself and hides them
  };
  Kind kind = Kind::kKubelet;
  int pid = -1;
  std::string program;                   // "kubelet", "k3s"
  std::vector<std::string> arguments;    // the kubelet's flags, as far as the command line has them
  std::string directory;                 // working directory, "" if not readable
  std::optional<base::Time> started_at;  // to a second: btime counts whole ones
  // In the kernel's ticks after boot: with the pid it tells this run from every other one.
  std::optional<std::int64_t> start_ticks;
  bool operator==(const KubeletProcess&) const = default;
};

struct KubeletSearch {
  std::optional<KubeletProcess> process;
  base::Diagnostics diagnostics;
};

// Of several kubelets the one that started first, a process of its own before an embedded one.
// What a process table does not show (hidepid, another PID namespace) counts as not there.
KubeletSearch FindKubelet(const base::FileTree& root);

// When a process started, in ticks after boot; nullopt if there is none of that number.
std::optional<std::int64_t> StartTicks(const base::FileTree& root, int pid);

// What a process is by its arguments; nullopt: no kubelet. `pid` and what follows stay unset.
std::optional<KubeletProcess> RecognizeKubelet(std::vector<std::string> command_line);

// Splits the content of /proc/<pid>/cmdline. A title that a program wrote over its arguments is one
// text with blanks; it is split at them.
std::vector<std::string> SplitCommandLine(const std::string& cmdline);

}  // namespace podresources
