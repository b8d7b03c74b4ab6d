#include "kube/pod.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <limits>
#include <set>

namespace kube {
namespace {

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();

Container Requests(Resources requests) { return {.name = "c", .requests = std::move(requests)}; }
Container Limits(Resources limits) { return {.name = "c", .limits = std::move(limits)}; }
Container Both(const Resources& amounts) {
  return {.name = "c", .requests = amounts, .limits = amounts};
}
Container Sidecar(Container container) {
  container.sidecar = true;
  return container;
}

Qos QosAfterDefaults(Pod pod) {
  ApplyDefaults(pod);
  return ComputeQos(pod);
}

TEST(Amounts, AddUpToTheEndOfTheirTypeAndNoFurther) {
  EXPECT_EQ(Sum(1, 2), 3);
  EXPECT_EQ(Sum(kMost, 1), kMost);
  EXPECT_EQ(Sum(kMost, kMost), kMost);
  EXPECT_EQ(Sum(kLeast, -1), kLeast);
  EXPECT_EQ(Sum(kMost, kLeast), -1);
}

TEST(Amounts, AreZeroWhereThereIsNone) {
  EXPECT_EQ(Amount({{"cpu", 5}}, "cpu"), 5);
  EXPECT_EQ(Amount({{"cpu", 5}}, "memory"), 0);
}

TEST(Qos, IsGuaranteedIfEveryContainerHasEqualRequestsAndLimitsOfCpuAndMemory) {
  const Container whole = Both({{"cpu", 1000}, {"memory", 5}});
  EXPECT_EQ(ComputeQos({.containers = {whole, whole}}), Qos::kGuaranteed);
  EXPECT_EQ(ComputeQos({.containers = {whole, Both({{"cpu", 1000}})}}), Qos::kBurstable);
  EXPECT_EQ(ComputeQos({.containers = {whole, Container{}}}), Qos::kBurstable);
}

TEST(Qos, CountsInitContainersAndSidecars) {
  const Container whole = Both({{"cpu", 1000}, {"memory", 5}});
  const Container part = Requests({{"cpu", 1000}});
  EXPECT_EQ(ComputeQos({.init_containers = {whole}, .containers = {whole}}), Qos::kGuaranteed);
  EXPECT_EQ(ComputeQos({.init_containers = {part}, .containers = {whole}}), Qos::kBurstable);
  EXPECT_EQ(ComputeQos({.init_containers = {Sidecar(part)}, .containers = {whole}}),
            Qos::kBurstable);
}

TEST(Qos, TakesZeroForNothing) {
  const Container zero = Both({{"cpu", 0}, {"memory", 0}});
  EXPECT_EQ(ComputeQos({.containers = {zero, Container{}}}), Qos::kBestEffort);
  EXPECT_EQ(ComputeQos({.containers = {Both({{"cpu", 1000}, {"memory", 0}})}}), Qos::kBurstable);
}

TEST(Qos, LooksAtNoOtherResource) {
  EXPECT_EQ(ComputeQos({.containers = {Both({{"nvidia.com/gpu", 1}})}}), Qos::kBestEffort);
}

TEST(Qos, IsThePodsOwnResourcesAloneWhereItHasAny) {
  const Resources whole = {{"cpu", 1000}, {"memory", 5}};
  const std::vector<Container> burstable = {Requests({{"cpu", 1000}})};
  EXPECT_EQ(ComputeQos({.containers = burstable, .pod_requests = whole, .pod_limits = whole}),
            Qos::kGuaranteed);
  EXPECT_EQ(ComputeQos({.containers = {Both(whole)}, .pod_limits = whole}), Qos::kBurstable);
}

TEST(Qos, IgnoresEmptyPodLevelResources) {
  const Container whole = Both({{"cpu", 1000}, {"memory", 5}});
  EXPECT_EQ(ComputeQos({.containers = {whole}, .pod_requests = Resources{}}), Qos::kGuaranteed);
}

TEST(Defaults, MakeAMissingRequestTheLimit) {
  Pod pod{.init_containers = {Limits({{"cpu", 1000}})},
          .containers = {{.name = "c",
                          .requests = {{"cpu", 0}},
                          .limits = {{"cpu", 2000}, {"nvidia.com/gpu", 1}}}}};
  ApplyDefaults(pod);
  EXPECT_EQ(pod.init_containers[0].requests, (Resources{{"cpu", 1000}}));
  EXPECT_EQ(pod.containers[0].requests, (Resources{{"cpu", 0}, {"nvidia.com/gpu", 1}}));
  EXPECT_FALSE(pod.pod_requests);
}

TEST(Defaults, MakeAMissingPodLevelRequestTheContainersTogether) {
  Pod pod{.containers = {Requests({{"cpu", 1000}}), Requests({{"cpu", 500}})},
          .pod_limits = Resources{{"cpu", 4000}, {"memory", 7}}};
  ApplyDefaults(pod);
  EXPECT_EQ(pod.pod_requests, (Resources{{"cpu", 1500}, {"memory", 7}}));
}

TEST(Defaults, MakeAMissingPodLevelLimitTheContainersTogetherIfAllHaveOne) {
  const Resources own = {{"cpu", 1000}};
  Pod all{.containers = {Limits({{"cpu", 1000}}), Limits({{"cpu", 2000}})}, .pod_requests = own};
  Pod some{.containers = {Limits({{"cpu", 1000}}), Container{}}, .pod_requests = own};
  Pod more{.containers = {Limits({{"cpu", 1000}})}, .pod_requests = Resources{{"cpu", 9000}}};
  for (Pod* pod : {&all, &some, &more}) ApplyDefaults(*pod);
  EXPECT_EQ(all.pod_limits, (Resources{{"cpu", 3000}}));
  EXPECT_FALSE(some.pod_limits);
  EXPECT_EQ(more.pod_limits, (Resources{{"cpu", 9000}}));
}

TEST(Defaults, TakeHugePagesOfThePodFromTheContainersLimits) {
  const std::vector<Container> containers = {Limits({{"hugepages-2Mi", 4}})};
  Pod taken{.containers = containers, .pod_requests = Resources{{"cpu", 1000}}};
  Pod asked{.containers = containers, .pod_requests = Resources{{"hugepages-2Mi", 8}}};
  for (Pod* pod : {&taken, &asked}) ApplyDefaults(*pod);
  EXPECT_EQ(Amount(*taken.pod_limits, "hugepages-2Mi"), 4);
  EXPECT_EQ(Amount(*taken.pod_requests, "hugepages-2Mi"), 4);
  EXPECT_EQ(Amount(*asked.pod_limits, "hugepages-2Mi"), 8);
}

TEST(Defaults, ChangeAPodsQosWithItsResources) {
  const Resources whole = {{"cpu", 1000}, {"memory", 5}};
  EXPECT_EQ(QosAfterDefaults({.containers = {Limits(whole)}}), Qos::kGuaranteed);
  EXPECT_EQ(QosAfterDefaults({.containers = {Requests(whole)}}), Qos::kBurstable);
  EXPECT_EQ(QosAfterDefaults({.containers = {Container{}}, .pod_limits = whole}), Qos::kGuaranteed);
}

TEST(Effective, IsTheContainersTogetherOrAnInitContainerWithTheSidecarsBeforeIt) {
  const Pod pod{.init_containers = {Requests({{"cpu", 3}}), Sidecar(Requests({{"cpu", 2}})),
                                    Requests({{"cpu", 6}, {"memory", 1}})},
                .containers = {Requests({{"cpu", 1}}), Requests({{"cpu", 4}})}};
  EXPECT_EQ(Effective(pod, &Container::requests), (Resources{{"cpu", 8}, {"memory", 1}}));
}

TEST(Effective, IsThePodLevelAmountWhereThereIsOne) {
  const Pod pod{.containers = {Requests({{"cpu", 5}, {"memory", 5}, {"nvidia.com/gpu", 1}})},
                .pod_requests = Resources{{"cpu", 3}, {"nvidia.com/gpu", 9}}};
  EXPECT_EQ(Effective(pod, &Container::requests),
            (Resources{{"cpu", 3}, {"memory", 5}, {"nvidia.com/gpu", 1}}));
}

TEST(Effective, AddsTheOverheadToEveryRequestAndToLimitsThatAreSet) {
  const Pod pod{.containers = {{.name = "c",
                                .requests = {{"cpu", 5}},
                                .limits = {{"cpu", 7}, {"memory", 0}}}},
                .overhead = {{"cpu", 1}, {"memory", 2}}};
  EXPECT_EQ(Effective(pod, &Container::requests), (Resources{{"cpu", 6}, {"memory", 2}}));
  EXPECT_EQ(Effective(pod, &Container::limits), (Resources{{"cpu", 8}, {"memory", 0}}));
}

TEST(Effective, KeepsANameWhoseAmountIsZero) {
  const Pod pod{.containers = {Requests({{"nvidia.com/gpu", 0}})}};
  EXPECT_EQ(Effective(pod, &Container::requests), (Resources{{"nvidia.com/gpu", 0}}));
}

TEST(Effective, StaysWithin64Bits) {
  const Container much = Requests({{"memory", kMost}});
  const Pod pod{.init_containers = {Sidecar(much), much},
                .containers = {much, much},
                .overhead = {{"memory", kMost}}};
  EXPECT_EQ(Effective(pod, &Container::requests), (Resources{{"memory", kMost}}));
}

Container AnyContainer() {
  Container container{.name = "c", .sidecar = *rc::gen::arbitrary<bool>()};
  for (const char* name : {"cpu", "memory", "nvidia.com/gpu"}) {
    if (*rc::gen::arbitrary<bool>()) container.requests[name] = *rc::gen::inRange(0, 10);
  }
  return container;
}

// Phase by phase, one resource: each init container with the sidecars started before it, then
// everything that runs on.
std::int64_t Peak(const Pod& pod, const std::string& name) {
  std::int64_t running = 0;
  std::int64_t most = 0;
  for (const Container& container : pod.init_containers) {
    most = std::max(most, running + Amount(container.requests, name));
    if (container.sidecar) running += Amount(container.requests, name);
  }
  for (const Container& container : pod.containers) running += Amount(container.requests, name);
  return std::max(most, running);
}

TEST(Effective, IsTheMostThatIsTakenInAnyPhase) {
  EXPECT_TRUE(rc::check([] {
    Pod pod;
    for (int i = *rc::gen::inRange(0, 5); i > 0; --i) pod.init_containers.push_back(AnyContainer());
    for (int i = *rc::gen::inRange(1, 4); i > 0; --i) pod.containers.push_back(AnyContainer());
    Resources expected;
    for (const auto* list : {&pod.init_containers, &pod.containers}) {
      for (const Container& container : *list) {
        for (const auto& [name, amount] : container.requests) expected[name] = Peak(pod, name);
      }
    }
    RC_ASSERT(Effective(pod, &Container::requests) == expected);
  }));
}

}  // namespace
}  // namespace kube
