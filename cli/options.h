#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/terminal.h"
#include "cli/look.h"
#include "cli/settings.h"

// The command line of plumbline: what it may say, in one place. docs/simulate.md
// and docs/ledger.md are the reference.
namespace cli {

enum class OutputFormat { kText, kJson };

struct SimulateOptions {
  std::string file;  // pods, and the node unless node_file is given; "-": stdin
  std::optional<std::string> node_file;
  OtherSettings settings;
  std::optional<std::string> recorded;  // a file of recorded admissions; then file is ""
  bool live = false;
  int show = 0;  // how many differences are shown in full
  OutputFormat output = OutputFormat::kText;
  Look look;
};

struct ReplayLogOptions {
  std::string log;                  // JSON lines, plain or gzip
  std::optional<std::string> node;  // only what happens to this one
  OutputFormat output = OutputFormat::kText;
};

// Either a command to run, or what to print and the exit code to leave with.
struct CommandLine {
  std::optional<SimulateOptions> simulate;
  std::optional<ReplayLogOptions> replay;
  int exit_code = 0;
  std::string out;
  std::string err;
};

CommandLine ParseCommandLine(const std::vector<std::string>& arguments,
                             const base::Terminal& terminal);

inline constexpr int kMinWidth = 60;
inline constexpr int kMaxWidth = 1000;

// Exit codes.
inline constexpr int kExitOk = 0;
inline constexpr int kExitNo = 1;  // a pod is refused, or a recording not agreed with
inline constexpr int kExitWrongInput = 2;

}  // namespace cli
