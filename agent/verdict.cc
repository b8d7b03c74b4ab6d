#include "agent/verdict.h"

#include <fmt/format.h>

#include "agent/options.h"

namespace agent {
namespace {

std::string Text(const absl::Status& status) { return std::string(status.message()); }

constexpr char kPointToIt[] = "--podresources PATH names another socket or recorded replies";

}  // namespace

Verdict JudgeAnswer(const absl::Status& answer, bool named, const std::string& asked) {
  if (answer.ok()) return {};
  if (asked.empty()) {
    return {.exit_code = kExitOk,
            .show = true,
            .no_kubelet = true,
            .notes = {fmt::format("Hardware only, no kubelet asked: {}.", kPointToIt)}};
  }
  if (answer.code() == absl::StatusCode::kNotFound && !named) {
    return {.exit_code = kExitOk,
            .show = true,
            .no_kubelet = true,
            .notes = {fmt::format("Hardware only, no kubelet at {}: {}.", asked, kPointToIt)}};
  }
  const bool wrong = answer.code() == absl::StatusCode::kNotFound ||
                     answer.code() == absl::StatusCode::kInvalidArgument;
  if (named && wrong) {
    return {
        .exit_code = kExitWrongInput, .show = false, .no_kubelet = false, .notes = {Text(answer)}};
  }
  return {.exit_code = kExitPassing,
          .show = true,
          .no_kubelet = false,
          .notes = {fmt::format("Hardware only, the kubelet did not answer: {}", Text(answer))}};
}

Verdict JudgeFailure(const absl::Status& failure) {
  const bool passing = failure.code() == absl::StatusCode::kUnavailable ||
                       failure.code() == absl::StatusCode::kResourceExhausted;
  return {.exit_code = passing ? kExitPassing : kExitWrongInput,
          .show = false,
          .no_kubelet = false,
          .notes = {Text(failure)}};
}

}  // namespace agent
