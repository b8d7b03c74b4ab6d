#include "cli/options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "cli/settings.h"

namespace cli {
namespace {

constexpr char kDescription[] =
    "Where pods sit on a node's NUMA nodes, and where the next ones would.";

constexpr char kFooter[] = R"(See plumbline COMMAND --help.)";

constexpr char kSimulateDescription[] =
    "Predicts what a node's kubelet answers to pods,\nand on which NUMA nodes they would sit.";

constexpr char kSimulateFooter[] =
    R"(FILE is YAML or JSON: one node and any number of pods, as documents or Lists.
  pods    Pod manifests as they are; of a Deployment, StatefulSet, DaemonSet,
          ReplicaSet, Job or CronJob, its pod template once
  node    a NodePlacement (kubectl get nodeplacements NAME -o yaml, or
          plumbline-agent --dry-run -o placement), with the pods it holds; a
          NodeResourceTopology; or a machine described in a few lines:
            kind: Machine
            policy: single-numa-node
            numaNodes:
            - {cpus: "0-15,32-47", threads: 2, devices: {nvidia.com/gpu: 4}}
            - {cpus: "16-31,48-63", threads: 2, devices: {nvidia.com/gpu: 4}}
  The pods are admitted one after the other, in the order they stand in.

Examples:
  plumbline simulate demo/simulate.yaml
  kubectl get pod llm-0 -o yaml | plumbline simulate --node gpu-7.yaml -
      would this pod fit on that node?
  plumbline simulate --policy restricted --scope pod demo/simulate.yaml
      what if this pool ran restricted?
  plumbline simulate --recorded admissions.jsonl.gz
      does the prediction agree with what a kubelet did?

Environment:
  NO_COLOR    not empty: no colour, unless --color always is given

Exit codes:
  0  every pod is admitted; with --recorded, verdicts, reasons and affinities
     agree in every event
  1  not so; also if the output cannot be written
  2  wrong input: an option, or a file that cannot be read or understood)";

constexpr char kReplayDescription[] = "Shows step by step what an event log does.";

constexpr char kReplayFooter[] =
    R"(LOG has one event a line; docs/ledger.md describes it. Each step shows the
nodes that it changes: how well they are known, what is expected to be free on
each NUMA node, and the pods that are charged by prediction. At the end: how
often something was not as predicted.

Exit codes:
  0  the whole log was replayed
  1  the output cannot be written
  2  wrong input: an option, or a log that cannot be read or understood)";

// What the flags say before it is settled.
struct Flags {
  std::string output = "text";
  std::string color = "auto";
  std::optional<int> width;
  std::vector<std::string> cpu_options;
};

void AddInput(CLI::App& app, SimulateOptions& options) {
  const auto text = [](CLI::Option* option, const char* type) {
    option->option_text(type)->group("What to read");
  };
  app.add_option("FILE", options.file, "Pods and a node; - for standard input")->option_text(" ");
  text(app.add_option("--node", options.node_file, "Take the node from this file"), "FILE");
  text(app.add_option("--recorded", options.recorded,
                      "Replay recorded admissions (JSON lines, plain or\ngzip) and count what "
                      "agrees"),
       "FILE");
  app.add_flag("--live", options.live,
               "With --recorded: compare with what the running\nkubelet did, its later check of "
               "the sums included")
      ->group("What to read");
  text(app.add_option("--show", options.show, "With --recorded: show the first N differences")
           ->check(CLI::Range(0, 1000000)),
       "N");
}

void AddSettings(CLI::App& app, OtherSettings& settings, Flags& flags) {
  const auto one_of = [](CLI::Option* option, const std::vector<std::string>& known) {
    option->check(CLI::IsMember(known))->option_text("NAME")->group("Another setting");
  };
  one_of(app.add_option("--policy", settings.policy,
                        "The topology manager's: none, best-effort,\nrestricted or "
                        "single-numa-node"),
         {kTopologyPolicies.begin(), kTopologyPolicies.end()});
  one_of(app.add_option("--scope", settings.scope, "container or pod"),
         {kTopologyScopes.begin(), kTopologyScopes.end()});
  one_of(app.add_option("--cpu-policy", settings.cpu_policy, "none or static"),
         {kCpuPolicies.begin(), kCpuPolicies.end()});
  one_of(app.add_option("--memory-policy", settings.memory_policy, "None or Static"),
         {kMemoryPolicies.begin(), kMemoryPolicies.end()});
  app.add_option("--cpu-option", flags.cpu_options,
                 "An option of the static CPU policy, such as\nfull-pcpus-only=true; may be "
                 "repeated")
      ->take_all()
      ->expected(1)
      ->option_text("NAME=VALUE")
      ->group("Another setting");
}

void AddLook(CLI::App& app, SimulateOptions& options, Flags& flags) {
  app.add_option("-o,--output", flags.output, "text (default) or json")
      ->check(CLI::IsMember({"text", "json"}))
      ->option_text("FORMAT")
      ->group("How it looks");
  app.add_flag("--ascii", options.look.ascii, "ASCII only (always, if the locale is not UTF-8)")
      ->group("How it looks");
  app.add_option("--color", flags.color, "auto (default), always or never")
      ->check(CLI::IsMember({"auto", "always", "never"}))
      ->option_text("WHEN")
      ->group("How it looks");
  app.add_option("--width", flags.width, "Columns, 60 to 1000 (default: the terminal's, else\n80)")
      ->check(CLI::Range(kMinWidth, kMaxWidth))
      ->option_text("N")
      ->group("How it looks");
}

