#include "podresources/kubelet_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <iterator>
#include <set>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "base/status_macros.h"
#include "podresources/kubelet_fields.h"
#include "podresources/kubelet_flags.h"
#include "podresources/kubelet_process.h"
#include "podresources/kubelet_state.h"
#include "podresources/kubelet_yaml.h"

namespace podresources {
namespace {

constexpr std::int64_t kMaxFile = std::int64_t{1} << 20;
constexpr std::int64_t kMaxDropIns = std::int64_t{4}
                                     << 20;  // all of them; real ones have a few KiB

// Where kubelets keep their files when no process says so: upstream, k0s, MicroK8s.
constexpr std::array kRootDirs = {"/var/lib/kubelet", "/var/lib/k0s/kubelet",
                                  "/var/snap/microk8s/common/var/lib/kubelet"};
// Where their configuration is: kubeadm, k0s, and what distributions and clouds put below /etc.
// kubeadm's kubelet.conf is a kubeconfig and OpenShift's is not: the kind tells.
constexpr std::array kConfigFiles = {
    "/var/lib/kubelet/config.yaml",         "/var/lib/k0s/kubelet-config.yaml",
    "/etc/kubernetes/kubelet-config.yaml",  "/etc/kubernetes/kubelet/kubelet-config.json",
    "/etc/kubernetes/kubelet/config.json",  "/etc/kubernetes/kubelet.conf",
    "/home/kubernetes/kubelet-config.yaml",
};
constexpr std::array kRancherDropIns = {"/var/lib/rancher/k3s/agent/etc/kubelet.conf.d",
                                        "/var/lib/rancher/rke2/agent/etc/kubelet.conf.d"};

// FailedPrecondition: YAML, and of another kind.
absl::StatusOr<YamlValue> ReadDocument(const base::FileTree& root, const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, root.Read(path, kMaxFile));
  absl::StatusOr<YamlValue> document = ParseYaml(text);
  if (!document.ok()) {
    return absl::InvalidArgumentError(fmt::format("cannot read {}: {}", root.Describe(path),
                                                  std::string(document.status().message())));
  }
  const YamlValue* kind = document->Find("kind");
  const YamlValue* version = document->Find("apiVersion");
  if (kind != nullptr && version != nullptr && kind->text == "KubeletConfiguration" &&
      version->text.starts_with("kubelet.config.k8s.io/")) {
    return document;
  }
  return absl::FailedPreconditionError(
      fmt::format("{} is no KubeletConfiguration of kubelet.config.k8s.io: its kind is \"{}\"",
                  root.Describe(path), kind == nullptr ? "" : kind->text));
}

// {"kubeletconfig": {…}}: the configuration in force, defaults filled in. Kubelets before 1.37
// leave out its kind.
absl::StatusOr<YamlValue> ParseConfigz(const std::string& json) {
  ASSIGN_OR_RETURN(const YamlValue document, ParseYaml(json));
  const YamlValue* configuration = document.Find("kubeletconfig");
  if (configuration == nullptr || configuration->map.empty()) {
    return absl::InvalidArgumentError("it has no kubeletconfig");
  }
  const YamlValue* version = configuration->Find("apiVersion");
  if (version != nullptr && !version->text.starts_with("kubelet.config.k8s.io/")) {
    return absl::InvalidArgumentError(
        fmt::format("its kubeletconfig is of {}, not of kubelet.config.k8s.io", version->text));
  }
  return *configuration;
}

// One reading of a kubelet's configuration; the steps of Run are in the kubelet's own order.
class Reader {
 public:
  Reader(const base::FileTree& root, const KubeletConfigOptions& options)
      : root_(root), options_(options) {}

  absl::StatusOr<KubeletConfig> Run() {
    TakeConfigz();
    FindProcess();
    ChooseRootDir();
    if (configz_) {
      merged_.whole = true;
      LayDocument(*configz_, {ConfigSource::kConfigz, "configz"}, merged_);
    } else {
      RETURN_IF_ERROR(ReadWhatItWasGiven());
    }
    ReadFields(merged_, config_);
    AskState();
    config_.looked_at.assign(looked_at_.begin(), looked_at_.end());
    return std::move(config_);
  }

 private:
  using Kind = KubeletProcess::Kind;

  absl::StatusOr<YamlValue> ReadConfiguration(const std::string& path) {
    looked_at_.insert(path);
    return ReadDocument(root_, path);
  }

  void Note(const std::string& code, const std::string& subject, const std::string& message) {
    config_.diagnostics.push_back({code, subject, message});
  }

  void TakeConfigz() {
    if (!options_.configz) return;
    absl::StatusOr<YamlValue> configuration = ParseConfigz(*options_.configz);
    if (configuration.ok()) {
      configz_ = *std::move(configuration);
    } else {
      Note("ConfigzInvalid", "",
           fmt::format("what the kubelet says is its configuration cannot be used: {}",
                       std::string(configuration.status().message())));
    }
  }

