#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "podresources/decode.h"

namespace podresources {

// Which replies a file holds.
struct RepliesFound {
  bool list = false;
  bool allocatable = false;
};

// Reads recorded replies from JSON, in protobuf's JSON mapping (both spellings of names, 64-bit
// numbers as text or numbers, unknown fields ignored):
//   {"list": …, "allocatable": …}   either may be missing or null
//   {"podResources": …}             List's reply alone
// InvalidArgument says where: line and column, or the field.
absl::StatusOr<RepliesFound> ParseReplies(const std::string& json,
                                          v1::ListPodResourcesResponse& list,
                                          v1::AllocatableResourcesResponse& allocatable);

// What a client would have read. InvalidArgument also if there is no reply of List.
absl::StatusOr<Assignments> ParseRecording(const std::string& json);

}  // namespace podresources
