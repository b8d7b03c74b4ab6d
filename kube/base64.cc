#include "kube/base64.h"

#include <cstddef>
#include <cstdint>

namespace kube {
namespace {

constexpr std::string_view kAlphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

}  // namespace

std::optional<std::string> DecodeBase64(std::string_view text) {
  std::string bytes;
  std::uint32_t bits = 0;
  std::size_t digits = 0;
  std::size_t padding = 0;
  for (const char c : text) {
    if (c == '\n' || c == '\r') continue;
    const std::size_t value = kAlphabet.find(c);
    if (c == '=') {
      ++padding;
    } else if (value == std::string_view::npos || padding > 0) {
      return std::nullopt;
    }
    bits = bits << 6 | (c == '=' ? 0 : static_cast<std::uint32_t>(value));
    if (++digits % 4 != 0) continue;
    for (int shift = 16; shift >= 0; shift -= 8) bytes += static_cast<char>(bits >> shift & 0xff);
    bits = 0;
  }
  if (digits % 4 != 0 || padding > 2) return std::nullopt;
  bytes.resize(bytes.size() - padding);
  return bytes;
}

std::string EncodeBase64(std::string_view bytes) {
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t bits = 0;
    for (std::size_t j = i; j < i + 3; ++j) {
      bits = bits << 8 | (j < bytes.size() ? static_cast<unsigned char>(bytes[j]) : 0);
    }
    for (int shift = 18; shift >= 0; shift -= 6) text += kAlphabet[bits >> shift & 0x3f];
  }
  for (std::size_t i = 0; i < (3 - bytes.size() % 3) % 3; ++i) text[text.size() - 1 - i] = '=';
  return text;
}

}  // namespace kube
