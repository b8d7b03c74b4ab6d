#pragma once

#include <map>
#include <string>

#include "absl/status/statusor.h"

namespace kube {

// Environment variables, as a value: only main knows the process's own.
using Environment = std::map<std::string, std::string>;

struct HostPort {
  std::string host = {};  // without the brackets of an IPv6 address
  std::string port = {};
  bool operator==(const HostPort&) const = default;
};

// "127.0.0.1:6443", "[fd00::1]:6443".
std::string ToString(const HostPort& address);

// http[s]://[user[:password]@]host[:port][/path], taken apart.
struct Url {
  std::string scheme = {};     // lower case
  std::string user_info = {};  // "user:password" with % escapes undone
  HostPort address = {};       // the port is the scheme's where none is given
  std::string path = {};       // "" or "/…", without a slash at the end
};
absl::StatusOr<Url> ParseUrl(const std::string& text);

// The proxy for an https or http server, by HTTPS_PROXY or HTTP_PROXY and NO_PROXY (or the same in
// lower case), as Go's programs, kubectl among them, understand them (golang.org/x/net,
// http/httpproxy); "" for none. NO_PROXY is a list of addresses and networks (10.96.0.0/12), which
// are compared with a host that is an address, of names (of the domain and all below it; only below
// it with a leading "."), each also with ":port", or "*". localhost and loopback addresses never
// go by a proxy.
std::string ProxyFor(const Url& server, const Environment& environment);

}  // namespace kube
