#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace cli {

// Hands on a file's bytes, piece by piece, unpacked where it is gzip; stops at the first error of
// `take`. NotFound: it cannot be opened. InvalidArgument: it cannot be read, or is gzip that was
// cut off or is followed by something else (over which gzread would pass).
absl::Status ReadUnpacked(const std::string& path,
                          const std::function<absl::Status(std::string_view)>& take);

}  // namespace cli
