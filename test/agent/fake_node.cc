#include "test/agent/fake_node.h"

#include <fmt/format.h>
#include <stdio.h>

#include <cstdint>
#include <functional>
#include <stdexcept>

#include "test/hwinfo/machine_tree.h"

namespace test {
namespace {

constexpr char kKubeletDir[] = "var/lib/kubelet/";
constexpr char kSlice[] = "sys/fs/cgroup/kubepods.slice/";
constexpr char kReservedAndShared[] = "0,4";

int NodeOfGpu(const std::string& gpu) { return gpu < "gpu-2" ? 0 : 1; }

std::string Quoted(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) {
    text += fmt::format("{}\"{}\"", text.empty() ? "" : ",", word);
  }
  return text;
}

std::string DeviceReply(const std::string& gpu) {
  return fmt::format(
      R"({{"resourceName":"nvidia.com/gpu","deviceIds":["{}"],"topology":{{"nodes":[{{"ID":"{}"}}]}}}})",
      gpu, NodeOfGpu(gpu));
}

template <class Names>
std::string DeviceReplies(const Names& gpus) {
  std::string text;
  for (const std::string& gpu : gpus) text += (text.empty() ? "" : ",") + DeviceReply(gpu);
  return text;
}

std::string CpuIds(const std::string& list) {
  const base::CpuSet cpus = base::CpuSet::Parse(list).value();
  return fmt::format("{}", fmt::join(cpus.begin(), cpus.end(), ","));
}

std::string PodReply(const FakePod& pod) {
  return fmt::format(
      R"({{"name":"{}","namespace":"ml","containers":[{{"name":"main","cpuIds":[{}],"devices":[{}]}}]}})",
      pod.name, CpuIds(pod.cpus), DeviceReplies(pod.gpus));
}

}  // namespace

FakeNode::FakeNode()
    : kubelet_(tree_.Path("var/lib/kubelet/pod-resources/kubelet.sock"), [this] {
        if (at_question) at_question();
        const std::lock_guard lock(mutex_);
        return replies_;
      }) {
  PutTwoSocketMachine(tree_);
  tree_.Put("proc/sys/kernel/random/boot_id", "boot-1\n")
      .Put("proc/stat", "cpu 1 2 3\nbtime 1700000000\n")
      .Put("sys/fs/cgroup/cgroup.controllers", "cpuset memory\n")
      .Put(std::string(kSlice) + "cpuset.cpus.effective", "0-7\n")
      .Put(std::string(kSlice) + "cpuset.mems.effective", "0-1\n")
      .Folder("var/log/pods")
      .Folder("var/log/containers")
      .Folder("var/lib/kubelet/pod-resources")
      .Folder("var/lib/kubelet/device-plugins")
      .Put("var/lib/kubelet/config.yaml",
           "apiVersion: kubelet.config.k8s.io/v1beta1\n"
           "kind: KubeletConfiguration\n"
           "cpuManagerPolicy: static\n"
           "topologyManagerPolicy: best-effort\n"
           "reservedSystemCPUs: 0,4\n");
}

std::string FakeNode::UidOf(const std::string& name) const {
  const auto number = static_cast<std::uint32_t>(std::hash<std::string>()(name));
  return fmt::format("{:08x}-0000-4000-8000-000000000000", number);
}

std::string FakeNode::ContainerIdOf(const std::string& name) const {
  return fmt::format("{:064x}", static_cast<std::uint32_t>(std::hash<std::string>()(name)));
}

std::string FakeNode::LinkOf(const std::string& name) const {
  return fmt::format("var/log/containers/{}_ml_main-{}.log", name, ContainerIdOf(name));
}

std::string FakeNode::CgroupOf(const std::string& name) const {
  std::string uid = UidOf(name);
  for (char& c : uid) c = c == '-' ? '_' : c;
  return fmt::format("{}kubepods-pod{}.slice", kSlice, uid);
}

// As the kubelet does it: whoever reads sees the old file or the new one.
void FakeNode::Replace(const std::string& path, const std::string& content) {
  tree_.Put(path + ".new", content);
  if (rename(tree_.Path(path + ".new").c_str(), tree_.Path(path).c_str()) != 0) {
    throw std::runtime_error("cannot rename to " + tree_.Path(path));
  }
}

