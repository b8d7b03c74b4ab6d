#pragma once

#include <bit>
#include <cstdint>

#include "absl/container/inlined_vector.h"
#include "scheduler/admission/machine.h"

namespace scheduler::admission {

// One resource's answer to the topology manager: which sets of NUMA nodes could hold the request
// now, and which of them are preferred. The kubelet lists all of them, 2^n; here they are a
// question, since nearly all decisions need only a few.
class Hints {
 public:
  virtual ~Hints() = default;

  // The NUMA nodes that masks are made of. Never empty.
  virtual Mask nodes() const = 0;
  // Whether the mask, a non-empty subset of nodes(), is among the hints.
  virtual bool Feasible(Mask mask) const = 0;
  // The number of nodes of a preferred mask: the narrowest that the whole hardware could serve
  // with.
  virtual int width() const = 0;
  // Whether a feasible mask is preferred. Wider ones are only with align-by-socket.
  virtual bool Preferred(Mask mask) const { return std::popcount(mask) == width(); }
  virtual bool OnlyWidthIsPreferred() const { return true; }
  // An upper bound of what one node adds to a mask, and how much a mask needs in all: masks whose
  // nodes do not add up are not feasible. Lets a search stop early.
  virtual std::int64_t Supply(int node) const = 0;
  virtual std::int64_t Need() const = 0;
  // Whether that decides: a mask is feasible exactly if its nodes supply Need() together and
  // Required() are among them.
  virtual bool SuppliesDecide() const { return false; }
  virtual Mask Required() const { return 0; }
};

// What a provider says about one resource.
struct Opinion {
  enum class Kind { kNoPreference, kImpossible, kHints };
  Kind kind = Kind::kNoPreference;
  const Hints* hints = nullptr;
};
using Opinions = absl::InlinedVector<Opinion, 4>;

}  // namespace scheduler::admission
