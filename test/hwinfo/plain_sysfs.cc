#include "test/hwinfo/plain_sysfs.h"

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace test {

namespace fs = std::filesystem;

namespace {

std::set<int> ParseList(const std::string& text) {
  std::set<int> ids;
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, ',');) {
    int from = 0;
    int to = 0;
    const int got = std::sscanf(part.c_str(), "%d-%d", &from, &to);
    for (int id = from; got > 0 && id <= (got == 2 ? to : from); ++id) ids.insert(id);
  }
  return ids;
}

std::string Slurp(const fs::path& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

PlainNode ReadNode(const fs::path& folder) {
  PlainNode node;
  node.cpus = PlainList(folder / "cpulist");
  std::istringstream row(Slurp(folder / "distance"));
  for (int value = 0; row >> value;) node.distances.push_back(value);
  std::istringstream meminfo(Slurp(folder / "meminfo"));
  for (std::string line; std::getline(meminfo, line);) {
    long kibibytes = 0;
    if (std::sscanf(line.c_str(), "Node %*d MemTotal: %ld kB", &kibibytes) == 1) {
      node.kibibytes = kibibytes;
    }
  }
  return node;
}

}  // namespace

std::set<int> PlainList(const std::string& file) { return ParseList(Slurp(file)); }

std::map<int, PlainNode> PlainNodes(const std::string& root) {
  std::map<int, PlainNode> nodes;
  const fs::path top = fs::path(root) / "sys/devices/system/node";
  if (!fs::exists(top)) return nodes;
  const bool has_list = fs::exists(top / "online");
  const std::set<int> online = PlainList(top / "online");
  for (const fs::directory_entry& entry : fs::directory_iterator(top)) {
    int id = -1;
    if (std::sscanf(entry.path().filename().c_str(), "node%d", &id) != 1) continue;
    if (!has_list || online.contains(id)) nodes[id] = ReadNode(entry.path());
  }
  return nodes;
}

std::map<std::string, int> PlainPciNodes(const std::string& root) {
  std::map<std::string, int> nodes;
  const fs::path top = fs::path(root) / "sys/bus/pci/devices";
  if (!fs::exists(top)) return nodes;
  for (const fs::directory_entry& entry : fs::directory_iterator(top)) {
    std::ifstream file(entry.path() / "numa_node");
    int node = 0;
    if (file >> node) nodes[entry.path().filename()] = node;
  }
  return nodes;
}

std::optional<std::string> Run(const std::string& command) {
  FILE* pipe = popen((command + " 2>/dev/null").c_str(), "r");
  if (pipe == nullptr) return std::nullopt;
  std::string output;
  std::array<char, 4096> buffer;
  for (std::size_t got = 0; (got = fread(buffer.data(), 1, buffer.size(), pipe)) > 0;) {
    output.append(buffer.data(), got);
  }
  if (pclose(pipe) != 0) return std::nullopt;
  return output;
}

std::optional<Lscpu> RunLscpu(const std::string& root) {
  const std::string lscpu = "LC_ALL=C lscpu --sysroot '" + root + "'";
  const auto table = Run(lscpu + " --physical --parse=CPU,SOCKET,CORE");
  const auto summary = Run(lscpu);
  if (!table || !summary) return std::nullopt;
  Lscpu result;
  std::istringstream rows(*table);
  for (std::string row; std::getline(rows, row);) {
    int cpu = -1;
    LscpuCpu place;
    if (std::sscanf(row.c_str(), "%d,%d,%d", &cpu, &place.socket, &place.core) >= 1) {
      result.cpus[cpu] = place;
    }
  }
  std::istringstream lines(*summary);
  for (std::string line; std::getline(lines, line);) {
    int node = -1;
    if (std::sscanf(line.c_str(), " NUMA node%d CPU(s):", &node) == 1) {
      result.nodes[node] = ParseList(line.substr(line.find(':') + 1));
    }
  }
  if (result.cpus.empty()) return std::nullopt;
  return result;
}

}  // namespace test
