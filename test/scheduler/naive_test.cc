#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "placement/encode.h"
#include "scheduler/admission/admit.h"
#include "scheduler/admission/request.h"
#include "scheduler/admission/state.h"
#include "test/reference/naive_admit.h"
#include "test/scheduler/any_node.h"

// The prediction and a kubelet written the slow and plain way go through the same events.
namespace scheduler::admission {
namespace {

using reference::Ids;
using reference::NaiveBlock;
using reference::NaiveContainer;
using reference::NaiveVerdict;

Ids ToIds(const base::NumaMask& mask) { return {mask.begin(), mask.end()}; }

NaiveContainer Naive(const placement::PlacedContainer& container) {
  NaiveContainer naive;
  naive.name = container.name;
  naive.cpus = {container.cpus.begin(), container.cpus.end()};
  for (const placement::PlacedMemory& block : container.memory) {
    naive.memory.push_back({block.type, ToIds(block.numa_nodes), block.bytes});
  }
  for (const placement::HeldDevices& held : container.devices) {
    naive.devices[held.resource] = {held.ids.begin(), held.ids.end()};
  }
  return naive;
}

std::string Text(const std::optional<Ids>& affinity, bool preferred) {
  return affinity ? fmt::format("{}, {}", *affinity, preferred)
                  : fmt::format("none, {}", preferred);
}

std::string Text(const NaiveContainer& container) {
  std::string text = fmt::format("{} CPUs {}", container.name, container.cpus);
  for (const NaiveBlock& block : container.memory) {
    text += fmt::format(", {} {} on {}", block.bytes, block.type, block.nodes);
  }
  for (const auto& [resource, ids] : container.devices) {
    text += fmt::format(", {} {}", resource, ids);
  }
  return text;
}

std::string Text(const NaiveVerdict& verdict) {
  if (!verdict.reason.empty()) {
    return verdict.reason + " at " + Text(verdict.affinity, verdict.preferred);
  }
  std::string text = fmt::format("admitted{}", verdict.random_devices || verdict.plugin_chose
                                                   ? ", devices might be others"
                                                   : "");
  for (const NaiveContainer& container : verdict.containers) {
    text += fmt::format("\n  at {}: {}", Text(container.affinity, container.preferred),
                        Text(container));
  }
  return text;
}

// The prediction's verdict, with what the pod's containers hold as the object publishes it.
std::string Text(const Machine& machine, const Verdict& verdict,
                 const std::vector<placement::PlacedContainer>& held) {
  NaiveVerdict naive;
  const auto ids = [&](bool has, Mask mask) {
    return has ? std::optional(ToIds(machine.ToIds(mask))) : std::nullopt;
  };
  naive.reason = KubeletReason(verdict);
  naive.affinity = ids(verdict.has_affinity, verdict.affinity);
  naive.preferred = verdict.preferred;
  naive.plugin_chose = verdict.ambiguous_devices;
  for (std::size_t i = 0; i < held.size(); ++i) {
    const ContainerVerdict& container = verdict.containers[i];
    naive.containers.push_back(Naive(held[i]));
    naive.containers.back().affinity = ids(container.has_affinity, container.affinity);
    naive.containers.back().preferred = container.preferred;
  }
  return Text(naive);
}

// What is free and held on the node, as the object says and as the naive kubelet does.
std::string Accounts(const placement::NodePlacement& node) {
  std::string text;
  for (const placement::NumaNodePlacement& numa : node.numa_nodes) {
    text += fmt::format("{}: CPUs {}, {} assignments, group {}", numa.id,
                        Ids(numa.free_cpus->begin(), numa.free_cpus->end()),
                        *numa.memory_assignments, ToIds(*numa.memory_group));
    for (const placement::NodeMemory& table : numa.memory) {
      text += fmt::format(", {} {}", *table.free, table.type);
    }
    text += '\n';
  }
  for (const placement::PlacedPod& pod : node.pods) {
    text += pod.uid + '\n';
    for (const auto& container : pod.containers) text += "  " + Text(Naive(container)) + '\n';
  }
  return text;
}

std::string Accounts(const placement::NodePlacement& node, const reference::NaiveKubelet& kubelet) {
  std::string text;
  for (const placement::NumaNodePlacement& numa : node.numa_nodes) {
    const Ids own = {numa.cpus.begin(), numa.cpus.end()};
    const reference::NaiveMemory& memory = kubelet.memory().at(numa.id);
    text += fmt::format("{}: CPUs {}, {} assignments, group {}", numa.id,
                        reference::Common(own, kubelet.shared_cpus()), memory.assignments,
                        memory.cells);
    for (const auto& [type, table] : memory.tables) {
      text += fmt::format(", {} {}", table.free, type);
    }
    text += '\n';
  }
  for (const auto& [uid, containers] : kubelet.pods()) {
    text += uid + '\n';
    for (const NaiveContainer& container : containers) text += "  " + Text(container) + '\n';
  }
  return text;
}

class Both {
 public:
  Both(placement::NodePlacement node, const DeviceOrder& order)
      : node_(std::move(node)), kubelet_(node_, order), state_(*StateFrom(node_, order)) {}

