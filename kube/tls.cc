#include "kube/tls.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <array>
#include <memory>

#include "absl/status/status.h"
#include "base/status_macros.h"

namespace kube {
namespace {

struct Free {
  void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
  void operator()(BIO* bio) const { BIO_free(bio); }
  void operator()(X509* certificate) const { X509_free(certificate); }
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
  void operator()(GENERAL_NAMES* names) const { GENERAL_NAMES_free(names); }
};
template <class T>
using Owned = std::unique_ptr<T, Free>;

// Without a password: nobody is there to type one.
int NoPassword(char* /*buffer*/, int /*size*/, int /*writing*/, void* /*user*/) { return -1; }

Owned<BIO> Text(const std::string& pem) {
  return Owned<BIO>(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
}

Owned<X509> NextCertificate(BIO* bio) {
  return Owned<X509>(PEM_read_bio_X509(bio, nullptr, NoPassword, nullptr));
}

// In OpenSSL's words where it has any.
absl::Status Wrong(std::string_view what, const char* otherwise = "no PEM in it") {
  const unsigned long code = ERR_peek_last_error();
  const char* reason = ERR_reason_error_string(code);
  ERR_clear_error();
  return absl::InvalidArgumentError(
      fmt::format("{}: {}", what, reason == nullptr ? otherwise : reason));
}

absl::Status Trust(SSL_CTX* context, const std::string& pem) {
  if (pem.empty()) {
    if (SSL_CTX_set_default_verify_paths(context) == 1) return absl::OkStatus();
    return Wrong("the system's certificate authorities");
  }
  const Owned<BIO> text = Text(pem);
  X509_STORE* store = SSL_CTX_get_cert_store(context);
  int found = 0;
  for (Owned<X509> next = NextCertificate(text.get()); next; next = NextCertificate(text.get())) {
    X509_STORE_add_cert(store, next.get());  // takes a reference of its own
    ++found;
  }
  if (found == 0) return Wrong("the certificate authority");
  X509_VERIFY_PARAM_set_flags(SSL_CTX_get0_param(context), X509_V_FLAG_PARTIAL_CHAIN);
  ERR_clear_error();  // "no start line" is how the end is told
  return absl::OkStatus();
}

absl::Status UseCertificate(SSL_CTX* context, const std::string& pem) {
  const Owned<BIO> text = Text(pem);
  const Owned<X509> own = NextCertificate(text.get());
  if (!own || SSL_CTX_use_certificate(context, own.get()) != 1) return Wrong("the certificate");
  for (Owned<X509> next = NextCertificate(text.get()); next; next = NextCertificate(text.get())) {
    SSL_CTX_add1_chain_cert(context, next.get());
  }
  ERR_clear_error();
  return absl::OkStatus();
}

absl::Status UseKey(SSL_CTX* context, const std::string& pem) {
  const Owned<BIO> text = Text(pem);
  const Owned<EVP_PKEY> key(PEM_read_bio_PrivateKey(text.get(), nullptr, NoPassword, nullptr));
  if (!key) return Wrong("the key");
  // Also says whether it belongs to the certificate.
  if (SSL_CTX_use_PrivateKey(context, key.get()) != 1) return Wrong("the key of the certificate");
  return absl::OkStatus();
}

// As text; "" if it is neither a DNS name nor an address.
std::string NameIn(const GENERAL_NAME& name) {
  if (name.type != GEN_DNS && name.type != GEN_IPADD) return "";
  const ASN1_STRING* value = name.type == GEN_DNS ? name.d.dNSName : name.d.iPAddress;
  const unsigned char* bytes = ASN1_STRING_get0_data(value);
  const int length = ASN1_STRING_length(value);
  if (name.type == GEN_DNS) return {bytes, bytes + length};
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (length != 4 && length != 16) return "";
  inet_ntop(length == 4 ? AF_INET : AF_INET6, bytes, text.data(), text.size());
  return text.data();
}

std::string FirstName(X509* certificate) {
  const Owned<GENERAL_NAMES> names(static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
  std::string address;
  for (int i = 0; i < sk_GENERAL_NAME_num(names.get()); ++i) {
    const GENERAL_NAME& name = *sk_GENERAL_NAME_value(names.get(), i);
    if (name.type == GEN_DNS) return NameIn(name);
    if (address.empty()) address = NameIn(name);
  }
  return address;
}

bool IsAddress(const std::string& host) {
  std::array<unsigned char, 16> bytes{};
  return inet_pton(AF_INET, host.c_str(), bytes.data()) == 1 ||
         inet_pton(AF_INET6, host.c_str(), bytes.data()) == 1;
}

}  // namespace

absl::StatusOr<ServerCertificate> ReadServerCertificate(const std::string& pem) {
  const Owned<BIO> text = Text(pem);
  const Owned<X509> certificate = NextCertificate(text.get());
  if (!certificate) return Wrong("the server's certificate");
  ServerCertificate server{.name = FirstName(certificate.get())};
  if (server.name.empty()) {
    return absl::InvalidArgumentError("the server's certificate is for no name and no address");
  }
  const Owned<BIO> copy(BIO_new(BIO_s_mem()));
  PEM_write_bio_X509(copy.get(), certificate.get());
  char* bytes = nullptr;
  const long length = BIO_get_mem_data(copy.get(), &bytes);
  server.pem.assign(bytes, static_cast<std::size_t>(length));
  return server;
}

absl::StatusOr<ssl_ctx_st*> MakeTlsContext(const TlsIdentity& identity) {
  Owned<SSL_CTX> context(SSL_CTX_new(TLS_client_method()));
  if (!context) return Wrong("TLS");
  SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  // A watch is idle most of its life: its buffers go back meanwhile.
  SSL_CTX_set_mode(context.get(), SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_verify(context.get(), identity.verify ? SSL_VERIFY_PEER : SSL_VERIFY_NONE, nullptr);
  if (identity.verify) RETURN_IF_ERROR(Trust(context.get(), identity.authority_pem));
  if (!identity.certificate_pem.empty()) {
    RETURN_IF_ERROR(UseCertificate(context.get(), identity.certificate_pem));
    RETURN_IF_ERROR(UseKey(context.get(), identity.key_pem));
  }
  return context.release();
}

absl::Status ExpectServer(ssl_st* session, const std::string& host) {
  constexpr std::string_view kWhat = "the name that its certificate must have";
  constexpr const char* kNotTaken = "OpenSSL does not take it";
  // OpenSSL takes "" for "any name".
  if (host.empty()) return absl::InvalidArgumentError(fmt::format("{}: is empty", kWhat));
  if (IsAddress(host)) {
    const int taken = X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(session), host.c_str());
    return taken == 1 ? absl::OkStatus() : Wrong(kWhat, kNotTaken);
  }
  // What the macro SSL_set_tlsext_host_name says; it copies the name.
  const long asked = SSL_ctrl(session, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name,
                              const_cast<char*>(host.c_str()));
  SSL_set_hostflags(session,
                    X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
  if (asked == 1 && SSL_set1_host(session, host.c_str()) == 1) return absl::OkStatus();
  return Wrong(kWhat, kNotTaken);
}

std::string WhyNotTrusted(ssl_st* session) {
  const long result = SSL_get_verify_result(session);
  return result == X509_V_OK ? "" : X509_verify_cert_error_string(result);
}

}  // namespace kube
