// plumbline-agent: reads one node and shows what it would publish.
#include <fcntl.h>
#include <fmt/format.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "agent/observe.h"
#include "agent/options.h"
#include "agent/picture.h"
#include "agent/text_layout.h"
#include "agent/verdict.h"
#include "placement/encode.h"

namespace {

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string Locale() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    if (std::string value = Variable(name); !value.empty()) return value;
  }
  return "";
}

agent::Environment LookAround() {
  agent::Environment environment;
  environment.node_name = Variable("NODE_NAME");
  char host[256] = "";
  if (gethostname(host, sizeof host - 1) == 0) environment.host_name = host;
  environment.locale = Locale();
  environment.no_color = !Variable("NO_COLOR").empty() || Variable("TERM") == "dumb";
  environment.is_terminal = isatty(STDOUT_FILENO) == 1;
  winsize window{};
  if (environment.is_terminal && ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) == 0) {
    environment.columns = window.ws_col;
  }
  return environment;
}

// What was closed before we started would be taken by the first files and sockets that are opened,
// and what is meant for the terminal be written there. Read-only, so that writing still fails.
void HoldClosedStreams() {
  for (int fd = open("/dev/null", O_RDONLY); fd >= 0; fd = open("/dev/null", O_RDONLY)) {
    if (fd > STDERR_FILENO) {
      close(fd);
      return;
    }
  }
}

void StartLog(const std::string& level) {
  spdlog::set_default_logger(spdlog::stderr_color_mt("agent"));
  spdlog::set_pattern("time=%Y-%m-%dT%H:%M:%S.%e%z level=%l %v");
  spdlog::set_level(spdlog::level::from_str(level));
}

// False if it cannot be written, as to a full disk.
bool Print(std::string_view text) {
  return std::fwrite(text.data(), 1, text.size(), stdout) == text.size() &&
         std::fflush(stdout) == 0;
}

// To stderr, and no matter if nobody can read it: fmt would throw.
void Tell(std::string_view text) { std::fputs(fmt::format("{}\n", text).c_str(), stderr); }

int Leave(const agent::Verdict& verdict) {
  for (const std::string& note : verdict.notes) {
    Tell("plumbline-agent: " + agent::OneLine(note));
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
               agent::OneLine(facts->node_name), facts->topology.numa_nodes.size(),
               facts->topology.devices.size(), observation.placement.pods.size(),
               observation.diagnostics.size(), facts->settled);
  if (!Print(Render(options, *facts, observation, verdict))) {
    Tell("plumbline-agent: cannot write the output");
    return agent::kExitPassing;
  }
  return options.output == agent::OutputFormat::kText ? verdict.exit_code : Leave(verdict);
}

}  // namespace

int main(int argc, char** argv) {
  HoldClosedStreams();
  const agent::CommandLine line =
      agent::ParseCommandLine(std::vector<std::string>(argv + 1, argv + argc), LookAround());
  if (!line.options) {
    if (!line.err.empty()) {
      const std::string_view err = line.err;
      Tell(agent::OneLine(err.substr(0, err.find_last_not_of('\n') + 1)));
    }
    return Print(line.out) ? line.exit_code : agent::kExitPassing;
  }
  StartLog(line.options->log_level);
  return DryRun(*line.options);
}
