#include "kube/credentials.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "absl/status/status.h"
#include "base/status_macros.h"
#include "base/text.h"

namespace kube {
namespace {

// A plugin is asked anew this long before its credential expires, so that none expires on the way.
constexpr std::chrono::seconds kBeforeExpiry{10};

absl::Status Unauthenticated(const char* what, const absl::Status& status) {
  return absl::UnauthenticatedError(fmt::format("{}: {}", what, std::string(status.message())));
}

absl::StatusOr<std::string> ReadToken(const Config& config) {
  if (config.token_file.empty()) return config.token;
  ASSIGN_OR_RETURN(const std::string text, ReadSmallFile(config.token_file));
  std::string token(base::Trim(text));
  if (token.empty()) return absl::NotFoundError(config.token_file + " is empty");
  return token;
}

// It would end up in a header.
absl::Status CheckToken(const std::string& token) {
  const bool clean =
      std::ranges::all_of(token, [](unsigned char c) { return c > 0x20 && c < 0x7f; });
  if (clean) return absl::OkStatus();
  return absl::InvalidArgumentError("it has characters that no token has");
}

}  // namespace

absl::StatusOr<Credential> Credentials::Read() {
  absl::StatusOr<Credential> credential = config_.exec ? AskPlugin() : ReadFiles();
  RETURN_IF_ERROR(credential.status());
  if (const absl::Status clean = CheckToken(credential->token); !clean.ok()) {
    return Unauthenticated("the token", clean);
  }
  return credential;
}

void Credentials::Refused() {
  const std::lock_guard lock(mutex_);
  answer_.reset();
}

absl::StatusOr<Credential> Credentials::ReadFiles() const {
  absl::StatusOr<std::string> token = ReadToken(config_);
  if (!token.ok()) return Unauthenticated("the token", token.status());
  absl::StatusOr<std::string> certificate = ReadPem(config_.client_certificate);
  if (!certificate.ok()) return Unauthenticated("the client certificate", certificate.status());
  absl::StatusOr<std::string> key = ReadPem(config_.client_key);
  if (!key.ok()) return Unauthenticated("the client's key", key.status());
  return Credential{*std::move(token), *std::move(certificate), *std::move(key)};
}

absl::StatusOr<Credential> Credentials::AskPlugin() {
  const std::lock_guard lock(mutex_);
  const bool fresh =
      answer_ && (!answer_->expires || clock_.Now() + kBeforeExpiry < *answer_->expires);
  if (!fresh) {
    answer_.reset();
    ASSIGN_OR_RETURN(answer_, RunPlugin(config_));
  }
  return Credential{answer_->token, answer_->certificate_pem, answer_->key_pem};
}

}  // namespace kube
