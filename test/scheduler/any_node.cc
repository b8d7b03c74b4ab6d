#include "test/scheduler/any_node.h"

#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <utility>
#include <vector>

namespace scheduler::admission {
namespace {

constexpr std::int64_t kGiB = std::int64_t{1} << 30;

// Of the whole range also in the first cases, which rapidcheck would keep small.
int Any(int least, int most) {
  return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange(least, most + 1));
}

// Once in `of` times.
bool Seldom(int of) { return Any(1, of) == of; }

std::vector<int> AnyIds(int count) {
  std::vector<int> ids;
  const bool sparse = Seldom(4);
  int next = sparse ? Any(0, 3) : 0;
  for (int i = 0; i < count; ++i) {
    ids.push_back(next);
    next += sparse ? Any(1, 4) : 1;
  }
  return ids;
}

// How many sockets share a NUMA node, or NUMA nodes a socket.
struct Layout {
  int nodes_per_socket = 1;
  int sockets_per_node = 1;
  int cores = 4;
  int threads = 2;
  int caches_per_node = 1;
  bool uneven = false;
};

Layout AnyLayout() {
  Layout layout;
  layout.nodes_per_socket = Any(1, 3);
  if (layout.nodes_per_socket == 1 && Seldom(4)) layout.sockets_per_node = 2;
  layout.cores = Any(1, 8);
  layout.threads = Any(1, 2);
  layout.caches_per_node = Any(1, 2);
  layout.uneven = Seldom(4);
  return layout;
}

void AddCores(const Layout& layout, int position, placement::NumaNodePlacement& numa,
              int& next_cpu) {
  const int groups = std::max(layout.sockets_per_node, layout.caches_per_node);
  for (int group = 0; group < groups; ++group) {
    const int cores = layout.uneven ? Any(0, 5) : layout.cores;
    placement::CoreGroup own;
    own.socket =
        layout.sockets_per_node > 1 ? position * 2 + group % 2 : position / layout.nodes_per_socket;
    own.l3 = position * groups + group;
    for (int core = 0; core < cores; ++core) {
      const int threads = layout.uneven && Seldom(4) ? 3 - layout.threads : layout.threads;
      base::CpuSet cpus;
      for (int thread = 0; thread < threads; ++thread) cpus.Insert(next_cpu++);
      numa.cpus |= cpus;
      own.cores.push_back(cpus);
    }
    if (!own.cores.empty()) numa.core_groups.push_back(own);
  }
}

placement::NodeMemory AnyTable(const std::string& type, int most) {
  const std::int64_t bytes = Any(0, most) * kGiB;
  return {.type = type,
          .capacity = bytes + kGiB,
          .system_reserved = kGiB,
          .allocatable = bytes,
          .free = bytes};
}

void AddNumaNodes(const AnyNodeOptions& options, placement::NodePlacement& node) {
  const int count =
      std::min(options.most_numa_nodes,
               *rc::gen::weightedElement<int>({{2, 1}, {8, 2}, {5, 3}, {5, 4}, {1, 5}, {1, 6}}));
  const Layout layout = AnyLayout();
  const bool huge = Seldom(3);
  int next_cpu = 0;
  for (const int id : AnyIds(count)) {
    placement::NumaNodePlacement& numa = node.numa_nodes.emplace_back();
    numa.id = id;
    const int position = static_cast<int>(node.numa_nodes.size()) - 1;
    if (position == 0 || !Seldom(6)) AddCores(layout, position, numa, next_cpu);
    if (huge) numa.memory.push_back(AnyTable("hugepages-1Gi", 8));
    numa.memory.push_back(AnyTable("memory", 16));
    numa.memory_group = base::NumaMask{id};
    numa.memory_assignments = 0;
  }
  for (placement::NumaNodePlacement& from : node.numa_nodes) {
    for (const placement::NumaNodePlacement& to : node.numa_nodes) {
      from.distances[to.id] = from.id == to.id ? 10 : *rc::gen::element(12, 20, 21, 32);
    }
  }
}

void AddDevices(placement::NodePlacement& node) {
  for (const char* resource : {"vendor.com/gpu", "vendor.com/nic"}) {
    const int count = Seldom(4) ? 0 : Any(1, 8);
    for (int i = 0; i < count; ++i) {
      placement::PlacedDevice& device = node.devices.emplace_back();
      device.resource = resource;
      device.id = fmt::format("d{}", i);
      const auto any_node = [&] {
        return node
            .numa_nodes[static_cast<std::size_t>(
                Any(0, static_cast<int>(node.numa_nodes.size()) - 1))]
            .id;
      };
      if (!Seldom(8)) device.numa_nodes.Insert(any_node());
      if (Seldom(8)) device.numa_nodes.Insert(any_node());
      if (Seldom(16)) device.numa_nodes.Insert(60);
      device.healthy = !Seldom(12);
    }
  }
}

// Options that kubelet 1.37 starts with, at this policy and on these CPUs.
void AnySettings(placement::NodePlacement& node) {
  placement::KubeletFacts& kubelet = node.kubelet;
  kubelet.version = "v1.37.2";
  kubelet.topology_policy =
      *rc::gen::element<std::string>("single-numa-node", "restricted", "best-effort", "none");
  kubelet.topology_scope = *rc::gen::element<std::string>("container", "pod");
  kubelet.cpu_policy = Seldom(6) ? "none" : "static";
  kubelet.memory_policy = Seldom(4) ? "None" : "Static";
  const bool dense = node.numa_nodes.back().id + 1 == static_cast<int>(node.numa_nodes.size());
  if (dense && Seldom(3)) kubelet.topology_options["prefer-closest-numa-nodes"] = "true";
  const auto maybe = [&](const char* option) {
    if (Seldom(4)) kubelet.cpu_options[option] = "true";
    return kubelet.cpu_options.contains(option);
  };
  const bool whole = maybe("full-pcpus-only");
  const bool spread = maybe("distribute-cpus-across-numa");
  const bool by_cache = !spread && maybe("prefer-align-cpus-by-uncorecache");
  if (!whole && !spread && !by_cache) maybe("distribute-cpus-across-cores");
  maybe("strict-cpu-reservation");
  std::set<int> sockets;
  int with_cpus = 0;
  for (const placement::NumaNodePlacement& numa : node.numa_nodes) {
    with_cpus += numa.cpus.empty() ? 0 : 1;
    for (const placement::CoreGroup& group : numa.core_groups) sockets.insert(group.socket);
  }
  const bool fits = static_cast<int>(sockets.size()) <= with_cpus;
  if (fits && kubelet.topology_policy != "single-numa-node") maybe("align-by-socket");
  if (kubelet.cpu_policy == "none") kubelet.cpu_options.clear();
  kubelet.reserved_cpus.emplace();
  for (placement::NumaNodePlacement& numa : node.numa_nodes) {
    for (const int id : numa.cpus) {
      if (Seldom(10)) kubelet.reserved_cpus->Insert(id);
    }
    numa.free_cpus = numa.cpus - *kubelet.reserved_cpus;
  }
  // Without any the kubelet would not start: then they were not told.
  if (kubelet.reserved_cpus->empty()) kubelet.reserved_cpus.reset();
}

kube::Container AnyContainer(const placement::NodePlacement& node, bool guaranteed,
                             const std::string& name) {
  kube::Container container;
  container.name = name;
  kube::Resources& limits = container.limits;
  if (guaranteed) {
    const bool big = Seldom(3);
    limits[kube::kCpu] = Seldom(6) ? Any(1, 8) * 500 : Any(1, big ? 16 : 4) * 1000;
    limits[kube::kMemory] = Any(1, big ? 20 : 4) * kGiB;
    const bool huge = node.numa_nodes.front().memory.size() > 1;
    if (huge && Seldom(3)) limits["hugepages-1Gi"] = Any(0, 4) * kGiB;
  } else if (Seldom(2)) {
    container.requests[kube::kCpu] = std::int64_t{1000} * Any(1, 4);
    limits[kube::kMemory] = Any(1, 4) * kGiB;
  }
  for (const char* resource : {"vendor.com/gpu", "vendor.com/nic"}) {
    if (Seldom(3)) limits[resource] = Any(0, Seldom(3) ? 5 : 2);
  }
  if (Seldom(16)) limits["vendor.com/unknown"] = 1;
  return container;
}

}  // namespace

