// plumbline-agent: publishes one node, or shows once what it would publish.
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <string>
#include <string_view>

#include "agent/options.h"
#include "agent/picture.h"
#include "agent/reader.h"
#include "agent/serve.h"
#include "agent/sources.h"
#include "agent/verdict.h"
#include "base/terminal.h"
#include "base/text_layout.h"
#include "placement/encode.h"

namespace {

agent::Environment LookAround() {
  const base::Terminal terminal = base::LookAtTerminal();
  agent::Environment environment;
  environment.node_name = base::Variable("NODE_NAME");
  char host[256] = "";
  if (gethostname(host, sizeof host - 1) == 0) environment.host_name = host;
  environment.locale = terminal.locale;
  environment.no_color = terminal.no_color;
  environment.is_terminal = terminal.is_terminal;
  environment.columns = terminal.columns;
  return environment;
}

void StartLog(const std::string& level) {
  spdlog::set_default_logger(spdlog::stderr_color_mt("agent"));
  spdlog::set_pattern("time=%Y-%m-%dT%H:%M:%S.%e%z level=%l %v");
  spdlog::set_level(spdlog::level::from_str(level));
}

int Leave(const agent::Verdict& verdict) {
  for (const std::string& note : verdict.notes) {
    base::Tell("plumbline-agent: " + base::OneLine(note));
  }
  return verdict.exit_code;
}

std::string Render(const agent::Options& options, const placement::Facts& facts,
                   const placement::Observation& observation, const agent::Verdict& verdict) {
  switch (options.output) {
    case agent::OutputFormat::kText:
      return agent::Picture(facts.topology, observation,
                            {.width = options.width,
                             .ascii = options.ascii,
                             .color = options.color,
                             .hardware_only = verdict.no_kubelet,
                             .notes = verdict.notes});
    case agent::OutputFormat::kYaml:
      return placement::ToYaml(observation);
    case agent::OutputFormat::kJson:
      return placement::ToJson(observation, placement::JsonStyle::kIndented);
    case agent::OutputFormat::kNrt:
      return observation.nrt ? placement::ToYaml(*observation.nrt) : "";
    case agent::OutputFormat::kPlacement:
      return placement::ToYaml(observation.placement);
  }
  return "";
}

kube::Environment WholeEnvironment() {
  kube::Environment environment;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::size_t equals = text.find('=');
    if (equals == std::string_view::npos) continue;
    environment.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return environment;
}

int DryRun(const agent::Options& options) {
  absl::StatusOr<agent::Sources> sources = agent::OpenSources(options);
  if (!sources.ok()) return Leave(agent::JudgeFailure(sources.status()));
  base::SystemClock clock;
  const absl::StatusOr<placement::Facts> facts = agent::Gather(*sources, clock);
  if (!facts.ok()) return Leave(agent::JudgeFailure(facts.status()));
  const agent::Verdict verdict =
      agent::JudgeAnswer(facts->assignments.status(), options.podresources.has_value(),
                         agent::AskedPath(*sources, facts->config));
  if (!verdict.show) return Leave(verdict);

  const placement::Observation observation = placement::Observe(*facts);
  spdlog::info("event=observed node={} numa_nodes={} devices={} pods={} diagnostics={} settled={}",
               base::OneLine(facts->node_name), facts->topology.numa_nodes.size(),
               facts->topology.devices.size(), observation.placement.pods.size(),
               observation.diagnostics.size(), facts->settled);
  if (!base::Print(Render(options, *facts, observation, verdict))) {
    base::Tell("plumbline-agent: cannot write the output");
    return agent::kExitPassing;
  }
  return options.output == agent::OutputFormat::kText ? verdict.exit_code : Leave(verdict);
}

}  // namespace

int main(int argc, char** argv) {
  base::HoldClosedStreams();
  const agent::CommandLine line =
      agent::ParseCommandLine(std::vector<std::string>(argv + 1, argv + argc), LookAround());
  if (!line.options) {
    if (!line.err.empty()) {
      const std::string_view err = line.err;
      base::Tell(base::OneLine(err.substr(0, err.find_last_not_of('\n') + 1)));
    }
    return base::Print(line.out) ? line.exit_code : agent::kExitPassing;
  }
  StartLog(line.options->log_level);
  if (line.options->dry_run) return DryRun(*line.options);
  return agent::Serve(*line.options, WholeEnvironment());
}
