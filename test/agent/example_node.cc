#include "test/agent/example_node.h"

#include <cstdint>
#include <cstdlib>
#include <string>
#include <utility>

namespace test {
namespace {

constexpr std::int64_t kGi = std::int64_t{1} << 30;

base::CpuSet Range(int first, int last) {
  base::CpuSet set;
  for (int id = first; id <= last; ++id) set.Insert(id);
  return set;
}

hwinfo::PciAddress Address(int bus, int device = 0, int function = 0) {
  return {.domain = 0,
          .bus = static_cast<std::uint8_t>(bus),
          .device = static_cast<std::uint8_t>(device),
          .function = static_cast<std::uint8_t>(function)};
}

hwinfo::PciDevice Device(int bus, hwinfo::DeviceKind kind, int node) {
  hwinfo::PciDevice device;
  device.address = Address(bus);
  device.kind = kind;
  device.numa_node = node;
  device.locality = hwinfo::LocalitySource::kNumaNode;
  device.sysfs_numa_node = node;
  return device;
}

hwinfo::PciDevice Gpu(int bus, int node, int minor) {
  hwinfo::PciDevice gpu = Device(bus, hwinfo::DeviceKind::kGpu, node);
  gpu.vendor = 0x10de;
  gpu.model = "NVIDIA H100 80GB HBM3";
  gpu.minor = minor;
  gpu.bridges = {Address(node * 0x80, 1), Address(node * 0x80 + 1),
                 Address(node * 0x80 + 2, minor)};
  return gpu;
}

hwinfo::PciDevice Nic(int bus, int node, const std::string& rdma, const std::string& net) {
  hwinfo::PciDevice nic = Device(bus, hwinfo::DeviceKind::kNic, node);
  nic.vendor = 0x15b3;
  nic.device = 0x1021;
  nic.driver = "mlx5_core";
  nic.names = {net, rdma};
  nic.bridges = {Address(node * 0x80, 1), Address(node * 0x80 + 1), Address(node * 0x80 + 2, 8)};
  return nic;
}

hwinfo::NumaNode Node(int id, const base::CpuSet& cpus) {
  hwinfo::NumaNode node;
  node.id = id;
  node.socket = id;
  node.cpus = cpus;
  node.nearest_cpus = cpus;
  node.memory_bytes = 256 * kGi;
  node.free_bytes = (id == 0 ? 64 : 200) * kGi;
  node.huge_pages = {{.page_bytes = kGi, .total = 16, .free = id == 0 ? 12 : 16}};
  node.distances = {{0, id == 0 ? 10 : 21}, {1, id == 1 ? 10 : 21}};
  return node;
}

void AddCpus(hwinfo::Topology& topology) {
  for (int id = 0; id < 32; ++id) {
    const int core = id % 16;
    topology.cpus.push_back({.id = id,
                             .socket = core / 8,
                             .core = core % 8,
                             .numa_node = core / 8,
                             .l3 = core / 8 * 8,
                             .kind = -1,
                             .siblings = {core, core + 16}});
  }
}

placement::PlacedContainer Container(const base::CpuSet& cpus, std::int64_t gibibytes,
                                     const base::NumaMask& nodes, std::vector<std::string> gpus) {
  placement::PlacedContainer container;
  container.name = "main";
  container.cpus = cpus;
  if (gibibytes > 0) {
    container.memory = {{.type = "memory", .bytes = gibibytes * kGi, .numa_nodes = nodes}};
  }
  if (!gpus.empty()) {
    container.devices = {{.resource = "nvidia.com/gpu", .ids = std::move(gpus)}};
  }
  return container;
}

placement::PlacedPod Pod(const std::string& name, placement::Alignment alignment,
                         const base::NumaMask& nodes, placement::PlacedContainer container,
                         const std::string& message) {
  placement::PlacedPod pod;
  pod.namespace_name = "ml";
  pod.name = name;
  pod.numa_nodes = nodes;
  pod.alignment = alignment;
  pod.message = message;
  pod.containers = {std::move(container)};
  return pod;
}

placement::PlacedDevice Placed(const std::string& id, int bus, int node) {
  return {.resource = "nvidia.com/gpu",
          .id = id,
          .numa_nodes = {node},
          .unknown_node = false,
          .healthy = true,
          .pci_address = hwinfo::ToString(Address(bus)),
          .pci_numa_node = node};
}

std::vector<placement::PlacedPod> ExamplePods() {
  using placement::Alignment;
  return {
      Pod("batch-0", Alignment::kAligned, {1}, Container({8, 9, 24, 25}, 32, {1}, {}),
          "CPUs and memory are on NUMA node 1."),
      Pod("llm-0", Alignment::kAligned, {0}, Container({1, 2, 17, 18}, 64, {0}, {"GPU-a"}),
          "CPUs, memory and 1 GPU are on NUMA node 0."),
      Pod("llm-1", Alignment::kMisaligned, {0, 1}, Container({3, 4, 19, 20}, 64, {0}, {"GPU-c"}),
          "CPUs and memory are on NUMA node 0, but 1 GPU is on NUMA node 1; one NUMA node could "
          "hold all of it."),
      Pod("notebook-7c9d", Alignment::kUnpinned, {0}, Container({}, 0, {}, {"GPU-b"}),
          "It holds 1 GPU on NUMA node 0 and no CPUs of its own."),
      Pod("wide-0", Alignment::kSpread, {0, 1},
          Container({5, 6, 7, 10, 11, 12, 13, 14, 21, 22, 23, 26, 27, 28, 29, 30}, 300, {0, 1}, {}),
          "CPUs and memory are on NUMA nodes 0-1; no single one could hold all of it.")};
}

placement::NumaNodePlacement Observed(int id, const base::CpuSet& cpus, const base::CpuSet& free,
                                      std::int64_t free_gibibytes) {
  placement::NumaNodePlacement node;
  node.id = id;
  node.cpus = cpus;
  node.free_cpus = free;
  node.memory = {{.type = "memory",
                  .capacity = 256 * kGi,
                  .system_reserved = kGi,
                  .allocatable = 239 * kGi,
                  .free = free_gibibytes * kGi}};
  node.memory_group = base::NumaMask{0, 1};
  return node;
}

}  // namespace

hwinfo::Topology ExampleTopology() {
  hwinfo::Topology topology;
  topology.source = "live";
  topology.architecture = "x86_64";
  const base::CpuSet first = Range(0, 7) | Range(16, 23);
  const base::CpuSet second = Range(8, 15) | Range(24, 31);
  topology.sockets = {{.id = 0, .cpus = first, .numa_nodes = {0}},
                      {.id = 1, .cpus = second, .numa_nodes = {1}}};
  topology.numa_nodes = {Node(0, first), Node(1, second)};
  AddCpus(topology);
  hwinfo::PciDevice lost = Nic(0xf0, 1, "mlx5_2", "eth2");
  lost.numa_node.reset();
  lost.locality = hwinfo::LocalitySource::kUnknown;
  lost.bridges.clear();
  topology.devices = {Gpu(0x1b, 0, 0),
                      Gpu(0x1c, 0, 1),
                      Nic(0x1d, 0, "mlx5_0", "eth0"),
                      Gpu(0x9b, 1, 2),
                      Gpu(0x9c, 1, 3),
                      Nic(0x9d, 1, "mlx5_1", "eth1"),
                      lost};
  return topology;
}

placement::Observation ExampleObservation() {
  placement::Observation observation;
  placement::NodePlacement& placement = observation.placement;
  placement.node_name = "gpu-7";
  placement.kubelet.version = "v1.37.2";
  placement.kubelet.topology_policy = "best-effort";
  placement.kubelet.topology_scope = "container";
  placement.kubelet.cpu_policy = "static";
  placement.kubelet.memory_policy = "Static";
  placement.kubelet.reserved_cpus = base::CpuSet{0, 16};
  placement.numa_nodes = {Observed(0, Range(0, 7) | Range(16, 23), {}, 61),
                          Observed(1, Range(8, 15) | Range(24, 31), {15, 31}, 57)};
  placement.devices = {Placed("GPU-a", 0x1b, 0), Placed("GPU-b", 0x1c, 0), Placed("GPU-c", 0x9b, 1),
                       Placed("GPU-d", 0x9c, 1)};
  placement.pods = ExamplePods();
  placement.summary = {.pods = 5,
                       .aligned = 2,
                       .spread = 1,
                       .misaligned = 1,
                       .unpinned = 1,
                       .drifted = 0,
                       .unknown = 0,
                       .free = ""};
  observation.diagnostics = {
      {"DeviceLocalityUnknown", "0000:f0:00.0", "its numa_node is -1 and no bridge above has one"},
      {"PodUidUnknown", "pod ml/llm-0", "no folder of /var/log/pods has the name"},
      {"PodUidUnknown", "pod ml/llm-1", "no folder of /var/log/pods has the name"},
      {"PodUidUnknown", "pod ml/wide-0", "no folder of /var/log/pods has the name"}};
  return observation;
}

hwinfo::Topology ManyNodes(int nodes) {
  hwinfo::Topology topology;
  topology.source = "root /recorded";
  topology.architecture = "ia64";
  for (int id = 0; id < nodes; ++id) {
    hwinfo::NumaNode node = Node(id, Range(4 * id, 4 * id + 3));
    node.memory_bytes = 8 * kGi;
    node.free_bytes = 6 * kGi;
    node.huge_pages.clear();
    node.distances.clear();
    for (int other = 0; other < nodes; ++other) node.distances[other] = 10 + std::abs(id - other);
    topology.sockets.push_back({.id = id, .cpus = node.cpus, .numa_nodes = {id}});
    for (const int cpu : node.cpus) {
      topology.cpus.push_back({.id = cpu,
                               .socket = id,
                               .core = cpu % 4,
                               .numa_node = id,
                               .l3 = -1,
                               .kind = -1,
                               .siblings = {cpu}});
    }
    topology.numa_nodes.push_back(std::move(node));
  }
  return topology;
}

placement::Observation HardwareOnly(const hwinfo::Topology& topology) {
  placement::Observation observation;
  observation.placement.node_name = "gpu-7";
  for (const hwinfo::NumaNode& node : topology.numa_nodes) {
    placement::NumaNodePlacement placed;
    placed.id = node.id;
    placed.cpus = node.cpus;
    observation.placement.numa_nodes.push_back(std::move(placed));
  }
  return observation;
}

}  // namespace test