placement::NodePlacement AnyNode(const AnyNodeOptions& options) {
  placement::NodePlacement node;
  node.node_name = "node";
  AddNumaNodes(options, node);
  AddDevices(node);
  AnySettings(node);
  return node;
}

DeviceOrder AnyDeviceOrder(const placement::NodePlacement& node) {
  DeviceOrder order;
  if (Seldom(2)) return order;
  for (const placement::PlacedDevice& device : node.devices) {
    std::vector<std::string>& ids = order[device.resource];
    ids.insert(ids.begin() + Any(0, static_cast<int>(ids.size())), device.id);
  }
  return order;
}

kube::Pod AnyPod(const placement::NodePlacement& node, const std::string& uid,
                 const AnyNodeOptions& options) {
  kube::Pod pod;
  pod.uid = uid;
  pod.name = uid;
  const bool guaranteed = !Seldom(5);
  const int inits = options.pods_of_one_container || !Seldom(3) ? 0 : Any(1, 3);
  for (int i = 0; i < inits; ++i) {
    pod.init_containers.push_back(AnyContainer(node, guaranteed, fmt::format("init{}", i)));
    pod.init_containers.back().sidecar = Seldom(3);
  }
  const int apps = options.pods_of_one_container || Seldom(2) ? 1 : Any(1, 3);
  for (int i = 0; i < apps; ++i) {
    pod.containers.push_back(AnyContainer(node, guaranteed, fmt::format("app{}", i)));
  }
  kube::ApplyDefaults(pod);
  pod.qos = kube::ComputeQos(pod);
  return pod;
}

bool CheckCases(int cases, const rc::detail::Property& property) {
  rc::detail::TestParams params = rc::detail::configuration().testParams;
  params.maxSuccess = std::max(cases, params.maxSuccess);
  const rc::detail::TestResult result =
      rc::detail::checkProperty(property, rc::detail::TestMetadata(), params);
  rc::detail::printResultMessage(result, std::cerr);
  std::cerr << std::endl;
  return result.template is<rc::detail::SuccessResult>();
}

}  // namespace scheduler::admission
