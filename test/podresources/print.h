#pragma once

#include <fmt/format.h>

#include <ostream>

#include "podresources/assignments.h"

// So that failed expectations can be read.
namespace base {
inline void PrintTo(const Diagnostic& d, std::ostream* out) {
  *out << fmt::format("{} [{}] {}", d.code, d.subject, d.message);
}
}  // namespace base

namespace podresources {
inline void PrintTo(const Device& d, std::ostream* out) {
  *out << fmt::format("{} {} @{}{}", d.resource, d.id, d.numa_nodes.ToString(),
                      d.unknown_node ? " unknown" : "");
}
inline void PrintTo(const MemoryBlock& m, std::ostream* out) {
  *out << fmt::format("{} {} @{}", m.type, m.bytes, m.numa_nodes.ToString());
}
inline void PrintTo(const ClaimDevice& c, std::ostream* out) {
  *out << fmt::format("{}/{}: {}/{}/{} share \"{}\", {} cdi", c.claim_namespace, c.claim_name,
                      c.driver, c.pool, c.device, c.share_id, c.cdi_devices.size());
}
}  // namespace podresources