void FakeNode::WriteStateFiles(const std::string& nowhere) {
  std::string cpus;
  std::string devices;
  base::CpuSet shared = base::CpuSet::Parse("0-7").value() - base::CpuSet::Parse(nowhere).value();
  for (const auto& [name, pod] : pods_) {
    if (!pod.cpus.empty()) {
      cpus += fmt::format("{}\"{}\":{{\"main\":\"{}\"}}", cpus.empty() ? "" : ",", UidOf(name),
                          pod.cpus);
      shared -= base::CpuSet::Parse(pod.cpus).value();
    }
    for (const std::string& gpu : pod.gpus) {
      devices += fmt::format(
          R"({}{{"PodUID":"{}","ContainerName":"main","ResourceName":"nvidia.com/gpu","DeviceIDs":{{"{}":["{}"]}},"AllocResp":""}})",
          devices.empty() ? "" : ",", UidOf(name), NodeOfGpu(gpu), gpu);
    }
  }
  Replace(
      std::string(kKubeletDir) + "cpu_manager_state",
      fmt::format(R"({{"policyName":"static","defaultCpuSet":"{}","entries":{{{}}},"checksum":1}})",
                  shared.ToString(), cpus));
  Replace(
      std::string(kKubeletDir) + "device-plugins/kubelet_internal_checkpoint",
      fmt::format(
          R"({{"Data":{{"PodDeviceEntries":[{}],"RegisteredDevices":{{"nvidia.com/gpu":[{}]}}}},"Checksum":1}})",
          devices, Quoted({gpus_.begin(), gpus_.end()})));
}

void FakeNode::WriteList() {
  std::set<std::string> names;
  for (const auto& [name, pod] : pods_) names.insert(name);
  ListOnly(names);
}

void FakeNode::ListOnly(const std::set<std::string>& names) {
  std::string list;
  for (const auto& [name, pod] : pods_) {
    if (names.contains(name)) list += (list.empty() ? "" : ",") + PodReply(pod);
  }
  const std::lock_guard lock(mutex_);
  replies_ = fmt::format(
      R"({{"list":{{"podResources":[{}]}},"allocatable":{{"cpuIds":[1,2,3,5,6,7],"devices":[{}]}}}})",
      list, DeviceReplies(gpus_));
}

void FakeNode::WriteCgroups() {
  for (const std::string& name : std::set<std::string>(laid_down_)) {
    if (pods_.contains(name)) continue;
    tree_.Remove(CgroupOf(name));
    tree_.Remove(fmt::format("var/log/pods/ml_{}_{}", name, UidOf(name)));
    tree_.Remove(LinkOf(name));
    laid_down_.erase(name);
  }
  for (const auto& [name, pod] : pods_) {
    if (!laid_down_.contains(name)) PutCgroup(name);
  }
}

void FakeNode::PutCgroup(const std::string& name, const std::string& resident) {
  const std::string& cpus = pods_.at(name).cpus;
  const std::string id = ContainerIdOf(name);
  const std::string scope = fmt::format("{}/cri-containerd-{}.scope", CgroupOf(name), id);
  tree_.Put(scope + "/cpuset.cpus.effective", (cpus.empty() ? kReservedAndShared : cpus) + "\n")
      .Put(scope + "/cpuset.mems.effective", "0-1\n")
      .Put(scope + "/memory.numa_stat", resident);
  if (!laid_down_.insert(name).second) return;
  const std::string logs = fmt::format("ml_{}_{}", name, UidOf(name));
  tree_.Folder("var/log/pods/" + logs + "/main")
      .Link(LinkOf(name), fmt::format("/var/log/pods/{}/main/0.log", logs));
}

void FakeNode::WriteAll() {
  WriteStateFiles();
  WriteCgroups();
  WriteList();
}

void FakeNode::WriteProcess() {
  tree_.Remove(fmt::format("proc/{}", pid_));
  ++pid_;
  const std::string folder = fmt::format("proc/{}/", pid_);
  const std::string cmdline("kubelet\0--config=/var/lib/kubelet/config.yaml\0", 46);
  tree_.Put(folder + "cmdline", cmdline)
      .Put(folder + "comm", "kubelet\n")
      .Put(folder + "stat", fmt::format("{} (kubelet) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 {} 0",
                                        pid_, pid_ * 100));
}

void FakeNode::StartKubelet() {
  WriteProcess();
  if (const absl::Status started = kubelet_.Start(); !started.ok()) {
    throw std::runtime_error(started.ToString());
  }
}

void FakeNode::StopKubelet() {
  tree_.Remove(fmt::format("proc/{}", pid_));
  kubelet_.Stop();
}

agent::Sources FakeNode::sources() const {
  agent::Sources sources;
  sources.hardware.root = tree_.root();
  sources.files = tree_.Open();
  sources.node_name = "gpu-7";
  return sources;
}

}  // namespace test
