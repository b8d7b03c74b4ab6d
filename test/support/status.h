#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace test {

inline absl::Status ToStatus(const absl::Status& status) { return status; }
template <class T>
absl::Status ToStatus(const absl::StatusOr<T>& value) {
  return value.status();
}

MATCHER(IsOk, negation ? "is an error" : "is OK") {
  const absl::Status status = ToStatus(arg);
  *result_listener << status.ToString();
  return status.ok();
}

// StatusIs(absl::StatusCode::kNotFound, HasSubstr("node1"))
MATCHER_P2(StatusIs, code, message, "") {
  const absl::Status status = ToStatus(arg);
  *result_listener << status.ToString();
  return status.code() == code &&
         testing::ExplainMatchResult(message, std::string(status.message()), result_listener);
}

}  // namespace test

#define ASSERT_OK(expression) ASSERT_THAT(expression, ::test::IsOk())
#define EXPECT_OK(expression) EXPECT_THAT(expression, ::test::IsOk())
// ASSERT_OK_AND_ASSIGN(const Topology topology, Read(source));
#define ASSERT_OK_AND_ASSIGN(lhs, expression) \
  TEST_STATUS_ASSIGN(TEST_STATUS_CONCAT(test_status_value_, __LINE__), lhs, expression)
#define TEST_STATUS_ASSIGN(holder, lhs, expression) \
  auto holder = (expression);                       \
  ASSERT_THAT(holder, ::test::IsOk());              \
  lhs = std::move(holder).value()
#define TEST_STATUS_CONCAT(a, b) TEST_STATUS_CONCAT_INNER(a, b)
#define TEST_STATUS_CONCAT_INNER(a, b) a##b
