#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "scheduler/ledger/event.h"
#include "test/scheduler/interleaving.h"

// A cluster in a box, to set the ledger against what really happens. Its nodes admit with the naive
// kubelet (test/reference), pick devices at random and keep what ended pods held until their next
// admission. Whatever is told to the ledger is told late: each stream keeps its own order, and
// nothing else is promised.
namespace test {

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
