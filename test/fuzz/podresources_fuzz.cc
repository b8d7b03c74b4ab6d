// Whatever a server on the kubelet's socket sends, or a recording says: values or an error, the
// same each time, and never a crash.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <string>

#include "podresources/decode.h"
#include "podresources/replay.h"
#include "proto/podresources.pb.h"

namespace {

void Require(bool holds) {
  if (!holds) std::abort();
}

// The first byte says where the reply of List ends, in 255ths.
void DecodeWire(const std::uint8_t* data, std::size_t size) {
  const std::size_t length = (size - 1) * data[0] / std::numeric_limits<std::uint8_t>::max();
  v1::ListPodResourcesResponse list;
  v1::AllocatableResourcesResponse allocatable;
  // What was understood of a broken message is a message too.
  static_cast<void>(list.ParsePartialFromArray(data + 1, static_cast<int>(length)));
  static_cast<void>(
      allocatable.ParsePartialFromArray(data + 1 + length, static_cast<int>(size - 1 - length)));
  const podresources::Assignments once = podresources::Decode(list, &allocatable);
  Require(once == podresources::Decode(list, &allocatable));
  Require(once.pods.size() <= static_cast<std::size_t>(list.pod_resources_size()));
  // Kubelets that do not offer the second call.
  const podresources::Assignments alone = podresources::Decode(list, nullptr);
  Require(!alone.allocatable && alone.pods.size() == once.pods.size());
}

void ParseJson(const std::string& json) {
  const absl::StatusOr<podresources::Assignments> once = podresources::ParseRecording(json);
  const absl::StatusOr<podresources::Assignments> again = podresources::ParseRecording(json);
  Require(once.status() == again.status());
  if (once.ok()) Require(*once == *again);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  DecodeWire(data, size);
  ParseJson(std::string(reinterpret_cast<const char*>(data), size));
  return 0;
}
