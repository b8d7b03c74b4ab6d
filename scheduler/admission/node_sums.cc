#include "scheduler/admission/node_sums.h"

#include <vector>

namespace scheduler::admission {
namespace {

constexpr const char* kPods = "pods";
constexpr const char* kEphemeralStorage = "ephemeral-storage";

// "example.com/gpu": neither Kubernetes' own nor without a prefix.
bool IsExtended(const std::string& name) {
  return name.find('/') != std::string::npos && name.find("kubernetes.io/") == std::string::npos &&
         !name.starts_with("requests.");
}

// Whether the scheduler keeps an account of a resource other than the first three.
bool IsScalar(const std::string& name) {
  return name.find('/') != std::string::npos || kube::IsHugePages(name) ||
         name.starts_with("attachable-volumes-");
}

void AddTo(kube::Resources& sum, const kube::Resources& more) {
  for (const auto& [name, amount] : more) {
    std::int64_t& entry = sum[name];
    entry = kube::Sum(entry, amount);
  }
}

}  // namespace

std::string NodeSums::Check(const kube::Pod& pod) const {
  const auto most_pods = allocatable_.find(kPods);
  if (most_pods != allocatable_.end() && std::cmp_greater_equal(pods_.size(), most_pods->second)) {
    return std::string("OutOf") + kPods;
  }
  const kube::Resources own = kube::Effective(pod, &kube::Container::requests);
  std::vector<std::string> names = {kube::kCpu, kube::kMemory, kEphemeralStorage};
  for (const auto& [name, amount] : own) {
    if (IsScalar(name) && !(IsExtended(name) && !allocatable_.contains(name))) {
      names.push_back(name);
    }
  }
  for (const std::string& name : names) {
    const std::int64_t wanted = kube::Amount(own, name);
    if (wanted <= 0) continue;
    if (kube::Sum(kube::Amount(requested_, name), wanted) > kube::Amount(allocatable_, name)) {
      return "OutOf" + name;
    }
  }
  return "";
}

void NodeSums::Add(const kube::Pod& pod) {
  const bool again = pods_.contains(pod.uid);
  kube::Resources& own = pods_[pod.uid];
  own = kube::Effective(pod, &kube::Container::requests);
  if (again) {
    Recount();
  } else {
    AddTo(requested_, own);
  }
}

void NodeSums::Remove(const kube::Pod& pod) {
  pods_.erase(pod.uid);
  Recount();
}

void NodeSums::Recount() {
  requested_.clear();
  for (const auto& [uid, own] : pods_) AddTo(requested_, own);
}

}  // namespace scheduler::admission
