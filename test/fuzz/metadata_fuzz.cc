// Any bytes as an object's metadata, of which is read who else writes it, and what takes that away.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "agent/api_access.h"
#include "agent/other_writers.h"
#include "kube/json.h"
#include "kube/metadata.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(data, data + size);
  const absl::StatusOr<kube::Metadata> metadata = kube::ReadMetadata({.json = text});
  if (!metadata.ok()) return 0;
  agent::OwningNode(*metadata);
  const std::vector<std::string> writers = agent::OtherWriters(*metadata);
  const absl::StatusOr<std::string> removal =
      agent::RemovalOf(writers, *metadata, R"({"zones":[{"name":"node-0","type":"Node"}]})");
  if (!removal.ok() || !kube::JsonObject::Parse(*removal).ok()) std::abort();
  return 0;
}
