#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

// What happens to a simulated cluster (cluster.h), step by step, as a value: it can be written
// down, done again, and shortened.
namespace test {

// Numbers that follow from a seed, the same on every machine.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : state_(seed) {}
  std::uint64_t Roll();
  // Less than `most`, which is at least 1.
  int Below(int most) {
    return static_cast<int>(Roll() % static_cast<std::uint64_t>(std::max(most, 1)));
  }
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
  kLook,       // an agent or an exporter looks and publishes
  kTellPod,    // the next event of the pod watch arrives
  kTellNode,   // the next event of one node's objects arrives
  kForeign,    // a pod is bound by somebody else
  kHealth,     // devices of a node fall ill or recover
  kKubelet,    // a kubelet restarts
  kScheduler,  // we restart: all that we know is what the API says now
  kGap,        // the watches broke: what that of pods had to tell is lost, all is listed anew
  kRecreate,   // a Node is deleted and created anew, its machine is another one
  kAgent,      // an agent falls silent, or speaks again
  kWait,       // time passes
};
inline constexpr int kActions = 21;

const char* ToString(Action action);

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

// Each run has its own ways: what is frequent in one is rare in another.
Interleaving AnyInterleaving(std::uint64_t seed);

// As text, one line a step, and back; nothing if it cannot be read.
std::string ToText(const Interleaving& run);
std::optional<Interleaving> ParseInterleaving(const std::string& text);

}  // namespace test