  // File, drop-in files, flags.
  absl::Status ReadWhatItWasGiven() {
    RETURN_IF_ERROR(ReadMainFile());
    ReadDropIns();
    if (drop_in_lost_) merged_ = MergedConfig();
    LayFlags(flags_, merged_);
    return absl::OkStatus();
  }

  void FindProcess() {
    KubeletSearch search = FindKubelet(root_);
    std::ranges::move(search.diagnostics, std::back_inserter(config_.diagnostics));
    process_ = std::move(search.process);
    if (!process_) {
      Note("NoKubelet", "", "no kubelet is running that /proc shows: its flags are not known");
      merged_.whole = false;
      return;
    }
    config_.pid = process_->pid;
    config_.started_at = process_->started_at;
    config_.start_ticks = process_->start_ticks;
    merged_.whole = true;
    if (process_->kind == Kind::kKubelite) ReadKubeliteArguments();
    if (process_->kind == Kind::kEmbedded) ReadEmbeddedArguments();
    flags_ = ParseKubeletFlags(process_->arguments);
  }

  void ReadKubeliteArguments() {
    const std::vector<std::string> files = FlagValues(process_->arguments, "kubelet-args-file");
    const std::string path =
        files.empty() ? "/var/snap/microk8s/current/args/kubelet" : Resolve(files.back());
    looked_at_.insert(path);
    const absl::StatusOr<std::string> text = root_.Read(path, kMaxFile);
    process_->arguments.clear();
    if (text.ok()) {
      process_->arguments = ParseArgumentsFile(*text);
      return;
    }
    merged_.whole = false;
    Note("KubeletConfigUnreadable", path,
         fmt::format("the kubelet's flags: {}", std::string(text.status().message())));
  }

  // k3s adds flags of its own and hides its command line: what is not found is not known.
  void ReadEmbeddedArguments() {
    merged_.whole = false;
    std::vector<std::string> arguments;
    const std::string path = fmt::format("/etc/rancher/{}/config.yaml", process_->program);
    looked_at_.insert(path);
    const absl::StatusOr<std::string> text = root_.Read(path, kMaxFile);
    const absl::StatusOr<YamlValue> document = text.ok() ? ParseYaml(*text) : text.status();
    if (document.ok()) {
      if (const YamlValue* list = document->Find("kubelet-arg")) {
        for (const YamlValue& value : list->list) arguments.push_back("--" + value.text);
        if (list->kind == YamlValue::Kind::kScalar) arguments.push_back("--" + list->text);
      }
    } else if (!absl::IsNotFound(text.status())) {
      Note("KubeletConfigUnreadable", path, std::string(document.status().message()));
    }
    for (const std::string& value : FlagValues(process_->arguments, "kubelet-arg")) {
      arguments.push_back("--" + value);
    }
    process_->arguments = std::move(arguments);
    if (configz_) return;
    Note("KubeletEmbedded", fmt::format("pid {}", process_->pid),
         fmt::format("the kubelet runs inside {}, which hides its flags: what neither its drop-in "
                     "files nor kubelet-arg set is not known",
                     process_->program));
  }

  // A path as the kubelet means it: relative ones start at its working directory.
  std::string Resolve(const std::string& path) const {
    if (path.starts_with('/') || process_->directory.empty()) return path;
    return fmt::format("{}/{}", process_->directory, path);
  }

  void ChooseRootDir() {
    if (flags_.root_dir && !flags_.root_dir->empty()) {
      config_.root_dir = Resolve(*flags_.root_dir);
      return;
    }
    if (process_) return;
    for (const char* const candidate : kRootDirs) {
      if (root_.Exists(candidate)) {
        config_.root_dir = candidate;
        return;
      }
    }
  }

  absl::Status ReadMainFile() {
    if (options_.config_file) {
      ASSIGN_OR_RETURN(const YamlValue document, ReadConfiguration(*options_.config_file));
      Take(document, *options_.config_file);
      if (!process_) merged_.whole = true;
      return absl::OkStatus();
    }
    if (!process_) {
      SearchMainFile();
    } else if (flags_.config && !flags_.config->empty()) {
      ReadNamedFile(*flags_.config);
    }
    return absl::OkStatus();
  }

  void Take(const YamlValue& document, const std::string& path) {
    LayDocument(document, {ConfigSource::kFile, path}, merged_);
    LayEvictionDefault(merged_);
    CompareTimes(path);
  }

  void ReadNamedFile(const std::string& name) {
    const std::string path = Resolve(name);
    if (!path.starts_with('/')) {
      merged_.whole = false;
      Note("KubeletConfigUnreadable", path,
           fmt::format("the kubelet reads {} in its working directory, which is not readable: "
                       "run as root",
                       path));
      return;
    }
    const absl::StatusOr<YamlValue> document = ReadConfiguration(path);
    if (document.ok()) return Take(*document, path);
    merged_.whole = false;
    Note("KubeletConfigUnreadable", path, std::string(document.status().message()));
  }

