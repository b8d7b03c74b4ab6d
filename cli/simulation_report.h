#pragma once

#include <string>

#include "cli/look.h"
#include "cli/simulation.h"

namespace cli {

// For people, at a terminal; no line is wider than look.width.
std::string ToText(const Simulation& simulation, const Look& look);

// For programs; equal simulations give equal bytes. docs/simulate.md has the members.
std::string ToJson(const Simulation& simulation);

}  // namespace cli
