#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "agent/sources.h"
#include "base/clock.h"
#include "demo/fake_kubelet.h"
#include "test/support/temp_tree.h"

namespace test {

// A pod with one container, "main".
struct FakePod {
  std::string name;  // in namespace "ml"
  std::string cpus;  // exclusive ones, "" for none
  std::vector<std::string> gpus;
};

// A node with a kubelet, as files and a socket: two NUMA nodes with the CPUs 0-1,4-5 and 2-3,6-7,
// of which 0 and 4 are reserved, and the GPUs gpu-0 and gpu-1 on node 0, gpu-2 and gpu-3 on node 1.
// What the kubelet's list says, what its files say and which cgroups there are is written apart, so
// that tests can do it in any order, or not.
class FakeNode {
 public:
  FakeNode();

  std::string UidOf(const std::string& name) const;
  // The truth from now on; nothing is written by it.
  void Add(const FakePod& pod) { pods_[pod.name] = pod; }
  void Remove(const std::string& name) { pods_.erase(name); }
  void SetGpus(const std::set<std::string>& healthy) { gpus_ = healthy; }
  const std::map<std::string, FakePod>& pods() const { return pods_; }

  // `nowhere`: CPUs that are on their way, neither shared nor anybody's.
  void WriteStateFiles(const std::string& nowhere = "");
  void WriteList();                                   // what List answers: the truth
  void ListOnly(const std::set<std::string>& names);  // of the truth
  void WriteCgroups();                                // and the folders of pod logs
  void PutCgroup(const std::string& name, const std::string& resident = "anon N0=0 N1=0\n");
  void WriteAll();

  // A new process, a new socket; with its files as they are.
  void StartKubelet();
  void StopKubelet();

  // What the kubelet does each time it is asked, before it answers.
  std::function<void()> at_question;

  demo::FakeKubelet& kubelet() { return kubelet_; }
  TempTree& tree() { return tree_; }
  agent::Sources sources() const;

 private:
  std::string ContainerIdOf(const std::string& name) const;
  std::string LinkOf(const std::string& name) const;  // to its log
  std::string CgroupOf(const std::string& name) const;
  void Replace(const std::string& path, const std::string& content);
  void WriteProcess();

  TempTree tree_;
  std::mutex mutex_;
  std::string replies_;  // guarded by mutex_: the kubelet answers on threads of its own
  demo::FakeKubelet kubelet_;
  std::map<std::string, FakePod> pods_;
  std::set<std::string> gpus_ = {"gpu-0", "gpu-1", "gpu-2", "gpu-3"};
  std::set<std::string> laid_down_;  // pods with cgroups and logs
  int pid_ = 4242;
};

}  // namespace test
