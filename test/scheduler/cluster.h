#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "kube/pod.h"
#include "placement/node_placement.h"
#include "scheduler/ledger/ledger.h"
#include "test/reference/naive_admit.h"

// A cluster in a box, to set the ledger against what really happens. Its nodes admit with the naive
// kubelet (test/reference), pick devices at random and keep what ended pods held until their next
// admission. Whatever is told to the ledger is told late: each stream keeps its own order, and
// nothing else is promised.
namespace test {

// Numbers that follow from a seed, the same on every machine.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : state_(seed) {}
  std::uint64_t Roll();
  int Below(int most) { return static_cast<int>(Roll() % static_cast<std::uint64_t>(most)); }
  bool Once(int in) { return Below(in) == 0; }

 private:
  std::uint64_t state_;
};

enum class Action {
  kCreate,     // a pod wants to be scheduled
  kSchedule,   // filter, prioritize: it is to be bound to a node that says yes, and leases some
  kBind,       // asked once more, and bound
  kAdmit,      // a kubelet admits one of the pods bound to it, not always the first
  kStart,      // a pod's containers run, its init containers have finished
  kEnd,        // a pod ends by itself
  kDelete,     // a pod is told to go
  kRelease,    // a kubelet lets go of a pod that ended, was told to go or is not in the API
  kVanish,     // the API forgets a pod that is gone from its node
  kForce,      // the API forgets a pod that may still run
  kLook,       // an agent looks and publishes
  kTellPod,    // the next event of the pod watch arrives
  kTellNode,   // the next event of one node's objects arrives
  kForeign,    // a pod is bound by somebody else
  kHealth,     // devices of a node fall ill or recover
  kKubelet,    // a kubelet restarts
  kScheduler,  // we restart: all that we know is what the API says now
  kGap,        // the pod watch broke: what it had to tell is lost, all is listed anew
  kRecreate,   // a Node is deleted and created anew, its machine is started anew
  kAgent,      // an agent falls silent, or speaks again
  kWait,       // time passes
};
inline constexpr int kActions = 21;

struct Step {
  Action action = Action::kWait;
  std::uint64_t dice = 0;  // decides what is left open
};

// One run: the machines follow from the seed, and what happens is written down step by step, so
// that steps can be left out.
struct Interleaving {
  std::uint64_t seed = 0;
  bool agents_fail = false;  // agents may fall silent
  std::vector<Step> steps;
};

Interleaving AnyInterleaving(std::uint64_t seed);

// As text, one line a step, and back; nothing if it cannot be read.
std::string ToText(const Interleaving& run);
std::optional<Interleaving> ParseInterleaving(const std::string& text);

// What happened in a number of runs, for the figures in docs/ledger.md.
struct Tally {
  std::map<std::string, std::int64_t> counts;
};

// Runs it with a fresh ledger, and checks the invariants after each step and once all is quiet.
// What is wrong, "" if nothing is; `events`, if given, gets all that the ledger was told.
std::string Run(const Interleaving& run, Tally* tally = nullptr,
                std::vector<scheduler::ledger::Event>* events = nullptr);

// A failing run with as few steps as possible that still fails.
Interleaving Shrink(Interleaving run);

}  // namespace test
