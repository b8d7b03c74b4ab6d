#pragma once

#include <compare>
#include <map>
#include <string>

#include "hwinfo/device_id.h"

namespace agent {

// A device as DRA drivers and podresources name it.
struct DraDevice {
  std::string driver = {};
  std::string pool = {};
  std::string name = {};
  auto operator<=>(const DraDevice&) const = default;
};

// What the drivers of this node publish about their devices.
using DraDevices = std::map<DraDevice, hwinfo::DraAttributes>;

}  // namespace agent
