#pragma once

// Errors leave by the side door: the happy path stays on the left margin.
//   RETURN_IF_ERROR(Check(x));
//   ASSIGN_OR_RETURN(const Topology topology, Read(root));

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#define RETURN_IF_ERROR(expression)                                                 \
  do {                                                                              \
    if (absl::Status status_macro_status = (expression); !status_macro_status.ok()) \
      return status_macro_status;                                                   \
  } while (false)

#define ASSIGN_OR_RETURN(lhs, expression) \
  STATUS_MACRO_ASSIGN(STATUS_MACRO_CONCAT(status_macro_value_, __LINE__), lhs, expression)

#define STATUS_MACRO_ASSIGN(holder, lhs, expression)     \
  auto holder = (expression);                            \
  if (!(holder).ok()) return std::move(holder).status(); \
  lhs = std::move(holder).value()

#define STATUS_MACRO_CONCAT(a, b) STATUS_MACRO_CONCAT_INNER(a, b)
#define STATUS_MACRO_CONCAT_INNER(a, b) a##b
