#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

struct ssl_ctx_st;  // OpenSSL's SSL_CTX
struct ssl_st;      // and SSL

namespace kube {

struct TlsIdentity {
  std::string authority_pem = {};    // whom we trust; "" for the system's authorities
  std::string certificate_pem = {};  // who we are; "" for nobody
  std::string key_pem = {};
  bool verify = true;
  bool operator==(const TlsIdentity&) const = default;
};

// A server's own certificate, from where it keeps it: whoever trusts nothing else talks to whoever
// has its key.
struct ServerCertificate {
  std::string pem = {};   // this one alone
  std::string name = {};  // what it is for: its first DNS name, else its first address
  bool operator==(const ServerCertificate&) const = default;
};

// The first certificate of a PEM text, which may have others and a key behind it. InvalidArgument:
// there is none, or it is for no name.
absl::StatusOr<ServerCertificate> ReadServerCertificate(const std::string& pem);

// TLS 1.2 or newer. Each certificate of `authority_pem` is trusted by itself, as in Go, whoever
// signed it. The caller owns what is returned. Errors say which of the three is no PEM, or
// that certificate and key are no pair.
absl::StatusOr<ssl_ctx_st*> MakeTlsContext(const TlsIdentity& identity);

// What the server's certificate must be for: a name, which is also asked for (SNI), or an address.
// Its subject's common name counts for nothing, as in Go. InvalidArgument: OpenSSL does not take
// it, so nothing would be compared: the session must not be used.
absl::Status ExpectServer(ssl_st* session, const std::string& host);

// Why its certificate was not taken; "" if it was.
std::string WhyNotTrusted(ssl_st* session);

}  // namespace kube
