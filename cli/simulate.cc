#include "cli/simulate.h"

#include <fmt/format.h>

#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "base/status_macros.h"
#include "base/text_layout.h"
#include "cli/recorded.h"
#include "cli/scene.h"
#include "cli/simulation.h"
#include "cli/simulation_report.h"

namespace cli {
namespace {

absl::StatusOr<Source> ReadSource(const std::string& path, std::istream& in) {
  const bool standard = path == "-";
  Source source{.name = standard ? "standard input" : path, .text = ""};
  std::ifstream file;
  if (!standard) file.open(path, std::ios::binary);
  std::istream& stream = standard ? in : file;
  std::vector<char> buffer(1 << 16);
  // read() keeps what the stream throws, as for a folder, in bad().
  while (stream.read(buffer.data(), std::ssize(buffer)) || stream.gcount() > 0) {
    source.text.append(buffer.data(), static_cast<std::size_t>(stream.gcount()));
  }
  if (stream.bad() || (!standard && !file.is_open())) {
    return absl::NotFoundError(fmt::format("cannot read {}", source.name));
  }
  return source;
}

absl::StatusOr<Scene> ReadFiles(const SimulateOptions& options, std::istream& in) {
  std::optional<Source> node;
  if (options.node_file) {
    ASSIGN_OR_RETURN(node, ReadSource(*options.node_file, in));
  }
  ASSIGN_OR_RETURN(const Source file, ReadSource(options.file, in));
  return ReadScene(file, node, options.settings);
}

}  // namespace

int RunSimulate(const SimulateOptions& options, std::istream& in, std::ostream& out,
                std::ostream& err) {
  if (options.recorded) return RunRecorded(options, out, err);
  absl::StatusOr<Scene> scene = ReadFiles(options, in);
  if (!scene.ok()) {
    const std::string why(scene.status().message());
    err << "plumbline simulate: " << base::OneLine(why) << "\n";
    return kExitWrongInput;
  }
  const Simulation simulation = Simulate(*std::move(scene));
  out << (options.output == OutputFormat::kJson ? ToJson(simulation)
                                                : ToText(simulation, options.look));
  const int good = simulation.Count(SimulatedPod::Verdict::kAdmitted) +
                   simulation.Count(SimulatedPod::Verdict::kAlreadyThere);
  return std::cmp_equal(good, simulation.pods.size()) ? kExitOk : kExitNo;
}

}  // namespace cli
