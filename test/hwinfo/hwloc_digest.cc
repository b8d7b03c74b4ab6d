#include "test/hwinfo/hwloc_digest.h"

#include <sstream>

namespace test {
namespace {

// "cpus=0-3" of a line with fields between blanks: the text after the key, "" if there is none.
std::string Field(const std::string& line, const std::string& key) {
  const std::string padded = " " + line + " ";
  const std::size_t at = padded.find(" " + key);
  if (at == std::string::npos) return "";
  const std::size_t start = at + 1 + key.size();
  return padded.substr(start, padded.find(' ', start) - start);
}

int Number(const std::string& text) {
  return static_cast<int>(std::strtol(text.c_str(), nullptr, 10));
}

base::CpuSet Cpus(const std::string& line) {
  return base::CpuSet::Parse(Field(line, "cpus=")).value();
}

// "[P#0: 10 21] [P#8: 21 10]": the columns are in the order of the rows.
std::map<int, std::map<int, int>> ParseDistances(const std::string& line) {
  std::vector<std::pair<int, std::vector<int>>> rows;
  for (std::size_t at = line.find("[P#"); at != std::string::npos; at = line.find("[P#", at + 1)) {
    std::istringstream row(line.substr(at + 3, line.find(']', at) - at - 3));
    std::string id;
    row >> id;
    rows.push_back({Number(id), {}});
    for (int value = 0; row >> value;) rows.back().second.push_back(value);
  }
  std::map<int, std::map<int, int>> distances;
  for (const auto& [from, values] : rows) {
    for (std::size_t i = 0; i < values.size(); ++i) distances[from][rows[i].first] = values[i];
  }
  return distances;
}

}  // namespace

HwlocDigest ParseHwlocDigest(const std::string& text) {
  HwlocDigest digest;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const int id = Number(Field(line, "P#"));
    if (line.starts_with("thissystem=")) digest.cores = Number(Field(line, "cores="));
    if (line.starts_with("cpus=")) digest.cpus = Cpus(line);
    if (line.starts_with("cpukinds=")) digest.cpu_kinds = Number(line.substr(9));
    if (line.starts_with("package ")) digest.packages[id] = {Cpus(line)};
    if (line.starts_with("dist ")) digest.distances = ParseDistances(line);
    if (line.starts_with("numa ")) {
      const std::string subtype = Field(line, "subtype=");
      digest.nodes[id] = {subtype == "-" ? "" : subtype, Number(Field(line, "mem=")), Cpus(line),
                          Field(line, "pci=")};
    }
    if (line.starts_with("pci ")) {
      digest.pci[Field(line, "pci ")] = base::NumaMask::Parse(Field(line, "nodes=")).value();
    }
  }
  return digest;
}

}  // namespace test
