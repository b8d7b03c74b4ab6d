#include "podresources/kubelet_process.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <tuple>
#include <utility>

#include "absl/status/status.h"
#include "base/text.h"

namespace podresources {
namespace {

constexpr std::int64_t kMaxCommandLine = std::int64_t{1} << 20;
// USER_HZ: the unit of times in /proc, 100 on every architecture that runs a kubelet.
constexpr std::int64_t kTicksPerSecond = 100;

std::vector<std::string> Split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(separator), text.size());
    parts.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

std::string BaseName(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? path : path.substr(slash + 1);
}

// Seconds since the epoch when the machine started: the line "btime N" of /proc/stat.
std::optional<std::int64_t> ReadBootTime(const base::FileTree& root) {
  const absl::StatusOr<std::string> text = root.Read("proc/stat");
  if (!text.ok()) return std::nullopt;
  for (const std::string& line : Split(*text, '\n')) {
    if (!line.starts_with("btime ")) continue;
    return base::ParseNumber<std::int64_t>(std::string_view(line).substr(6));
  }
  return std::nullopt;
}

struct Candidate {
  KubeletProcess process;
  std::int64_t start_ticks = INT64_MAX;  // not readable: last
  auto Rank() const {
    return std::make_tuple(process.kind, process.program != "k3s", start_ticks, process.pid);
  }
};

std::optional<Candidate> ReadCandidate(const base::FileTree& root, const std::string& name) {
  const std::optional<std::int64_t> pid = base::ParseNumber<std::int64_t>(name);
  if (!pid || *pid <= 0 || *pid > INT32_MAX) return std::nullopt;
  // A process that ended meanwhile or may not be read is one that does not show.
  const absl::StatusOr<std::string> cmdline =
      root.Read(fmt::format("proc/{}/cmdline", name), kMaxCommandLine);
  if (!cmdline.ok()) return std::nullopt;
  std::vector<std::string> arguments = SplitCommandLine(*cmdline);
  if (arguments.empty()) return std::nullopt;
  std::optional<KubeletProcess> process = RecognizeKubelet(arguments);
  if (!process) {
    // Started under another name, by a loader or a wrapper: what the kernel calls it counts.
    const absl::StatusOr<std::string> comm = root.ReadTrimmed(fmt::format("proc/{}/comm", name));
    if (!comm.ok() || *comm != "kubelet") return std::nullopt;
    arguments.front() = "kubelet";
    process = RecognizeKubelet(std::move(arguments));
    if (!process) return std::nullopt;
  }
  process->pid = static_cast<int>(*pid);
  Candidate candidate{*std::move(process)};
  if (const auto ticks = StartTicks(root, candidate.process.pid)) {
    candidate.start_ticks = *ticks;
    candidate.process.start_ticks = *ticks;
  }
  return candidate;
}

void Complete(const base::FileTree& root, Candidate& candidate) {
  KubeletProcess& process = candidate.process;
  const absl::StatusOr<std::string> directory =
      root.ReadLink(fmt::format("proc/{}/cwd", process.pid));
  if (directory.ok()) process.directory = *directory;
  const std::optional<std::int64_t> boot = ReadBootTime(root);
  if (!boot || candidate.start_ticks == INT64_MAX) return;
  if (*boot < 0 || *boot > INT64_MAX / 4000) return;
  process.started_at = base::Time(
      std::chrono::milliseconds(*boot * 1000 + candidate.start_ticks * 1000 / kTicksPerSecond));
}

}  // namespace

std::vector<std::string> SplitCommandLine(const std::string& cmdline) {
  std::vector<std::string> arguments = Split(cmdline, '\0');
  while (!arguments.empty() && arguments.back().empty()) arguments.pop_back();
  if (arguments.size() != 1) return arguments;
  std::vector<std::string> words = Split(arguments.front(), ' ');
  std::erase(words, "");
  return words;
}

std::optional<KubeletProcess> RecognizeKubelet(std::vector<std::string> command_line) {
  using Kind = KubeletProcess::Kind;
  if (command_line.empty()) return std::nullopt;
  KubeletProcess process;
  process.program = BaseName(command_line.front());
  const std::string command = command_line.size() > 1 ? command_line[1] : "";
  std::size_t skip = 1;
  if (process.program == "kubelet") {
    process.kind = Kind::kKubelet;
  } else if (process.program == "hyperkube" && command == "kubelet") {
    process.kind = Kind::kKubelet;
    skip = 2;
  } else if (process.program == "kubelite") {
    process.kind = Kind::kKubelite;
  } else if ((process.program == "k3s" || process.program == "rke2") &&
             (command == "server" || command == "agent")) {
    process.kind = Kind::kEmbedded;
    skip = 2;
  } else {
    return std::nullopt;
  }
  command_line.erase(command_line.begin(),
                     command_line.begin() + static_cast<std::ptrdiff_t>(skip));
  process.arguments = std::move(command_line);
  return process;
}

// Field 22 of /proc/<pid>/stat. The second field, the name in brackets, may hold blanks and
// brackets of its own, so the count begins after the last ')'.
std::optional<std::int64_t> StartTicks(const base::FileTree& root, int pid) {
  const absl::StatusOr<std::string> text = root.Read(fmt::format("proc/{}/stat", pid));
  if (!text.ok()) return std::nullopt;
  const std::size_t name_end = text->rfind(')');
  if (name_end == std::string::npos || name_end + 2 > text->size()) return std::nullopt;
  const std::vector<std::string> fields = Split(std::string_view(*text).substr(name_end + 2), ' ');
  constexpr std::size_t kStartTime = 22 - 3;  // the first field here is number 3
  if (fields.size() <= kStartTime) return std::nullopt;
  const std::optional<std::int64_t> ticks = base::ParseNumber<std::int64_t>(fields[kStartTime]);
  if (!ticks || *ticks < 0 || *ticks > INT64_MAX / 1000) return std::nullopt;
  return ticks;
}

KubeletSearch FindKubelet(const base::FileTree& root) {
  KubeletSearch search;
  const absl::StatusOr<std::vector<std::string>> names = root.List("proc");
  if (!names.ok()) {
    search.diagnostics.push_back(
        {"ProcUnreadable", "proc",
         fmt::format("processes cannot be listed: {}", std::string(names.status().message()))});
    return search;
  }
  std::vector<Candidate> found;
  for (const std::string& name : *names) {
    if (std::optional<Candidate> candidate = ReadCandidate(root, name)) {
      found.push_back(*std::move(candidate));
    }
  }
  if (found.empty()) return search;
  std::sort(found.begin(), found.end(),
            [](const Candidate& a, const Candidate& b) { return a.Rank() < b.Rank(); });
  Complete(root, found.front());
  const KubeletProcess& first = found.front().process;
  const auto equals = std::count_if(found.begin(), found.end(), [&first](const Candidate& other) {
    return other.process.kind == first.kind;
  });
  if (equals > 1) {
    search.diagnostics.push_back(
        {"SeveralKubelets", fmt::format("pid {}", first.pid),
         fmt::format("{} processes are kubelets; the one that started first, pid {}, is read",
                     equals, first.pid)});
  }
  search.process = first;
  return search;
}

}  // namespace podresources
