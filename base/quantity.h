#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

// Kubernetes quantities ("1Gi", "500m", "1e3") exist only at the edges; inside, amounts are bytes,
// milli-CPUs and counts. Mirrors apimachinery's resource.Quantity: suffixes n u m k M G T P E,
// Ki Mi Gi Ti Pi Ei, a decimal exponent.
namespace base {

// How a fraction becomes a whole unit: away from zero, as Kubernetes does it for what is asked for,
// or to the next lower number, for what is free.
enum class Rounding { kAwayFromZero, kDown };

// Whole units: bytes, counts. InvalidArgument if the text is no quantity, OutOfRange beyond int64.
absl::StatusOr<std::int64_t> ParseQuantity(std::string_view text,
                                           Rounding rounding = Rounding::kAwayFromZero);

// Thousandths, for CPUs: "1" is 1000, "500m" is 500. Rounds away from zero; errors as above.
absl::StatusOr<std::int64_t> ParseMilliQuantity(std::string_view text);

// Bytes in the canonical binary form: the largest suffix that leaves a whole number ("64Gi",
// "1025Mi", "1000").
std::string FormatBytes(std::int64_t bytes);

// The kubelet's resource name for huge pages of a size in bytes: "hugepages-2Mi", "hugepages-1Gi".
std::string HugePagesResource(std::int64_t page_bytes);

}  // namespace base
