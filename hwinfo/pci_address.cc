#include "hwinfo/pci_address.h"

#include <fmt/format.h>

#include <charconv>
#include <system_error>

namespace hwinfo {
namespace {

// Takes a hexadecimal number of `digits` to `most` digits off the front, and the separator after
// it.
std::optional<std::uint32_t> Take(std::string_view& text, std::size_t least, std::size_t most,
                                  char separator) {
  const std::size_t length = separator == '\0' ? text.size() : text.find(separator);
  if (length == std::string_view::npos || length < least || length > most) return std::nullopt;
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + length, value, 16);
  if (error != std::errc{} || end != text.data() + length) return std::nullopt;
  text.remove_prefix(separator == '\0' ? length : length + 1);
  return value;
}

}  // namespace

std::string ToString(const PciAddress& address) {
  return fmt::format("{:04x}:{:02x}:{:02x}.{:x}", address.domain, address.bus, address.device,
                     address.function);
}

std::optional<PciAddress> ParsePciAddress(std::string_view text) {
  std::optional<std::uint32_t> domain = 0;
  if (text.find(':') != text.rfind(':')) domain = Take(text, 4, 8, ':');
  const std::optional<std::uint32_t> bus = Take(text, 2, 2, ':');
  const std::optional<std::uint32_t> device = Take(text, 2, 2, '.');
  const std::optional<std::uint32_t> function = Take(text, 1, 1, '\0');
  if (!domain || !bus || !device || !function || *device > 31 || *function > 7) return std::nullopt;
  return PciAddress{.domain = *domain,
                    .bus = static_cast<std::uint8_t>(*bus),
                    .device = static_cast<std::uint8_t>(*device),
                    .function = static_cast<std::uint8_t>(*function)};
}

}  // namespace hwinfo
