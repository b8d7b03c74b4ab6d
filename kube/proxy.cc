#include "kube/proxy.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string_view>

#include "absl/status/status.h"
#include "base/status_macros.h"
#include "base/text.h"

namespace kube {
namespace {

std::string Lower(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return lower;
}

// An IPv4 address is its IPv6 form (::ffff:a.b.c.d), as in Go.
using Address = std::array<std::uint8_t, 16>;

std::optional<Address> ParseAddress(const std::string& text) {
  Address address{};
  if (inet_pton(AF_INET6, text.c_str(), address.data()) == 1) return address;
  address = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0, 0, 0};
  if (inet_pton(AF_INET, text.c_str(), address.data() + 12) == 1) return address;
  return std::nullopt;
}

bool IsLoopback(const Address& address) {
  static constexpr Address kIpv6Loopback = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
  const bool ipv4 = address[10] == 0xff && address[11] == 0xff;
  return address == kIpv6Loopback || (ipv4 && address[12] == 127);
}

bool InNetwork(const Address& address, std::string_view network) {
  const std::size_t slash = network.find('/');
  const std::string base(network.substr(0, slash));
  const std::optional<Address> first = ParseAddress(base);
  std::optional<int> bits = base::ParseNumber<int>(network.substr(slash + 1));
  if (!first || !bits || *bits < 0) return false;
  if (base.find(':') == std::string::npos) *bits += 96;
  if (*bits > 128) return false;
  for (int bit = 0; bit < *bits; ++bit) {
    const auto byte = static_cast<std::size_t>(bit / 8);
    if (((address[byte] ^ (*first)[byte]) & (0x80 >> (bit % 8))) != 0) return false;
  }
  return true;
}

// host, host:port, [address]:port; an IPv6 address without brackets has no port.
HostPort SplitHostPort(std::string_view text) {
  if (text.starts_with('[')) {
    const std::size_t end = text.find(']');
    if (end == std::string_view::npos) return {.host = std::string(text)};
    const std::string_view rest = text.substr(end + 1);
    return {.host = std::string(text.substr(1, end - 1)),
            .port = std::string(rest.starts_with(':') ? rest.substr(1) : "")};
  }
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos || text.find(':', colon + 1) != std::string_view::npos) {
    return {.host = std::string(text)};
  }
  return {.host = std::string(text.substr(0, colon)), .port = std::string(text.substr(colon + 1))};
}

bool NameMatches(const std::string& host, std::string pattern) {
  if (pattern.starts_with("*.")) pattern.erase(0, 1);
  if (pattern.starts_with('.')) return host.ends_with(pattern);
  return host == pattern || host.ends_with("." + pattern);
}

// One word of NO_PROXY.
bool Matches(const HostPort& server, const std::optional<Address>& address, std::string_view word) {
  if (word == "*") return true;
  if (word.find('/') != std::string_view::npos) return address && InNetwork(*address, word);
  const HostPort own = SplitHostPort(word);
  if (!own.port.empty() && own.port != server.port) return false;
  if (own.host.empty()) return false;
  if (const std::optional<Address> exact = ParseAddress(own.host)) return exact == address;
  return NameMatches(server.host, own.host);
}

bool GoesDirectly(const HostPort& server, const std::string& no_proxy) {
  const std::optional<Address> address = ParseAddress(server.host);
  if (server.host == "localhost" || (address && IsLoopback(*address))) return true;
  std::string_view rest = no_proxy;
  while (!rest.empty()) {
    const std::size_t comma = rest.find(',');
    const std::string word = Lower(base::Trim(rest.substr(0, comma)));
    if (!word.empty() && Matches(server, address, word)) return true;
    rest = comma == std::string_view::npos ? std::string_view() : rest.substr(comma + 1);
  }
  return false;
}

std::string First(const Environment& environment, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    const auto found = environment.find(name);
    if (found != environment.end() && !found->second.empty()) return found->second;
  }
  return "";
}

absl::StatusOr<std::string> UndoEscapes(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      plain += text[i];
      continue;
    }
    const std::string_view digits = text.substr(i + 1, 2);
    const std::optional<int> value = base::ParseNumber<int>(digits, 16);
    if (digits.size() != 2 || !value || *value < 0) {
      return absl::InvalidArgumentError("a % without two hexadecimal digits after it");
    }
    plain += static_cast<char>(*value);
    i += 2;
  }
  return plain;
}

bool IsPort(const std::string& text) {
  const std::optional<int> port = base::ParseNumber<int>(text);
  return port && *port > 0 && *port < 65536;
}

}  // namespace

std::string ToString(const HostPort& address) {
  if (address.host.find(':') == std::string::npos) {
    return fmt::format("{}:{}", address.host, address.port);
  }
  return fmt::format("[{}]:{}", address.host, address.port);
}

absl::StatusOr<Url> ParseUrl(const std::string& text) {
  // With an @ there may be a password in it, which is not for logs.
  const std::string quoted =
      text.find('@') == std::string::npos ? fmt::format("\"{:.200}\"", text) : "the text";
  Url url;
  const std::size_t colon = text.find("://");
  if (colon == std::string::npos) {
    return absl::InvalidArgumentError(fmt::format("{} is no URL of a server", quoted));
  }
  url.scheme = Lower(std::string_view(text).substr(0, colon));
  std::string_view rest = std::string_view(text).substr(colon + 3);
  const std::size_t slash = rest.find_first_of("/?#");
  if (slash != std::string_view::npos) url.path = rest.substr(slash);
  while (url.path.ends_with('/')) url.path.pop_back();
  std::string_view authority = rest.substr(0, slash);
  if (const std::size_t at = authority.rfind('@'); at != std::string_view::npos) {
    ASSIGN_OR_RETURN(url.user_info, UndoEscapes(authority.substr(0, at)));
    authority.remove_prefix(at + 1);
  }
  url.address = SplitHostPort(authority);
  if (url.address.port.empty()) url.address.port = url.scheme == "http" ? "80" : "443";
  const bool clean = text.find_first_of(std::string_view(" \t\r\n\0", 5)) == std::string::npos;
  if (url.address.host.empty() || !IsPort(url.address.port) || !clean) {
    return absl::InvalidArgumentError(fmt::format("{} is no URL of a server", quoted));
  }
  return url;
}

std::string ProxyFor(const Url& server, const Environment& environment) {
  const std::string proxy = server.scheme == "https"
                                ? First(environment, {"HTTPS_PROXY", "https_proxy"})
                                : First(environment, {"HTTP_PROXY", "http_proxy"});
  const HostPort address{.host = Lower(server.address.host), .port = server.address.port};
  if (proxy.empty() || GoesDirectly(address, First(environment, {"NO_PROXY", "no_proxy"}))) {
    return "";
  }
  return proxy.find("://") == std::string::npos ? "http://" + proxy : proxy;
}

}  // namespace kube
