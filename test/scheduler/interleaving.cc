#include "test/scheduler/interleaving.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <sstream>
#include <string>
#include <utility>

namespace test {
namespace {

constexpr std::array<const char*, kActions> kNames = {
    "create",  "schedule", "bind",      "admit", "start",    "end",       "delete",
    "release", "vanish",   "force",     "look",  "tell-pod", "tell-node", "foreign",
    "health",  "kubelet",  "scheduler", "gap",   "recreate", "agent",     "wait"};

// How often, by Action.
constexpr std::array<int, kActions> kWeights = {10, 14, 14, 14, 8, 3, 3, 5, 4, 2, 12,
                                                16, 14, 2,  1,  1, 1, 1, 1, 2, 5};
using Weights = std::array<int, kActions>;

Weights WaysOf(Dice& dice) {
  static constexpr std::array kPercent = {25, 100, 100, 300};
  Weights weights = kWeights;
  for (std::size_t action = 0; action < weights.size(); ++action) {
    int percent = kPercent[static_cast<std::size_t>(dice.Below(4))];
    // Pods that come and are admitted are what all else is about.
    if (action <= static_cast<std::size_t>(Action::kAdmit)) percent = std::max(percent, 100);
    weights[action] *= percent;
  }
  return weights;
}

Action AnyAction(const Weights& weights, Dice& dice) {
  int sum = 0;
  for (const int weight : weights) sum += weight;
  int at = dice.Below(sum);
  std::size_t action = 0;
  while (at >= weights[action]) at -= weights[action++];
  return static_cast<Action>(action);
}

}  // namespace

std::uint64_t Dice::Roll() {  // splitmix64
  state_ += 0x9e3779b97f4a7c15ULL;
  std::uint64_t mixed = state_;
  mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9ULL;
  mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebULL;
  return mixed ^ (mixed >> 31);
}

const char* ToString(Action action) { return kNames[static_cast<std::size_t>(action)]; }

Interleaving AnyInterleaving(std::uint64_t seed) {
  Dice dice(~seed);
  Interleaving run{.seed = seed, .agents_fail = dice.Once(4), .steps = {}};
  const Weights weights = WaysOf(dice);
  const int steps = 20 + dice.Below(130);
  for (int i = 0; i < steps; ++i) {
    const Action action = AnyAction(weights, dice);
    run.steps.push_back({action, dice.Roll()});
  }
  return run;
}

std::string ToText(const Interleaving& run) {
  std::string text = fmt::format("seed {}{}\n", run.seed, run.agents_fail ? " agents-fail" : "");
  for (const Step& step : run.steps) {
    text += fmt::format("{} {}\n", ToString(step.action), step.dice);
  }
  return text;
}

std::optional<Interleaving> ParseInterleaving(const std::string& text) {
  std::istringstream lines(text);
  Interleaving run;
  bool has_seed = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line.starts_with('#')) continue;
    std::istringstream words(line);
    std::string word;
    std::uint64_t number = 0;
    if (!(words >> word >> number)) return std::nullopt;
    if (word == "seed") {
      std::string more;
      run.seed = number;
      run.agents_fail = static_cast<bool>(words >> more);
      has_seed = true;
      continue;
    }
    const auto name = std::ranges::find(kNames, word);
    if (name == kNames.end()) return std::nullopt;
    run.steps.push_back({static_cast<Action>(name - kNames.begin()), number});
  }
  if (!has_seed) return std::nullopt;
  return run;
}

}  // namespace test
