#include "scheduler/admission/explain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <bit>
#include <memory>
#include <string>
#include <vector>

#include "scheduler/admission/admit.h"
#include "scheduler/admission/explain_text.h"
#include "test/scheduler/scene.h"

namespace scheduler::admission {
namespace {

using testing::HasSubstr;
using testing::Not;

Explanation ExplainTo(const NodeState& state, const std::string& words) {
  const Request request = MakeRequest(PodOf("asked", words));
  return Explain(state, request, Admit(state, request));
}

// "Code: summary".
std::string Summary(const NodeState& state, const std::string& words) {
  const Explanation explanation = ExplainTo(state, words);
  return ToString(explanation.code) + std::string(": ") + explanation.summary;
}

std::string Detail(const NodeState& state, const std::string& words) {
  return ExplainTo(state, words).detail;
}

// Two NUMA nodes of 16 CPUs, 64 GiB and 4 GPUs: 2 GPUs are free on node 0, 1 on node 1.
NodeState SomeGpusFree(const std::string& policy = "single-numa-node") {
  return Scene({.numa = {{.id = 0, .gpus = 4, .taken_gpus = 2},
                         {.id = 1, .gpus = 4, .taken_gpus = 3}},
                .policy = policy})
      .state;
}

TEST(Explain, SaysThatAPodFits) {
  EXPECT_EQ(Summary(SomeGpusFree(), "4 CPU 1Gi 2 GPU"), "Fits: the pod fits");
}

TEST(Explain, CountsTheDevicesThatAreFreeOnTheWholeNode) {
  const NodeState state = SomeGpusFree();
  EXPECT_EQ(Summary(state, "4 CPU 1Gi 4 GPU"), "NoFreeDevice: fewer than 4 GPUs are free");
  EXPECT_EQ(Detail(state, "4 CPU 1Gi 4 GPU"),
            "container a: fewer than 4 GPUs are free: NUMA node 0 has 2 GPUs (2 short), NUMA node "
            "1 has 1 GPU (3 short)");
  const NodeState full = Scene({.numa = {{.id = 0, .gpus = 1, .taken_gpus = 1}}}).state;
  EXPECT_EQ(Summary(full, "1 GPU"), "NoFreeDevice: no GPU is free");
}

TEST(Explain, SaysWhatIsFreeButSpreadOverNumaNodes) {
  const NodeState state = SomeGpusFree();
  EXPECT_EQ(Summary(state, "4 CPU 1Gi 3 GPU"), "FreeButSpread: no NUMA node has 3 GPUs free");
  const Explanation explanation = ExplainTo(state, "4 CPU 1Gi 3 GPU");
  EXPECT_EQ(explanation.resource, "nvidia.com/gpu");
  EXPECT_EQ(explanation.container, "a");
  EXPECT_TRUE(explanation.fits_empty_node);
  const ResourceNumbers& gpus = explanation.resources.front();
  EXPECT_EQ(gpus.needed, 3);
  EXPECT_EQ(gpus.free, 3);
  EXPECT_EQ(gpus.width, 1);
  EXPECT_EQ(gpus.numa[0], (ResourceNumbers::Numa{.id = 0, .free = 2, .short_by = 1}));
  EXPECT_EQ(gpus.nearest, base::NumaMask{0});
  EXPECT_EQ(gpus.short_by, 1);
}

TEST(Explain, NamesWhatLacksTheLeastWhereSeveralNumaNodesAreNeeded) {
  const NodeState state = Scene({.numa = {{.id = 0, .gpus = 2, .taken_gpus = 1},
                                          {.id = 1, .gpus = 2, .taken_gpus = 1},
                                          {.id = 4, .gpus = 2},
                                          {.id = 5, .gpus = 2, .taken_gpus = 2}},
                                 .policy = "restricted"})
                              .state;
  EXPECT_EQ(Summary(state, "4 GPU"), "FreeButSpread: no 2 NUMA nodes have 4 GPUs free");
  EXPECT_THAT(Detail(state, "4 GPU"), HasSubstr(", NUMA nodes 0,4 come closest, 1 GPU short"));
}

TEST(Explain, SaysWhatIsFreeButNotTogether) {
  const NodeState state = Scene({.numa = {{.id = 0, .gpus = 4, .taken_cpus = 14},
                                          {.id = 1, .gpus = 4, .taken_gpus = 3}}})
                              .state;
  EXPECT_EQ(Summary(state, "4 CPU 1536Mi 4 GPU"),
            "NotTogether: no NUMA node has 4 GPUs, 4 CPUs and 1.5 GiB of memory free together");
  EXPECT_EQ(Detail(state, "4 CPU 1536Mi 4 GPU"),
            "container a: no NUMA node has 4 GPUs, 4 CPUs and 1.5 GiB of memory free together: "
            "NUMA node 0 has 4 GPUs, 2 CPUs (2 short) and 64 GiB of memory, "
            "NUMA node 1 has 1 GPU (3 short), 16 CPUs and 64 GiB of memory");
}

TEST(Explain, SaysWhenCpusOrMemoryAreUsedUp) {
  const NodeState state = Scene({.numa = {{.id = 0, .taken_cpus = 14, .taken_memory = "60Gi"},
                                          {.id = 1, .taken_cpus = 15, .taken_memory = "62Gi"}}})
                              .state;
  EXPECT_EQ(Summary(state, "8 CPU 1Gi"), "NotEnoughCpus: fewer than 8 CPUs are free");
  EXPECT_EQ(Summary(state, "1 CPU 8Gi"), "NotEnoughMemory: less than 8 GiB of memory is free");
  EXPECT_EQ(Summary(state, "1 CPU 5Gi"), "FreeButSpread: no NUMA node has 5 GiB of memory free");
}

TEST(Explain, SaysThatNoNodeOfTheKindWillEverDoAndWhichPolicyWould) {
  const NodeState state = SomeGpusFree();
  EXPECT_EQ(
      Summary(state, "20 CPU 100Gi 8 GPU"),
      "NeverFits: no NUMA node has 8 GPUs, even when empty; policy restricted would admit the "
      "pod");
  EXPECT_EQ(Summary(state, "4 CPU 1Gi 8 GPU"),
            "NeverFits: no NUMA node has 8 GPUs, even when empty; policy best-effort would admit "
            "the pod");
  EXPECT_EQ(Summary(state, "4 CPU 1Gi 9 GPU"), "NeverFits: the node never has 9 GPUs to give");
  EXPECT_EQ(ExplainTo(state, "4 CPU 1Gi 8 GPU").admitting_policy, "best-effort");
  const NodeState apart = Scene({.numa = {{.id = 0, .gpus = 4}, {.id = 1, .cpus = 32}}}).state;
  EXPECT_EQ(Summary(apart, "24 CPU 1Gi 4 GPU"),
            "NeverFits: no NUMA node has 4 GPUs, 24 CPUs and 1 GiB of memory together, even when "
            "empty; policy best-effort would admit the pod");
}

// With 2 of 16 CPUs reserved, 15 CPUs prefer one NUMA node, which none can give.
TEST(Explain, SaysThatReservedCpusKeepAWidthFromEverBeingPreferred) {
  const NodeState state = Scene({.policy = "restricted", .reserved_cpus = "0,16"}).state;
  EXPECT_EQ(Summary(state, "16 CPU 1Gi"), "Fits: the pod fits") << "NUMA node 1 has none reserved";
  const NodeState both = Scene({.policy = "restricted", .reserved_cpus = "0,8,16,24"}).state;
  EXPECT_EQ(Summary(both, "15 CPU 1Gi"),
            "NeverFits: no NUMA node has 15 CPUs, even when empty; policy best-effort would admit "
            "the pod");
}

TEST(Explain, SaysWhichWidthsDisagreeAndHowManyCpusWouldDo) {
  const NodeState state = SomeGpusFree("restricted");
  EXPECT_EQ(Summary(state, "4 CPU limit 4 CPU 6 GPU"), "NoFreeDevice: fewer than 6 GPUs are free")
      << "CPUs of a pod that is not Guaranteed have no say";
  EXPECT_EQ(
      Summary(state, "4 CPU 100Gi 6 GPU"),
      "WidthsDisagree: under policy restricted all must need the same number of NUMA nodes: 6 "
      "GPUs and 100 GiB of memory need 2, 4 CPUs need 1; with 17 CPUs it would be admitted");
  EXPECT_EQ(ExplainTo(state, "4 CPU 100Gi 6 GPU").least_cpus, 17);
  EXPECT_EQ(
      Summary(state, "4 CPU 1Gi 6 GPU"),
      "WidthsDisagree: under policy restricted all must need the same number of NUMA nodes: 6 "
      "GPUs need 2, 4 CPUs and 1 GiB of memory need 1");
}

TEST(Explain, SaysThatWholeCoresAreMissing) {
  const NodeSpec spec = {.policy = "none", .cpu_options = {{"full-pcpus-only", "true"}}};
  EXPECT_EQ(Summary(Scene(spec).state, "3 CPU 1Gi"),
            "SmtAlignment: 3 CPUs are not whole cores of 2 threads");
  NodeSpec taken = spec;
  taken.numa = {{.id = 0, .taken_cpus = 16}, {.id = 1, .taken_cpus = 8}};
  EXPECT_EQ(Summary(Scene(taken).state, "10 CPU 1Gi"),
            "SmtAlignment: fewer than 10 CPUs are free on whole cores");
  EXPECT_EQ(Summary(Scene(spec).state, "34 CPU 1Gi"),
            "SmtAlignment: fewer than 34 CPUs are on whole cores without a reserved CPU");
}

TEST(Explain, SaysThatMemoryIsTiedToOtherPods) {
  Scene single({.policy = "restricted"});
  EXPECT_EQ(single.Add("small", "2 CPU 10Gi"), "admitted on 0");
  EXPECT_EQ(Summary(single.state, "20 CPU 100Gi"),
            "MemoryGroup: 100 GiB of memory is free, but on NUMA nodes that are tied to other "
            "pods' memory");
  EXPECT_THAT(Detail(single.state, "20 CPU 100Gi"),
              HasSubstr(", NUMA node 0 gives its memory alone"));
  Scene group({.policy = "restricted"});
  EXPECT_EQ(group.Add("large", "20 CPU 100Gi"), "admitted on 0-1");
  EXPECT_EQ(Summary(group.state, "2 CPU 10Gi"),
            "MemoryGroup: 10 GiB of memory is free, but on NUMA nodes that are tied to other pods' "
            "memory");
  EXPECT_THAT(Detail(group.state, "2 CPU 10Gi"),
              HasSubstr(", NUMA nodes 0-1 give their memory together"));
}

TEST(Explain, SaysThatInitContainersKeepWhatTheyHad) {
  const NodeState state = Scene({.policy = "restricted"}).state;
  const std::string pod = "init 20 CPU 1Gi; 4 CPU 1Gi";
  NodeState no_memory = Scene({.policy = "restricted", .memory_policy = "None"}).state;
  EXPECT_EQ(Summary(no_memory, pod),
            "ReusedInitResources: what finished init containers keep leaves no room for a later "
            "container");
  EXPECT_THAT(Detail(no_memory, pod), HasSubstr("container a: "));
  EXPECT_EQ(ExplainTo(state, "init 8 CPU 1Gi; 4 CPU 1Gi").code, Why::kFits);
}

TEST(Explain, SaysThatAPodsOwnContainersLeaveItNothing) {
  placement::NodePlacement node = NodeOf({.policy = "restricted", .scope = "pod"});
  node.kubelet.feature_gates["PodLevelResourceManagers"] = "true";
  // 6 CPUs and 6 GiB for the pod; the second container shares what the first has not for itself.
  const auto summary = [&](const std::string& containers) {
    kube::Pod pod = PodOf("p", containers);
    pod.pod_limits = kube::Resources{{"cpu", 6000}, {"memory", std::int64_t{6} << 30}};
    pod.pod_requests = pod.pod_limits;
    pod.qos = kube::Qos::kGuaranteed;
    const NodeState state = Scene(node).state;
    const Request request = MakeRequest(pod);
    const Explanation found = Explain(state, request, Admit(state, request));
    return std::string(ToString(found.code)) + ": " + found.summary;
  };
  EXPECT_EQ(summary("2 CPU 1Gi; nothing"), "Fits: the pod fits");
  EXPECT_EQ(summary("6 CPU 1Gi; nothing"),
            "EmptyPodPool: the pod's containers with CPUs of their own leave none of the pod's to "
            "the others");
  EXPECT_EQ(summary("2 CPU 6Gi; nothing"),
            "EmptyPodPool: the pod's containers with memory of their own leave none of the pod's "
            "to the others");
}

TEST(Explain, PassesOnWhatTheKubeletCannotAnswer) {
  const NodeState state = Scene({.numa = {{.id = 0}, {.id = 64}}, .policy = "restricted"}).state;
  EXPECT_EQ(Summary(state, "1 CPU 1Gi"),
            "KubeletCannot: the kubelet would crash: it has a NUMA node with an id above 63");
}

TEST(Explain, PassesOnWhatTheNodesSumsRefuse) {
  const Explanation memory = ExplainOutOf("OutOfmemory");
  EXPECT_EQ(memory.code, Why::kOutOf);
  EXPECT_EQ(memory.resource, "memory");
  EXPECT_EQ(memory.summary, "the node's allocatable memory is used up");
  EXPECT_EQ(ExplainOutOf("OutOfcpu").summary, "the node's allocatable CPU is used up");
  EXPECT_EQ(ExplainOutOf("OutOfnvidia.com/gpu").summary, "the node's allocatable GPU is used up");
}

TEST(Explain, SaysWhichReleaseItDoesNotKnow) {
  placement::NodePlacement node = NodeOf({});
  EXPECT_THAT(Detail(Scene(node).state, "20 CPU 1Gi"), Not(HasSubstr("unverified")));
  node.kubelet.version = "v1.39.0";
  EXPECT_THAT(Detail(Scene(node).state, "20 CPU 1Gi"), HasSubstr("unverified version"));
  EXPECT_THAT(Summary(Scene(node).state, "20 CPU 1Gi"), Not(HasSubstr("unverified")));
}

TEST(Explain, NamesResourcesShortly) {
  placement::NodePlacement node =
      NodeOf({.numa = {{.id = 0, .hugepages = {{"hugepages-1Gi", "2Gi"}}, .taken_cpus = 15}}});
  AddDevice(node, "vendor.com/nic", "nic-0", {0});
  AddDevice(node, "amd.com/gpu", "gpu-0", {0});
  const NodeState state = Scene(node).state;
  EXPECT_EQ(Summary(state, "2 vendor.com/nic"), "NeverFits: the node never has 2 nic to give");
  EXPECT_EQ(Summary(state, "2 amd.com/gpu"), "NeverFits: the node never has 2 GPUs to give");
  EXPECT_EQ(ShortName("example.com/gpu"), "GPU") << "whose they are does not matter";
  EXPECT_EQ(Summary(state, "1 CPU 1Gi 3Gi hugepages-1Gi"),
            "NeverFits: the node never has 3 GiB of 1Gi huge pages to give");
}

// --- The claims hold on nodes and pods drawn at random -------------------------------------------

void KeepOnly(const std::string& resource, Demand& demand) {
  const auto other = [&](const auto& entry) { return entry.first != resource; };
  std::erase_if(demand.devices, other);
  std::erase_if(demand.memory, other);
  if (resource != kube::kCpu) demand.cpus = 0;
}

bool AdmitsAlone(const NodeState& state, Request request, const std::string& resource) {
  KeepOnly(resource, request.pod);
  for (ContainerDemand& container : request.containers) KeepOnly(resource, container.demand);
  return Admit(state, request).admitted();
}

NodeState EmptyLike(const NodeState& state) {
  NodeState empty = EmptyState({state.machine, state.device_ids});
  for (std::size_t i = 0; i < empty.pool.devices.size(); ++i) {
    empty.pool.devices[i].healthy = state.pool.devices[i].healthy;
  }
  return empty;
}

std::string AnyContainer() {
  std::string words;
  if (*rc::gen::weightedElement<bool>({{4, true}, {1, false}})) {
    words += std::to_string(*rc::gen::inRange(1, 20)) + " CPU ";
    words += std::to_string(*rc::gen::inRange(1, 80)) + "Gi ";
  }
  if (*rc::gen::arbitrary<bool>()) words += std::to_string(*rc::gen::inRange(0, 7)) + " GPU ";
  if (*rc::gen::weightedElement<bool>({{1, true}, {5, false}})) words += "1Gi hugepages-1Gi";
  return words.empty() ? "nothing" : words;
}

std::string AnyPod() {
  std::string words = AnyContainer();
  const int kind = *rc::gen::weightedElement<int>({{5, 0}, {2, 1}, {2, 2}, {1, 3}});
  if (kind == 1) return words + "; " + AnyContainer();
  if (kind == 2) return "init " + AnyContainer() + "; " + words;
  if (kind == 3) return "sidecar " + AnyContainer() + "; init " + AnyContainer() + "; " + words;
  return words;
}

NodeSpec AnyNode() {
  NodeSpec spec;
  spec.numa.clear();
  const int count = *rc::gen::inRange(1, 5);
  for (int id = 0; id < count; ++id) {
    spec.numa.push_back({.id = id,
                         .cpus = *rc::gen::element(0, 8, 16),
                         .gpus = *rc::gen::element(0, 2, 4),
                         .memory = *rc::gen::element<std::string>("32Gi", "64Gi"),
                         .hugepages = {{"hugepages-1Gi", "2Gi"}},
                         .socket = id / 2});
  }
  spec.policy =
      *rc::gen::element<std::string>("none", "best-effort", "restricted", "single-numa-node");
  spec.scope = *rc::gen::element<std::string>("container", "pod");
  if (*rc::gen::weightedElement<bool>({{1, true}, {3, false}})) {
    spec.cpu_options["full-pcpus-only"] = "true";
  }
  if (*rc::gen::arbitrary<bool>()) spec.memory_policy = "None";
  return spec;
}

void CheckTogether(const NodeState& state, const Request& request, const Explanation& explanation) {
  const NodeState empty = EmptyLike(state);
  for (const ResourceNumbers& numbers : explanation.resources) {
    switch (explanation.code) {
      case Why::kNotTogether:
        RC_ASSERT(numbers.alone);
        RC_ASSERT(AdmitsAlone(state, request, numbers.resource));
        break;
      case Why::kWidthsDisagree:
        RC_ASSERT(AdmitsAlone(empty, request, numbers.resource));
        break;
      default:
        break;
    }
  }
}

// Makes free exactly what is said to be short.
void Free(const Explanation& explanation, const ResourceNumbers& numbers, NodeState& state) {
  const Machine& machine = *state.machine;
  std::int64_t missing = numbers.short_by;
  const Mask nodes = machine.FromIds(*numbers.nearest);
  const int resource = machine.FindResource(explanation.resource);
  if (resource >= 0) {
    for (std::size_t i = 0; i < machine.devices[At(resource)].devices.size() && missing > 0; ++i) {
      const int device = static_cast<int>(i);
      Bits& allocated = state.pool.devices[At(resource)].allocated;
      if ((machine.devices[At(resource)].devices[i].nodes & nodes) == 0) continue;
      if (!allocated.Test(device)) continue;
      allocated.Clear(device);
      --missing;
    }
  } else if (explanation.resource == kube::kCpu) {
    for (int node = 0; node < machine.numa_count(); ++node) {
      if (((nodes >> node) & 1) == 0) continue;
      (machine.cpu.in_numa[At(node)] - state.pool.cpus).ForEach([&](int cpu) {
        if (missing-- > 0) state.pool.cpus.Set(cpu);
      });
    }
  } else {
    state.pool.memory[At(std::countr_zero(nodes))]
        .free[At(machine.MemoryType(explanation.resource))] += missing;
  }
}

void CheckShort(const NodeState& state, const Request& request, const Explanation& explanation) {
  const auto numbers =
      std::ranges::find(explanation.resources, explanation.resource, &ResourceNumbers::resource);
  RC_ASSERT(numbers != explanation.resources.end());
  RC_ASSERT(!numbers->alone);
  RC_ASSERT(!AdmitsAlone(state, request, explanation.resource));
  const std::int64_t needed = std::max<std::int64_t>(numbers->needed, 1);
  RC_ASSERT((explanation.code == Why::kFreeButSpread) == (numbers->free >= needed));
  // One container, so that it found the node as it is; memory on one node, so that groups are not
  // in the way.
  if (request.containers.size() > 1 || !numbers->nearest || numbers->short_by == 0) return;
  if (kube::kCpu == explanation.resource && state.machine->settings.full_pcpus_only) return;
  const bool memory =
      kube::kMemory == explanation.resource || kube::IsHugePages(explanation.resource);
  if (memory && (numbers->width > 1 || state.pool.memory.empty())) return;
  NodeState more = state;
  if (memory) {
    for (std::size_t node = 0; node < more.pool.memory.size(); ++node) {
      more.pool.memory[node].group = Mask{1} << node;
    }
  }
  Free(explanation, *numbers, more);
  RC_ASSERT(AdmitsAlone(more, request, explanation.resource));
}

void CheckClaims(const NodeState& state, const Request& request, const Explanation& explanation) {
  const NodeState empty = EmptyLike(state);
  const bool fits_empty = Admit(empty, request).admitted();
  RC_ASSERT(explanation.fits_empty_node == fits_empty);
  CheckTogether(state, request, explanation);
  switch (explanation.code) {
    case Why::kWidthsDisagree:
      RC_ASSERT(!fits_empty);
      break;
    case Why::kNeverFits: {
      RC_ASSERT(!fits_empty);
      break;
    }
    case Why::kNoFreeDevice:
    case Why::kNotEnoughCpus:
    case Why::kNotEnoughMemory:
    case Why::kFreeButSpread:
      RC_ASSERT(fits_empty);
      CheckShort(state, request, explanation);
      break;
    case Why::kMemoryGroup:
    case Why::kNotTogether:
      RC_ASSERT(fits_empty);
      break;
    case Why::kReusedInitResources: {
      const auto failed =
          std::ranges::find(request.containers, explanation.container, &ContainerDemand::name);
      Request without = request;
      without.containers = {failed, failed + 1};
      for (auto before = failed; before != request.containers.begin();) {
        --before;
        if (!before->reuses()) without.containers.insert(without.containers.begin(), *before);
      }
      RC_ASSERT(Admit(state, without).admitted());
      break;
    }
    case Why::kSmtAlignment:
      RC_ASSERT(state.machine->settings.full_pcpus_only);
      break;
    case Why::kEmptyPodPool:
      RC_ASSERT(request.cpus_leave_no_pool || request.memory_leaves_no_pool);
      break;
    case Why::kFits:
    case Why::kKubeletCannot:
    case Why::kOutOf:
      RC_FAIL("not a rejection of the managers");
  }
}

TEST(Explain, GivesEveryRejectionACodeWhoseClaimHolds) {
  EXPECT_TRUE(rc::check([] {
    placement::NodePlacement node = NodeOf(AnyNode());
    node.node_name = "secret";
    Scene scene(node);
    const int pods = *rc::gen::inRange(0, 10);
    for (int i = 0; i < pods; ++i) scene.Add("p" + std::to_string(i), AnyPod());
    const std::string words = AnyPod();
    const Request request = MakeRequest(PodOf("asked", words));
    const Verdict verdict = Admit(scene.state, request);
    const Explanation explanation = Explain(scene.state, request, verdict);
    RC_TAG(std::string(ToString(explanation.code)));
    RC_LOG() << words << "\n" << ToString(explanation.code) << ": " << explanation.detail << "\n";
    RC_ASSERT((explanation.code == Why::kFits) == verdict.admitted());
    RC_ASSERT(!explanation.summary.empty());
    RC_ASSERT(explanation.detail.find(explanation.summary) != std::string::npos);
    RC_ASSERT(explanation.detail.find("secret") == std::string::npos);
    RC_ASSERT(explanation == Explain(scene.state, request, verdict));
    if (!verdict.admitted()) CheckClaims(scene.state, request, explanation);
  }));
}

}  // namespace
}  // namespace scheduler::admission
