#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace hwinfo {

// A PCI function's address. The domain has 32 bits: Intel VMD and Azure use domains above ffff.
struct PciAddress {
  std::uint32_t domain = 0;
  std::uint8_t bus = 0;
  std::uint8_t device = 0;    // 0..31
  std::uint8_t function = 0;  // 0..7
  auto operator<=>(const PciAddress&) const = default;
};

// As sysfs writes it: "0000:1b:00.0", the domain with at least four digits, lower case.
std::string ToString(const PciAddress& address);

// Reads "0000:1b:00.0", NVML's "00000000:1B:00.0" and the short "1b:00.0" (domain 0), in either
// case; nothing if the whole text is no address.
std::optional<PciAddress> ParsePciAddress(std::string_view text);

}  // namespace hwinfo
