#pragma once

#include <string>

namespace test {

struct Issued {
  std::string certificate_pem;
  std::string key_pem;
};

// A certificate authority of its own, made anew each time.
class Authority {
 public:
  Authority();
  ~Authority();
  Authority(const Authority&) = delete;
  Authority& operator=(const Authority&) = delete;

  const std::string& certificate_pem() const { return certificate_pem_; }
  // For names and addresses as OpenSSL writes them: "DNS:kube.test", "IP:127.0.0.1". Valid from a
  // day ago until `days` from now.
  Issued Issue(const std::string& common_name, const std::string& alternative_names,
               int days = 1) const;

 private:
  struct Keys;
  Keys* keys_;
  std::string certificate_pem_;
};

}  // namespace test
