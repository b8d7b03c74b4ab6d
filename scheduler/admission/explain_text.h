#pragma once

#include <string>

#include "scheduler/admission/explain.h"

// Part of explain.cc: the sentences.
namespace scheduler::admission {

struct Texts {
  std::string summary;
  std::string detail;
};

// `found` has everything but the texts.
Texts Describe(const NodeState& state, const Verdict& verdict, const Explanation& found);

}  // namespace scheduler::admission
