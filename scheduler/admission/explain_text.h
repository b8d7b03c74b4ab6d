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
Texts Describe(const NodeState& state, const Outcome& outcome, const Explanation& found);

// "CPU", "memory", "GPU" for nvidia.com/gpu and any other vendor's gpu, else what stands after the
// vendor.
std::string ShortName(const std::string& resource);

}  // namespace scheduler::admission
