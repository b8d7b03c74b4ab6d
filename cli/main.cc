// plumbline: the command line.
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "base/terminal.h"
#include "base/text_layout.h"
#include "cli/options.h"
#include "cli/replay_log.h"
#include "cli/simulate.h"

int main(int argc, char** argv) {
  base::HoldClosedStreams();
  const cli::CommandLine line = cli::ParseCommandLine(
      std::vector<std::string>(argv + 1, argv + argc), base::LookAtTerminal());
  std::ostringstream out;
  std::ostringstream err;
  int exit_code = line.exit_code;
  out << line.out;
  if (!line.err.empty()) err << base::OneLine(line.err) << "\n";
  if (line.simulate) exit_code = cli::RunSimulate(*line.simulate, std::cin, out, err);
  if (line.replay) exit_code = cli::RunReplay(*line.replay, out, err);
  if (!err.str().empty()) base::Tell(err.str().substr(0, err.str().size() - 1));
  if (base::Print(out.str())) return exit_code;
  base::Tell("plumbline: cannot write the output");
  return cli::kExitNo;
}