  // False if the kubelet itself would not answer: from there on nothing can be compared.
  bool Add(const kube::Pod& pod, bool starts) {
    const NaiveVerdict slow = kubelet_.Add(pod);
    if (slow.cannot) return false;
    const Verdict fast = Admit(state_, MakeRequest(pod));
    Commit(pod.uid, fast, state_);
    placement::NodePlacement now = Published();
    const auto held = std::ranges::find(now.pods, pod.uid, &placement::PlacedPod::uid);
    RC_ASSERT(Text(*state_.machine, fast,
                   held == now.pods.end() ? std::vector<placement::PlacedContainer>()
                                          : held->containers) == Text(slow));
    if (starts && fast.admitted()) Start(pod);
    return true;
  }
  void Start(const kube::Pod& pod) {
    Started(state_, pod);
    kubelet_.Start(pod);
  }
  void Remove(const std::string& uid) {
    admission::Remove(state_, uid);
    kubelet_.Remove(uid);
  }
  void SetUnhealthy(const std::string& resource, const std::set<std::string>& ids) {
    SetDevices(state_, resource, {ids.begin(), ids.end()});
    kubelet_.SetUnhealthy(resource, ids);
  }
  bool Holds(const std::string& uid) const { return state_.pods.contains(uid); }
  void Compare() const { RC_ASSERT(Accounts(Published()) == Accounts(node_, kubelet_)); }

 private:
  placement::NodePlacement Published() const {
    placement::NodePlacement node = node_;
    WriteState(state_, node);
    return node;
  }

  placement::NodePlacement node_;
  reference::NaiveKubelet kubelet_;
  NodeState state_;
};

std::string Words(const kube::Pod& pod) {
  std::string words = pod.uid;
  for (const auto* list : {&pod.init_containers, &pod.containers}) {
    for (const kube::Container& container : *list) {
      words += fmt::format("; {}{} requests {} limits {}", container.sidecar ? "sidecar " : "",
                           container.name, container.requests, container.limits);
    }
  }
  return words;
}

// One event of any kind. False ends the sequence.
bool AnyEvent(const placement::NodePlacement& node, int number, std::vector<kube::Pod>& pods,
              Both& both) {
  const int kind = *rc::gen::weightedElement<int>({{6, 0}, {3, 1}, {1, 2}, {1, 3}});
  if (kind == 0 || pods.empty()) {
    const kube::Pod pod = AnyPod(node, fmt::format("p{}", number));
    const bool starts = *rc::gen::inRange(0, 6) != 0;
    RC_LOG() << "add " << Words(pod) << (starts ? "" : ", not started") << '\n';
    if (!both.Add(pod, starts)) return false;
    if (both.Holds(pod.uid)) pods.push_back(pod);
    return true;
  }
  const auto at = static_cast<std::size_t>(*rc::gen::inRange(0, static_cast<int>(pods.size())));
  if (kind == 1) {
    RC_LOG() << "remove " << pods[at].uid << '\n';
    both.Remove(pods[at].uid);
    pods.erase(pods.begin() + static_cast<std::ptrdiff_t>(at));
  }
  if (kind == 2) {
    std::set<std::string> ids;
    for (int i = 0; i < 6; ++i) {
      if (*rc::gen::inRange(0, 4) == 0) ids.insert(fmt::format("d{}", i));
    }
    RC_LOG() << fmt::format("unhealthy {}\n", ids);
    both.SetUnhealthy("vendor.com/gpu", ids);
  }
  if (kind == 3) {
    RC_LOG() << "start " << pods[at].uid << '\n';
    both.Start(pods[at]);
  }
  return true;
}

TEST(Admit, EqualsTheSlowAndPlainKubeletAtEachOfAnyEvents) {
  EXPECT_TRUE(CheckCases(800, [] {
    const placement::NodePlacement node = AnyNode();
    const DeviceOrder order = AnyDeviceOrder(node);
    RC_LOG() << placement::ToJson(node) << '\n' << fmt::format("{}\n", order);
    Both both(node, order);
    std::vector<kube::Pod> pods;
    const int events = *rc::gen::resize(rc::kNominalSize, rc::gen::inRange(1, 16));
    for (int i = 0; i < events; ++i) {
      if (!AnyEvent(node, i, pods, both)) return;
      both.Compare();
    }
  }));
}

}  // namespace
}  // namespace scheduler::admission
