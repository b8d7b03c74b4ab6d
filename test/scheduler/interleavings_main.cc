// interleavings: sets the ledger against a simulated cluster, so many times.
//   interleavings COUNT [FIRST-SEED]   runs that many, and prints what happened; a failing one
//   shrunk interleavings FILE                 runs one that was kept
#include <fmt/format.h>

#include <chrono>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "base/text.h"
#include "scheduler/ledger/event_json.h"
#include "test/scheduler/cluster.h"

namespace {

int RunMany(std::uint64_t count, std::uint64_t first) {
  test::Tally tally;
  const auto start = std::chrono::steady_clock::now();
  std::uint64_t steps = 0;
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    const test::Interleaving run = test::AnyInterleaving(seed);
    steps += run.steps.size();
    const std::string wrong = test::Run(run, &tally);
    if (wrong.empty()) continue;
    const test::Interleaving shrunk = test::Shrink(run);
    std::cout << fmt::format("# seed {}: {}\n# shrunk: {}\n{}", seed, wrong, test::Run(shrunk),
                             test::ToText(shrunk));
    return 1;
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  std::cout << fmt::format("{} interleavings, {} steps, {:.1f} s\n", count, steps, took.count());
  for (const auto& [what, times] : tally.counts)
    std::cout << fmt::format("{:>10} {}\n", times, what);
  return 0;
}

int RunKept(const char* path, const char* log) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  const auto run = test::ParseInterleaving(text.str());
  if (!file || !run) {
    std::cerr << path << " is no interleaving\n";
    return 2;
  }
  std::vector<scheduler::ledger::Event> events;
  const std::string wrong = test::Run(*run, nullptr, &events);
  std::ofstream lines(log != nullptr ? log : "/dev/null");
  for (const auto& event : events) lines << ToJson(event) << "\n";
  std::cout << (wrong.empty() ? "nothing is wrong" : wrong) << "\n";
  return wrong.empty() ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::cerr << "interleavings COUNT [FIRST-SEED] | FILE [LOG]\n";
    return 2;
  }
  const auto count = base::ParseNumber<std::uint64_t>(argv[1]);
  if (!count) return RunKept(argv[1], argc > 2 ? argv[2] : nullptr);
  const auto first = argc > 2 ? base::ParseNumber<std::uint64_t>(argv[2]) : std::optional(0UL);
  return RunMany(*count, first.value_or(0));
}
