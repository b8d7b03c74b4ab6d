#include "test/placement/any.h"

#include <algorithm>

namespace placement {
namespace {

std::string AnyText() {
  return *rc::gen::element<std::string>("", "yes", "0-3", "1e3", "null", "ml", "GPU-8a…", "a b: c",
                                        "\"quoted\"", "line\nbreak", "·", "007", "node-1", "\x01");
}
std::string AnyName() { return *rc::gen::element<std::string>("a", "b-1", "nvidia.com/gpu", "no"); }

template <class Set>
Set AnySet() {
  Set set;
  for (const int id : *rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 300))) {
    set.Insert(id);
  }
  return set;
}

template <class T, class Make>
std::vector<T> Several(Make make) {
  std::vector<T> list;
  for (int i = *rc::gen::inRange(0, 3); i > 0; --i) list.push_back(make());
  return list;
}

template <class T, class Make>
std::optional<T> Maybe(Make make) {
  if (*rc::gen::arbitrary<bool>()) return std::nullopt;
  return make();
}

int AnyInt() { return *rc::gen::inRange(-1, 5000); }
std::int64_t AnyBytes() { return *rc::gen::inRange<std::int64_t>(0, std::int64_t{1} << 62); }
base::Time AnyTime() {
  return base::Time(std::chrono::milliseconds(*rc::gen::inRange<std::int64_t>(0, 4102444800000)));
}
std::map<std::string, std::string> AnyTexts() {
  std::map<std::string, std::string> texts;
  for (int i = *rc::gen::inRange(0, 3); i > 0; --i) texts[AnyName()] = AnyText();
  return texts;
}

KubeletFacts AnyKubelet() {
  KubeletFacts kubelet;
  kubelet.version = AnyText();
  kubelet.started_at = Maybe<base::Time>(AnyTime);
  kubelet.config_source = AnyText();
  kubelet.feature_gates = AnyTexts();
  kubelet.topology_policy = AnyText();
  kubelet.topology_scope = AnyText();
  kubelet.topology_options = AnyTexts();
  kubelet.cpu_policy = AnyText();
  kubelet.cpu_options = AnyTexts();
  kubelet.reserved_cpus = Maybe<base::CpuSet>(AnySet<base::CpuSet>);
  kubelet.memory_policy = AnyText();
  kubelet.reserved_memory = Several<KubeletFacts::ReservedMemory>([] {
    return KubeletFacts::ReservedMemory{
        .numa_node = AnyInt(), .type = AnyText(), .bytes = AnyBytes()};
  });
  return kubelet;
}

NumaNodePlacement AnyNumaNode() {
  NumaNodePlacement node;
  node.id = AnyInt();
  node.cpus = AnySet<base::CpuSet>();
  node.core_groups = Several<CoreGroup>([] {
    return CoreGroup{.socket = AnyInt(),
                     .l3 = AnyInt(),
                     .cores = Several<base::CpuSet>([] {
                       return base::CpuSet{*rc::gen::inRange(0, 9), *rc::gen::inRange(0, 99)};
                     })};
  });
  node.free_cpus = Maybe<base::CpuSet>(AnySet<base::CpuSet>);
  node.memory = Several<NodeMemory>([] {
    return NodeMemory{.type = AnyText(),
                      .capacity = AnyBytes(),
                      .system_reserved = AnyBytes(),
                      .allocatable = AnyBytes(),
                      .free = Maybe<std::int64_t>(AnyBytes)};
  });
  node.memory_group = Maybe<base::NumaMask>(AnySet<base::NumaMask>);
  node.memory_assignments = Maybe<int>(AnyInt);
  node.distances[AnyInt()] = AnyInt();
  return node;
}

PlacedDevice AnyDevice() {
  return {.resource = AnyText(),
          .id = AnyText(),
          .numa_nodes = AnySet<base::NumaMask>(),
          .unknown_node = *rc::gen::arbitrary<bool>(),
          .healthy = *rc::gen::arbitrary<bool>(),
          .pci_address = AnyText(),
          .pci_numa_node = Maybe<int>(AnyInt)};
}

