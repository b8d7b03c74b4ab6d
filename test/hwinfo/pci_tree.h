#pragma once

#include <string>

#include "test/support/temp_tree.h"

namespace hwinfo {

// One PCI function as sysfs shows it.
struct Function {
  std::string address;     // "0000:1b:00.0"
  std::string where;       // below sys/devices: "pci0000:17/0000:17:01.0"; its bridges
  std::string class_code;  // "0x030200"
  std::string vendor = "0x10de";
  std::string device = "0x2330";
  std::string numa_node = "";  // "" leaves the file out
  std::string driver = "";     // "" binds none
};

// Puts it where sysfs has it, with the link in sys/bus/pci/devices; returns its folder.
inline std::string Put(test::TempTree& tree, const Function& function) {
  std::string folder = "sys/devices/" + function.where + "/" + function.address;
  tree.Put(folder + "/class", function.class_code + "\n")
      .Put(folder + "/vendor", function.vendor + "\n")
      .Put(folder + "/device", function.device + "\n")
      .Link("sys/bus/pci/devices/" + function.address,
            "../../../devices/" + function.where + "/" + function.address);
  if (!function.numa_node.empty()) tree.Put(folder + "/numa_node", function.numa_node + "\n");
  if (!function.driver.empty()) {
    tree.Link(folder + "/driver", "/sys/bus/pci/drivers/" + function.driver);
  }
  return folder;
}

}  // namespace hwinfo
