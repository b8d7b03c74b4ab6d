#include "test/kube/pki.h"

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <atomic>
#include <cstdlib>
#include <iostream>
#include <memory>

namespace test {
namespace {

// Whatever fails here is no fault of what is tested.
template <class T>
T Must(T value) {
  if (value) return value;
  std::cerr << "OpenSSL cannot make a certificate\n";
  std::abort();
}

EVP_PKEY* NewKey() {
  EVP_PKEY* key = nullptr;
  EVP_PKEY_CTX* context = Must(EVP_PKEY_CTX_new_id(EVP_PKEY_EC, nullptr));
  Must(EVP_PKEY_keygen_init(context) == 1);
  Must(EVP_PKEY_CTX_set_ec_paramgen_curve_nid(context, NID_X9_62_prime256v1) == 1);
  Must(EVP_PKEY_keygen(context, &key) == 1);
  EVP_PKEY_CTX_free(context);
  return key;
}

template <class Write>
std::string ToPem(Write write) {
  BIO* bio = Must(BIO_new(BIO_s_mem()));
  Must(write(bio) == 1);
  char* data = nullptr;
  const long size = BIO_ctrl(bio, BIO_CTRL_INFO, 0, &data);
  std::string pem(data, static_cast<std::size_t>(size));
  BIO_free(bio);
  return pem;
}

std::string CertificatePem(X509* certificate) {
  return ToPem([certificate](BIO* bio) { return PEM_write_bio_X509(bio, certificate); });
}

void Extend(X509* certificate, X509* issuer, int nid, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  X509_EXTENSION* extension = Must(X509V3_EXT_conf_nid(nullptr, &context, nid, value.c_str()));
  X509_add_ext(certificate, extension, -1);
  X509_EXTENSION_free(extension);
}

// Two of one name would be taken for the same.
std::string UniqueName() {
  static std::atomic<int> count = 0;
  return "authority " + std::to_string(++count) + " of the tests";
}

X509* NewCertificate(EVP_PKEY* key, const std::string& common_name, X509* issuer, int days) {
  X509* certificate = Must(X509_new());
  X509_set_version(certificate, 2);
  long serial = 0;
  Must(RAND_bytes(reinterpret_cast<unsigned char*>(&serial), sizeof serial) == 1);
  ASN1_INTEGER_set_int64(X509_get_serialNumber(certificate), serial & 0x7fffffff);
  X509_gmtime_adj(X509_getm_notBefore(certificate), -24L * 3600);
  X509_gmtime_adj(X509_getm_notAfter(certificate), 24L * 3600 * days);
  X509_set_pubkey(certificate, key);
  X509_NAME* name = X509_get_subject_name(certificate);
  X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>(common_name.c_str()), -1, -1,
                             0);
  X509_set_issuer_name(certificate,
                       X509_get_subject_name(issuer == nullptr ? certificate : issuer));
  return certificate;
}

}  // namespace

struct Authority::Keys {
  EVP_PKEY* key = NewKey();
  X509* certificate = NewCertificate(key, UniqueName(), nullptr, 1);
};

Authority::Authority() : keys_(new Keys) {
  Extend(keys_->certificate, keys_->certificate, NID_basic_constraints, "critical,CA:TRUE");
  Must(X509_sign(keys_->certificate, keys_->key, EVP_sha256()) > 0);
  certificate_pem_ = CertificatePem(keys_->certificate);
}

Authority::~Authority() {
  X509_free(keys_->certificate);
  EVP_PKEY_free(keys_->key);
  delete keys_;
}

Issued Authority::Issue(const std::string& common_name, const std::string& alternative_names,
                        int days) const {
  EVP_PKEY* key = NewKey();
  X509* certificate = NewCertificate(key, common_name, keys_->certificate, days);
  if (!alternative_names.empty()) {
    Extend(certificate, keys_->certificate, NID_subject_alt_name, alternative_names);
  }
  Must(X509_sign(certificate, keys_->key, EVP_sha256()) > 0);
  Issued issued{.certificate_pem = CertificatePem(certificate),
                .key_pem = ToPem([key](BIO* bio) {
                  return PEM_write_bio_PrivateKey(bio, key, nullptr, nullptr, 0, nullptr, nullptr);
                })};
  X509_free(certificate);
  EVP_PKEY_free(key);
  return issued;
}

}  // namespace test