void AddReplay(CLI::App& app, ReplayLogOptions& options, Flags& flags) {
  app.footer(kReplayFooter);
  app.add_option("LOG", options.log, "Events as JSON lines, plain or gzip")
      ->required()
      ->option_text(" ");
  app.add_option("--node", options.node, "Show only what happens to this node")
      ->option_text("NAME");
  app.add_option("-o,--output", flags.output, "text (default) or json, one object a step")
      ->check(CLI::IsMember({"text", "json"}))
      ->option_text("FORMAT");
}

// What is wrong with the options taken together; "" if nothing is.
std::string Settle(const Flags& flags, const base::Terminal& terminal, SimulateOptions& options) {
  if (options.recorded ? !options.file.empty() : options.file.empty()) {
    return options.recorded ? "--recorded takes no further FILE" : "FILE is missing";
  }
  if (!options.recorded && (options.live || options.show > 0)) {
    return "--live and --show go with --recorded";
  }
  if (options.file == "-" && options.node_file == "-") {
    return "FILE and --node cannot both be standard input";
  }
  for (const std::string& pair : flags.cpu_options) {
    const std::size_t equals = pair.find('=');
    const std::string name = pair.substr(0, equals);
    if (equals == std::string::npos) return fmt::format("--cpu-option {}: give NAME=VALUE", pair);
    if (std::ranges::find(kCpuOptions, name) == kCpuOptions.end()) {
      return fmt::format("--cpu-option {}: there is none of this name, only {}", name,
                         fmt::join(kCpuOptions, ", "));
    }
    options.settings.cpu_options[name] = pair.substr(equals + 1);
  }
  if (options.recorded && (options.node_file || !(options.settings == OtherSettings()))) {
    return "--recorded takes node and settings from the recording";
  }
  options.output = flags.output == "json" ? OutputFormat::kJson : OutputFormat::kText;
  options.look.ascii = options.look.ascii || !base::IsUtf8(terminal.locale);
  options.look.color = flags.color == "always" ||
                       (flags.color == "auto" && terminal.is_terminal && !terminal.no_color);
  const int columns = terminal.columns > 0 ? terminal.columns : 80;
  options.look.width = flags.width.value_or(std::clamp(columns, kMinWidth, kMaxWidth));
  return "";
}

CommandLine Say(std::string out) {
  return {.simulate = std::nullopt,
          .replay = std::nullopt,
          .exit_code = kExitOk,
          .out = std::move(out),
          .err = ""};
}

CommandLine Refuse(const CLI::App& app, const std::string& command, std::string why) {
  const std::string program = app.got_subcommand(command) ? "plumbline " + command : "plumbline";
  std::ranges::replace(why, '\n', ' ');
  while (why.ends_with(' ')) why.pop_back();
  return {.simulate = std::nullopt,
          .replay = std::nullopt,
          .exit_code = kExitWrongInput,
          .out = "",
          .err = fmt::format("{}: {}; see {} --help", program, why, program)};
}

// CLI11 puts an empty line more than needed between groups.
std::string Tighten(std::string help) {
  for (std::size_t at = help.find("\n\n\n"); at != std::string::npos;
       at = help.find("\n\n\n", at)) {
    help.erase(at, 1);
  }
  return help;
}

}  // namespace

CommandLine ParseCommandLine(const std::vector<std::string>& arguments,
                             const base::Terminal& terminal) {
  SimulateOptions options;
  Flags flags;
  CLI::App app(kDescription, "plumbline");
  app.set_version_flag("--version", "plumbline " PLUMBLINE_VERSION, "Print the version and leave");
  app.set_help_flag("-h,--help", "Print this and leave");
  app.footer(kFooter);
  app.require_subcommand(1);
  app.get_formatter()->column_width(28);
  CLI::App& simulate = *app.add_subcommand("simulate", kSimulateDescription);
  simulate.footer(kSimulateFooter);
  AddInput(simulate, options);
  AddSettings(simulate, options.settings, flags);
  AddLook(simulate, options, flags);
  ReplayLogOptions replay_options;
  CLI::App& replay = *app.add_subcommand("replay", kReplayDescription);
  AddReplay(replay, replay_options, flags);
  const std::string command = arguments.empty() ? "" : arguments.front();
  if (!command.empty() && !command.starts_with('-') && command != "simulate" &&
      command != "replay") {
    return Refuse(app, "simulate", "there is no command " + command);
  }
  try {
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::CallForHelp&) {
    return Say(Tighten(app.help()));
  } catch (const CLI::CallForVersion& version) {
    return Say(fmt::format("{}\n", version.what()));
  } catch (const CLI::Error& error) {
    return Refuse(app, command == "replay" ? "replay" : "simulate", error.what());
  }
  if (app.got_subcommand("replay")) {
    replay_options.output = flags.output == "json" ? OutputFormat::kJson : OutputFormat::kText;
    return {.simulate = std::nullopt,
            .replay = std::move(replay_options),
            .exit_code = kExitOk,
            .out = "",
            .err = ""};
  }
  const std::string wrong = Settle(flags, terminal, options);
  if (!wrong.empty()) return Refuse(app, "simulate", wrong);
  return {.simulate = std::move(options),
          .replay = std::nullopt,
          .exit_code = kExitOk,
          .out = "",
          .err = ""};
}

}  // namespace cli
