#include "agent/options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <map>
#include <memory>

#include "agent/version.h"
#include "base/terminal.h"

namespace agent {
namespace {

constexpr char kDescription[] =
    "Tells where CPUs, memory, GPUs, NICs and pods sit on a host's NUMA nodes, by\n"
    "the word of the kernel and of the kubelet: publishes it in the cluster for as\n"
    "long as it runs, or shows it once (--dry-run), which needs no cluster.";

constexpr char kFooter[] = R"(Examples:
  plumbline-agent --dry-run
      this host; with a kubelet on it, also its pods
  plumbline-agent --dry-run -o yaml
      both objects as they would be published
  plumbline-agent --dry-run --root /mnt/recorded
      a machine recorded as a tree of files, the kubelet's among them
  plumbline-agent --dry-run --topology-xml machine.xml --podresources pods.json
      hardware as lstopo saved it, pods from recorded replies
  plumbline-agent --root /host --metrics-port 8080
      in a pod that has the node's folders below /host: publishes
  plumbline-agent --kubeconfig admin.conf --node-name gpu-7
      on the node itself: publishes

What is read where:
  The hardware comes from --root, or from --topology-xml instead. The kubelet's
  files, its socket and the cgroups come from --root. With --topology-xml they
  are read only if --root is given as well, so that this host's pods never show
  up on another machine's hardware; --podresources is read wherever it is.

Environment:
  NODE_NAME   the node's name, unless --node-name is given
  KUBERNETES_SERVICE_HOST, KUBERNETES_SERVICE_PORT
              the API server, in a pod; the credentials are those of its account
  HTTPS_PROXY, NO_PROXY
              the way to the API server
  NO_COLOR    not empty: no colour, unless --color always is given

Exit codes:
  0  shown, also if there is no kubelet on the host; or told to stop publishing
  1  a passing fault: the kubelet is there but did not answer; the hardware is
     shown, and trying again may help
  2  wrong input: an option, a file or a root that cannot be used)";

const std::map<std::string, NrtMode> kNrtModes = {
    {"auto", NrtMode::kAuto}, {"always", NrtMode::kAlways}, {"never", NrtMode::kNever}};

const std::map<std::string, OutputFormat> kFormats = {{"text", OutputFormat::kText},
                                                      {"yaml", OutputFormat::kYaml},
                                                      {"json", OutputFormat::kJson},
                                                      {"nrt", OutputFormat::kNrt},
                                                      {"placement", OutputFormat::kPlacement}};

// What the flags say before it is settled with the environment.
struct Flags {
  std::string output = "text";
  std::string color = "auto";
  std::optional<int> width;
  std::string node_name;
  std::string nrt = "auto";
  int poll_milliseconds = 1000;
};

void AddFlags(CLI::App& app, Options& options, Flags& flags) {
  const auto text = [](CLI::Option* option, const char* type) { option->option_text(type); };
  app.add_flag("--dry-run", options.dry_run, "Look once, print, publish nothing")
      ->group("What to do");
  text(app.add_option("-o,--output", flags.output,
                      "text: a picture for the terminal (default)\n"
                      "yaml, json: both objects, exactly as published\n"
                      "nrt, placement: one of them, as YAML")
           ->check(CLI::IsMember({"text", "yaml", "json", "nrt", "placement"}))
           ->group("What to do"),
       "FORMAT");

  text(app.add_option("--root", options.root,
                      "Directory that holds sys/, proc/ and var/\n(default: /)")
           ->group("Where to read"),
       "DIR");
  text(app.add_option("--topology-xml", options.topology_xml,
                      "hwloc's XML of a machine instead of its sys/")
           ->group("Where to read"),
       "FILE");
  text(app.add_option("--podresources", options.podresources,
                      "The kubelet's socket, or a JSON file of recorded\nreplies (default: "
                      "pod-resources/kubelet.sock in the\nkubelet's directory below --root)")
           ->group("Where to read"),
       "PATH");
  text(app.add_option("--kubelet-config", options.kubelet_config,
                      "The kubelet's configuration file, below --root\n(default: what the running "
                      "kubelet names)")
           ->group("Where to read"),
       "PATH");
  text(app.add_option("--node-name", flags.node_name,
                      "Name of the Node object (default: NODE_NAME, else\nthe host's name)")
           ->group("Where to read"),
       "NAME");

  text(
      app.add_option("--exclude-resource", options.excluded_resources,
                     "Leave this resource out of NodeResourceTopology;\ncan be given several times")
          ->allow_extra_args(false)
          ->group("What to show"),
      "NAME");

  app.add_flag("--ascii", options.ascii,
               "Draw with ASCII only (always, if the locale is not\nUTF-8)")
      ->group("How it looks");
  text(app.add_option("--color", flags.color, "auto (default), always or never")
           ->check(CLI::IsMember({"auto", "always", "never"}))
           ->group("How it looks"),
       "WHEN");
  text(app.add_option("--width", flags.width,
                      "Columns, 60 to 1000 (default: the terminal's, else\n80)")
           ->check(CLI::Range(kMinWidth, kMaxWidth))
           ->group("How it looks"),
       "N");
  text(app.add_option("--log-level", options.log_level,
                      "debug, info, warn, error or off; to stderr\n(default: info, for a dry run "
                      "warn)")
           ->check(CLI::IsMember({"debug", "info", "warn", "error", "off"}))
           ->group("How it looks"),
       "LEVEL");
}

// A time as "500ms", "2s", "1m".
CLI::Validator Duration() {
  const std::map<std::string, int> units = {{"ms", 1}, {"s", 1000}, {"m", 60'000}};
  return CLI::AsNumberWithUnit(units, CLI::AsNumberWithUnit::UNIT_REQUIRED, "TIME");
}

void AddPublishFlags(CLI::App& app, PublishOptions& options, Flags& flags) {
  const auto add = [&app](const char* name, auto& value, const char* what, const char* type) {
    return app.add_option(name, value, what)->option_text(type)->group("Publishing");
  };
  add("--kubeconfig", options.kubeconfig,
      "How to reach the API server (default: as a pod of\nthe cluster)", "FILE");
  add("--namespace", options.name_space,
      "Where the Lease is (default: the pod's namespace,\nelse plumbline-system)", "NAME");
  add("--poll-interval", flags.poll_milliseconds,
      "How often to look when nothing tells of a change,\n250ms to 1m (default: 1s)", "TIME")
      ->transform(Duration() & CLI::Range(250, 60'000));
  add("--nrt", flags.nrt,
      "NodeResourceTopology: auto (default) leaves it to\nanother writer, always takes it over, "
      "never\nwrites none",
      "MODE")
      ->check(CLI::IsMember({"auto", "always", "never"}));
  app.add_flag("--kai-annotation", options.kai_annotation,
               "Annotate pods as the KAI scheduler reads it")
      ->group("Publishing");
  add("--metrics-port", options.metrics_port,
      "Serve /metrics, /healthz and /readyz there (default:\nnowhere)", "N")
      ->check(CLI::Range(0, 65'535));
  add("--metrics-address", options.metrics_address,
      "Of which of the host's addresses (default: all)", "ADDRESS");
  CLI::Option* certificate = add("--tls-cert", options.tls_certificate,
                                 "Serve them by TLS, with this certificate (PEM)", "FILE");
  CLI::Option* key = add("--tls-key", options.tls_key, "And its key (PEM)", "FILE");
  certificate->needs(key);
  key->needs(certificate);
}

std::string Lower(std::string text) {
  std::ranges::transform(text, text.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

void Settle(const Flags& flags, const Environment& environment, Options& options) {
  options.output = kFormats.at(flags.output);
  options.publish.nrt = kNrtModes.at(flags.nrt);
  options.publish.poll_interval = std::chrono::milliseconds(flags.poll_milliseconds);
  if (options.log_level.empty()) options.log_level = options.dry_run ? "warn" : "info";
  options.node_name = flags.node_name;
  if (options.node_name.empty()) options.node_name = environment.node_name;
  if (options.node_name.empty()) options.node_name = Lower(environment.host_name);
  if (options.node_name.empty()) options.node_name = "localhost";
  options.ascii = options.ascii || !base::IsUtf8(environment.locale);
  options.color = flags.color == "always" ||
                  (flags.color == "auto" && environment.is_terminal && !environment.no_color);
  const int columns = environment.columns > 0 ? environment.columns : 80;
  options.width = flags.width.value_or(std::clamp(columns, kMinWidth, kMaxWidth));
}

CommandLine Refuse(const std::string& why) {
  return {.options = std::nullopt,
          .exit_code = kExitWrongInput,
          .out = "",
          .err = fmt::format("plumbline-agent: {}\n", why)};
}

// CLI11 puts an empty line more than needed between groups.
std::string Tighten(std::string help) {
  for (std::size_t at = help.find("\n\n\n"); at != std::string::npos;
       at = help.find("\n\n\n", at)) {
    help.erase(at, 1);
  }
  return help;
}

std::string OneLine(std::string text) {
  std::ranges::replace(text, '\n', ' ');
  while (text.ends_with(' ')) text.pop_back();
  return text + "; see plumbline-agent --help";
}

}  // namespace

CommandLine ParseCommandLine(const std::vector<std::string>& arguments,
                             const Environment& environment) {
  Options options;
  Flags flags;
  CLI::App app(kDescription, "plumbline-agent");
  app.set_version_flag("--version", fmt::format("plumbline-agent {}", kVersion),
                       "Print the version and leave");
  app.set_help_flag("-h,--help", "Print this and leave");
  app.footer(kFooter);
  app.get_formatter()->column_width(28);
  app.allow_extras();  // refused below, by name
  AddFlags(app, options, flags);
  AddPublishFlags(app, options.publish, flags);
  try {
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::CallForHelp&) {
    return {.options = std::nullopt, .exit_code = kExitOk, .out = Tighten(app.help()), .err = ""};
  } catch (const CLI::CallForVersion& version) {
    return {.options = std::nullopt,
            .exit_code = kExitOk,
            .out = fmt::format("{}\n", version.what()),
            .err = ""};
  } catch (const CLI::Error& error) {
    return Refuse(OneLine(error.what()));
  }
  if (!app.remaining().empty()) {
    return Refuse(OneLine(fmt::format("unknown option or argument {}", app.remaining().front())));
  }
  if (!options.dry_run && app.count("--output") > 0) {
    return Refuse("--output: without --dry-run nothing is printed, and this node is published");
  }
  // As from a variable that is not set; an empty path must not mean that nobody is to be asked.
  if (options.podresources && options.podresources->empty()) {
    return Refuse("--podresources: the path is empty; see plumbline-agent --help");
  }
  options.root_given = app.count("--root") > 0;
  Settle(flags, environment, options);
  return {.options = std::move(options), .exit_code = kExitOk, .out = "", .err = ""};
}

}  // namespace agent
