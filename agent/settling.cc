#include "agent/settling.h"

#include <algorithm>
#include <utility>

namespace agent {
namespace {

using placement::PlacedDevice;

using PodName = std::pair<std::string, std::string>;  // namespace, name

template <class Entries>
void AddUids(const Entries& entries, std::set<std::string>& uids) {
  for (const auto& [uid, entry] : entries) uids.insert(uid);
}

std::set<std::string> PodsWithCgroups(const placement::Facts& facts) {
  std::set<std::string> uids;
  if (!facts.enforced.ok()) return uids;
  for (const hwinfo::ContainerCgroup& container : facts.enforced->containers) {
    uids.insert(container.pod_uid);
  }
  return uids;
}

// The names of pods by UID: of those that have a folder of logs or a pod object.
std::map<std::string, PodName> NamesByUid(const placement::Facts& facts) {
  std::map<std::string, PodName> names;
  if (facts.state.pod_logs) {
    for (const podresources::PodLogFolder& folder : *facts.state.pod_logs) {
      names.emplace(folder.uid, PodName(folder.namespace_name, folder.name));
    }
  }
  if (facts.api_pods) {
    for (const placement::ApiPod& pod : *facts.api_pods) {
      for (const std::string& uid : {pod.uid, pod.kubelet_uid}) {
        names.emplace(uid, PodName(pod.namespace_name, pod.name));
      }
    }
  }
  return names;
}

std::map<std::string, std::int64_t> HealthyOf(const placement::Facts& facts) {
  std::map<std::string, std::int64_t> healthy;
  if (!facts.assignments.ok() || !facts.assignments->allocatable) return healthy;
  for (const podresources::Device& device : facts.assignments->allocatable->devices) {
    ++healthy[device.resource];
  }
  return healthy;
}

// Names of extended resources have a domain and a slash, those of DRA drivers are a domain.
bool IsExtendedResource(const std::string& name) { return name.find('/') != std::string::npos; }

}  // namespace

std::set<std::string> PodsOf(const placement::NodePlacement& placement) {
  std::set<std::string> uids(placement.known_pods.begin(), placement.known_pods.end());
  for (const placement::PlacedPod& pod : placement.pods) {
    uids.insert(pod.uid);
    uids.insert(pod.kubelet_uid);
  }
  uids.erase("");
  return uids;
}

std::set<std::string> PodsOf(const podresources::KubeletState& state) {
  std::set<std::string> uids;
  if (state.cpu) AddUids(state.cpu->entries, uids);
  if (state.cpu) AddUids(state.cpu->pod_entries, uids);
  if (state.memory) AddUids(state.memory->entries, uids);
  if (state.memory) AddUids(state.memory->pod_entries, uids);
  if (state.devices) AddUids(state.devices->entries, uids);
  return uids;
}

std::vector<std::string> UnlistedPods(const std::set<std::string>& expected,
                                      const placement::Facts& facts,
                                      const placement::NodePlacement& now, bool cgroups_count) {
  std::vector<std::string> unlisted;
  if (!facts.assignments.ok()) return unlisted;
  const std::set<std::string> listed = PodsOf(now);
  std::set<PodName> listed_names;
  for (const podresources::Pod& pod : facts.assignments->pods) {
    listed_names.emplace(pod.namespace_name, pod.name);
  }
  const std::set<std::string> with_cgroup = PodsWithCgroups(facts);
  const std::map<std::string, PodName> names = NamesByUid(facts);
  const bool names_are_known = facts.state.pod_logs || facts.api_pods;
  const bool by_cgroup = cgroups_count && !with_cgroup.empty();
  for (const std::string& uid : expected) {
    const auto name = names.find(uid);
    const bool has_name = name != names.end();
    if (by_cgroup ? !with_cgroup.contains(uid) : !has_name) continue;
    if (listed.contains(uid) || (has_name && listed_names.contains(name->second))) continue;
    // Without names no pod of the list has a UID: only an empty list is one that lacks it.
    if (!names_are_known && !listed_names.empty()) continue;
    unlisted.push_back(uid);
  }
  return unlisted;
}

void NoteMissing(const std::vector<PlacedDevice>& last, const placement::Facts& facts,
                 base::Instant now, MissingSince& missing) {
  if (!facts.assignments.ok() || !facts.assignments->allocatable) return;
  const std::map<std::string, std::int64_t> healthy = HealthyOf(facts);
  std::erase_if(missing, [&](const auto& entry) { return healthy.contains(entry.first); });
  for (const PlacedDevice& device : last) {
    if (!healthy.contains(device.resource)) missing.try_emplace(device.resource, now);
  }
}

std::vector<PlacedDevice> StillCounted(const std::vector<PlacedDevice>& last,
                                       const placement::Facts& facts,
                                       const std::optional<Capacity>& capacity,
                                       const MissingSince& missing, base::Instant now) {
  const bool answered = facts.assignments.ok() && facts.assignments->allocatable;
  const auto counted = [&](const std::string& resource) -> std::optional<std::int64_t> {
    if (!capacity || !answered) return std::nullopt;
    const auto named = capacity->find(resource);
    return named == capacity->end() ? 0 : named->second;
  };
  std::map<std::string, std::int64_t> healthy = HealthyOf(facts);
  std::vector<PlacedDevice> kept;
  for (const PlacedDevice& device : last) {
    if (!IsExtendedResource(device.resource)) continue;
    if (const std::optional<std::int64_t> count = counted(device.resource)) {
      if (*count <= healthy[device.resource]) continue;
    } else if (!facts.state.devices) {
      const auto since = missing.find(device.resource);
      if (since != missing.end() && now - since->second >= kSettlingEnds) continue;
    }
    kept.push_back(device);
  }
  return kept;
}

}  // namespace agent
