#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "placement/decode.h"
#include "placement/encode.h"

// What can be read can be written, and then reads as the same again.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(data, data + size);
  const absl::StatusOr<placement::NodePlacement> read = placement::ParseNodePlacement(text);
  if (!read.ok()) return 0;
  const absl::StatusOr<placement::NodePlacement> again =
      placement::ParseNodePlacement(placement::ToJson(*read));
  if (!again.ok() || !(*again == *read)) std::abort();
  placement::ToYaml(*read);
  return 0;
}