  void SearchMainFile() {
    for (const char* const path : kConfigFiles) {
      const absl::StatusOr<YamlValue> document = ReadConfiguration(path);
      if (document.ok()) {
        merged_.whole = true;
        return Take(*document, path);
      }
      if (!absl::IsNotFound(document.status()) && !absl::IsFailedPrecondition(document.status())) {
        Note("KubeletConfigUnreadable", path, std::string(document.status().message()));
      }
    }
    std::string looked;
    for (const char* const path : kConfigFiles) {
      looked += fmt::format("{}{}", looked.empty() ? "" : ", ", path);
    }
    Note("NoKubeletConfig", "", fmt::format("no kubelet configuration was found in {}", looked));
  }

  void ReadDropIns() {
    if (flags_.config_dir && !flags_.config_dir->empty()) {
      ReadFolder(Resolve(*flags_.config_dir), 0);
      return;
    }
    if (process_ && process_->kind != Kind::kEmbedded) return;
    for (const char* const folder : kRancherDropIns) {
      looked_at_.insert(folder);
      if (!root_.Exists(folder)) continue;
      ReadFolder(folder, 0);
      return;
    }
  }

  // In the order of names, folders at their place among the files. Links to folders are not
  // followed, as the kubelet does not.
  void ReadFolder(const std::string& folder, int depth) {
    constexpr int kMaxFolders = 8;
    looked_at_.insert(folder);
    const absl::StatusOr<std::vector<std::string>> names = root_.List(folder);
    if (!names.ok() || depth > kMaxFolders) {
      return LoseDropIn(
          folder, names.ok() ? "it is nested too deeply" : std::string(names.status().message()));
    }
    CompareTimes(folder);
    for (const std::string& name : *names) {
      const std::string path = fmt::format("{}/{}", folder, name);
      const absl::StatusOr<base::FileInfo> info = root_.Stat(path);
      const bool is_folder = info.ok() && info->type == base::FileInfo::Type::kDirectory;
      if (is_folder && !root_.ReadLink(path).ok()) {
        ReadFolder(path, depth + 1);
      } else if (name.ends_with(".conf")) {
        ReadDropIn(path);
      }
    }
  }

  void ReadDropIn(const std::string& path) {
    const absl::StatusOr<base::FileInfo> info = root_.Stat(path);
    drop_in_bytes_ += info.ok() ? info->bytes : 0;
    if (drop_in_bytes_ > kMaxDropIns) {
      return LoseDropIn(path,
                        fmt::format("it and those before it have more than {} bytes", kMaxDropIns));
    }
    const absl::StatusOr<YamlValue> document = ReadConfiguration(path);
    if (!document.ok()) return LoseDropIn(path, std::string(document.status().message()));
    LayDocument(*document, {ConfigSource::kFile, path}, merged_);
    CompareTimes(path);
  }

  void LoseDropIn(const std::string& path, const std::string& cause) {
    drop_in_lost_ = true;
    Note("KubeletConfigUnreadable", path,
         fmt::format("drop-in {}: {}; it may override any value of the files, so these count as "
                     "not known",
                     root_.Describe(path), cause));
  }

  // The kubelet reads its files once, when it starts. A second is allowed for: the start is known
  // to a second only.
  void CompareTimes(const std::string& path) {
    if (!config_.started_at) return;
    const absl::StatusOr<base::FileInfo> info = root_.Stat(path);
    if (!info.ok() || info->modified <= *config_.started_at + std::chrono::seconds(1)) return;
    Note("ConfigNewerThanKubelet", path,
         fmt::format("{} was changed at {}, the kubelet started at {}: until it restarts it may "
                     "use the old values",
                     root_.Describe(path), base::FormatTime(info->modified),
                     base::FormatTime(*config_.started_at)));
  }

  // The state files name the policies that last ran: better than nothing.
  void AskState() {
    if (!config_.cpu_policy.value) {
      TakePolicy("cpu_manager_state", ParseCpuManagerState, config_.cpu_policy);
    }
    if (!config_.memory_policy.value) {
      TakePolicy("memory_manager_state", ParseMemoryManagerState, config_.memory_policy);
    }
  }

  template <class T>
  void TakePolicy(const char* name, absl::StatusOr<T> (*parse)(const std::string&),
                  Sourced<std::string>& policy) {
    const std::string path = fmt::format("{}/{}", config_.root_dir, name);
    const absl::StatusOr<std::string> text = root_.Read(path);
    if (!text.ok()) return;
    const absl::StatusOr<T> state = parse(*text);
    if (state.ok()) policy = {state->policy, ConfigSource::kState, path};
  }

  const base::FileTree& root_;
  const KubeletConfigOptions& options_;
  std::optional<YamlValue> configz_;
  std::optional<KubeletProcess> process_;
  KubeletFlags flags_;
  MergedConfig merged_;
  std::set<std::string> looked_at_;
  bool drop_in_lost_ = false;
  std::int64_t drop_in_bytes_ = 0;
  KubeletConfig config_;
};

}  // namespace

absl::StatusOr<KubeletConfig> ReadKubeletConfig(const base::FileTree& root,
                                                const KubeletConfigOptions& options) {
  return Reader(root, options).Run();
}

}  // namespace podresources