PlacedContainer AnyContainer() {
  PlacedContainer container;
  container.name = AnyText();
  container.cpus = AnySet<base::CpuSet>();
  container.memory = Several<PlacedMemory>([] {
    return PlacedMemory{
        .type = AnyText(), .bytes = AnyBytes(), .numa_nodes = AnySet<base::NumaMask>()};
  });
  container.devices = Several<HeldDevices>(
      [] { return HeldDevices{.resource = AnyText(), .ids = Several<std::string>(AnyText)}; });
  container.kernel = Maybe<KernelFacts>([] {
    return KernelFacts{.cpus = Maybe<base::CpuSet>(AnySet<base::CpuSet>),
                       .memory_nodes = Maybe<base::NumaMask>(AnySet<base::NumaMask>),
                       .resident_bytes = {{AnyInt(), AnyBytes()}}};
  });
  return container;
}

PlacedPod AnyPod() {
  using enum Alignment;
  return {
      .namespace_name = AnyText(),
      .name = AnyText(),
      .uid = AnyText(),
      .kubelet_uid = AnyText(),
      .numa_nodes = AnySet<base::NumaMask>(),
      .alignment = *rc::gen::element(kUnknown, kAligned, kSpread, kMisaligned, kUnpinned, kDrifted),
      .reason = AnyText(),
      .message = AnyText(),
      .containers = Several<PlacedContainer>(AnyContainer)};
}

}  // namespace

rc::Gen<NodePlacement> AnyPlacement() {
  return rc::gen::exec([] {
    NodePlacement placement;
    placement.node_name = AnyText();
    placement.revision = AnyBytes();
    placement.observed_at = Maybe<base::Time>(AnyTime);
    placement.boot_id = AnyText();
    placement.agent_version = AnyText();
    placement.kubelet = AnyKubelet();
    placement.numa_nodes = Several<NumaNodePlacement>(AnyNumaNode);
    placement.devices = Several<PlacedDevice>(AnyDevice);
    placement.known_pods = Several<std::string>(AnyText);
    placement.pods = Several<PlacedPod>(AnyPod);
    placement.summary = {.pods = AnyInt(), .aligned = AnyInt(), .drifted = 7, .free = AnyText()};
    placement.conditions = Several<Condition>([] {
      return Condition{
          .type = AnyText(), .status = AnyText(), .reason = AnyText(), .message = AnyText()};
    });
    return placement;
  });
}

rc::Gen<Scene> AnyScene() {
  return rc::gen::exec([] {
    Scene scene(TwoNodes(), *rc::gen::element<std::string>("0", "0,16", "0-3"));
    scene.Policy(*rc::gen::element<std::string>("restricted", "best-effort"),
                 *rc::gen::element<std::string>("pod", "container"));
    base::CpuSet free = scene.facts.assignments->allocatable->cpus;
    std::vector<podresources::Device> gpus;
    for (int i = 0; i < 6; ++i) {
      gpus.push_back(Gpu("GPU-" + std::to_string(i), {i % 2}));
      scene.AddDevice(gpus.back());
    }
    std::int64_t memory_left = 120;
    for (int i = *rc::gen::inRange(0, 5); i > 0; --i) {
      podresources::Container container{
          .name = "main", .cpus = {}, .memory = {}, .devices = {}, .claims = {}};
      for (int n = *rc::gen::inRange(0, 6); n > 0 && !free.empty(); --n) {
        const std::vector<int> ids(free.begin(), free.end());
        const int cpu = *rc::gen::elementOf(ids);
        container.cpus.Insert(cpu);
        free.Erase(cpu);
      }
      const std::int64_t gib = *rc::gen::inRange<std::int64_t>(0, 30);
      if (gib > 0 && gib <= memory_left) {
        memory_left -= gib;
        container.memory = {Block(gib * kGiB, {0, 1})};
      }
      if (!gpus.empty() && *rc::gen::arbitrary<bool>()) {
        container.devices = {gpus.back()};
        gpus.pop_back();
      }
      const std::string name = "pod-" + std::to_string(i);
      scene.Add(name, "uid-" + std::to_string(i), {container});
      if (*rc::gen::inRange(0, 4) == 0) scene.ForgetInList(name);
    }
    return scene;
  });
}

}  // namespace placement
