#include "placement/join.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

namespace placement {
namespace {

using podresources::Container;
using podresources::KubeletState;
using podresources::MemoryBlock;
using podresources::Pod;

template <class T>
const std::map<std::string, T>* EntriesOf(const podresources::ByPodAndContainer<T>& entries,
                                          const std::string& uid) {
  const auto found = entries.find(uid);
  return found == entries.end() ? nullptr : &found->second;
}

template <class T>
T EntryOf(const std::map<std::string, T>* containers, const std::string& name) {
  if (containers == nullptr) return {};
  const auto found = containers->find(name);
  return found == containers->end() ? T{} : found->second;
}

template <class T>
T PodEntryOf(const std::map<std::string, T>& pod_entries, const std::string& uid) {
  const auto found = pod_entries.find(uid);
  return found == pod_entries.end() ? T{} : found->second;
}

// Blocks that were emptied for re-use stay in the state with size 0 and hold nothing.
std::vector<MemoryBlock> NonEmpty(std::vector<MemoryBlock> blocks) {
  std::erase_if(blocks, [](const MemoryBlock& block) { return block.bytes <= 0; });
  std::ranges::sort(blocks);
  return blocks;
}

std::set<std::pair<std::string, std::string>> IdsOf(
    const std::vector<podresources::Device>& devices) {
  std::set<std::pair<std::string, std::string>> ids;
  for (const podresources::Device& device : devices) ids.emplace(device.resource, device.id);
  return ids;
}

bool HoldsAnything(const Pod& pod) {
  if (!pod.cpus.empty() || !NonEmpty(pod.memory).empty()) return true;
  return std::ranges::any_of(pod.containers, [](const Container& container) {
    return !container.cpus.empty() || !NonEmpty(container.memory).empty() ||
           !container.devices.empty();
  });
}

enum class Match { kDiffers, kNothingSaid, kEqual };

// A container that lives on what its pod has as a whole is listed with nothing; the state files
// give it all of the pod's that no other container has for itself.
bool Agrees(const base::CpuSet& listed, const base::CpuSet& entry, const base::CpuSet& pods) {
  return listed == entry || (listed.empty() && (entry - pods).empty());
}
bool Agrees(const std::vector<MemoryBlock>& listed, const std::vector<MemoryBlock>& entry,
            const std::vector<MemoryBlock>& pods) {
  const auto is_part = [&](const MemoryBlock& part) {
    return std::ranges::any_of(pods, [&](const MemoryBlock& whole) {
      return whole.type == part.type && whole.numa_nodes == part.numa_nodes &&
             part.bytes <= whole.bytes;
    });
  };
  return listed == entry || (listed.empty() && std::ranges::all_of(entry, is_part));
}

// What the state files' entries for `uid` say about the pod's holdings.
Match Compare(const Pod& pod, const KubeletState& state, const std::string& uid) {
  const std::vector<MemoryBlock> pods_memory = NonEmpty(pod.memory);
  if (state.cpu && PodEntryOf(state.cpu->pod_entries, uid) != pod.cpus) return Match::kDiffers;
  if (state.memory && NonEmpty(PodEntryOf(state.memory->pod_entries, uid)) != pods_memory) {
    return Match::kDiffers;
  }
  bool proven = (state.cpu && !pod.cpus.empty()) || (state.memory && !pods_memory.empty());
  const auto* cpus = state.cpu ? EntriesOf(state.cpu->entries, uid) : nullptr;
  const auto* memory = state.memory ? EntriesOf(state.memory->entries, uid) : nullptr;
  const auto* devices = state.devices ? EntriesOf(state.devices->entries, uid) : nullptr;
  for (const Container& container : pod.containers) {
    const std::vector<MemoryBlock> blocks = NonEmpty(container.memory);
    if (state.cpu && !Agrees(container.cpus, EntryOf(cpus, container.name), pod.cpus)) {
      return Match::kDiffers;
    }
    if (state.memory && !Agrees(blocks, NonEmpty(EntryOf(memory, container.name)), pods_memory)) {
      return Match::kDiffers;
    }
    if (state.devices && IdsOf(EntryOf(devices, container.name)) != IdsOf(container.devices)) {
      return Match::kDiffers;
    }
    proven |= (state.cpu && !container.cpus.empty()) || (state.memory && !blocks.empty()) ||
              (state.devices && !container.devices.empty());
  }
  return proven ? Match::kEqual : Match::kNothingSaid;
}

// The kubelet names static pods by a hash of their file: 32 hex digits instead of a UUID.
bool IsStaticPodUid(const std::string& uid) {
  return uid.size() == 32 && uid.find_first_not_of("0123456789abcdef") == std::string::npos;
}

class Joiner {
 public:
  Joiner(const KubeletState& state, const std::vector<ApiPod>* api_pods)
      : state_(state), api_pods_(api_pods), with_entries_(UidsWithEntries(state)) {
    if (!state.pod_logs) return;
    for (const podresources::PodLogFolder& folder : *state.pod_logs) {
      folders_[{folder.namespace_name, folder.name}].insert(folder.uid);
    }
  }

  void Join(const Pod& pod) {
    JoinedPod joined{.pod = &pod, .uid = "", .kubelet_uid = ""};
    if (const ApiPod* known = FindKnown(pod)) {
      joined.uid = known->uid;
      joined.kubelet_uid = known->kubelet_uid;
    } else {
      const std::string uid = TellUid(pod);
      (IsStaticPodUid(uid) ? joined.kubelet_uid : joined.uid) = uid;
    }
    if (!joined.state_uid().empty()) result_.active.insert(joined.state_uid());
    result_.pods.push_back(std::move(joined));
  }

  Joined Finish() && {
    const auto unknown = std::ranges::count_if(
        result_.pods, [](const JoinedPod& pod) { return pod.state_uid().empty(); });
    if (!state_.pod_logs && unknown > 0) {
      result_.diagnostics.push_back(
          {.code = "PodUidsUnknown",
           .subject = "",
           .message = fmt::format("The folder of pod logs cannot be read, so the UIDs of {} pods "
                                  "are not known.",
                                  unknown)});
    }
    return std::move(result_);
  }

 private:
  const ApiPod* FindKnown(const Pod& pod) const {
    const ApiPod* known = api_pods_ == nullptr ? nullptr : FindApiPod(*api_pods_, pod);
    if (known == nullptr || Compare(pod, state_, known->state_uid()) == Match::kDiffers) {
      return nullptr;
    }
    return known;
  }

  std::string TellUid(const Pod& pod) {
    const auto found = folders_.find({pod.namespace_name, pod.name});
    const std::set<std::string> uids =
        found == folders_.end() ? std::set<std::string>() : found->second;
    const bool holds = HoldsAnything(pod);
    std::vector<std::string> fitting;
    for (const std::string& uid : uids) {
      const Match match = Compare(pod, state_, uid);
      const bool fits = match == Match::kEqual || (!holds && match == Match::kNothingSaid);
      if (fits && !result_.active.contains(uid)) fitting.push_back(uid);
    }
    // Of several folders of a pod that holds nothing, none is proven to be the living one.
    if (fitting.size() == 1 && (holds || uids.size() == 1)) return fitting.front();
    if (holds) ActivateByContent(pod);
    if (state_.pod_logs) Explain(pod, uids.size(), holds);
    return "";
  }

  void ActivateByContent(const Pod& pod) {
    for (const std::string& uid : with_entries_) {
      if (Compare(pod, state_, uid) == Match::kEqual) result_.active.insert(uid);
    }
  }

  void Explain(const Pod& pod, std::size_t folders, bool holds) {
    std::string why = "its log folder is missing";
    if (folders > 0 && holds) {
      why = "the kubelet's state files do not have what it holds under a UID of its name";
    } else if (folders > 1) {
      why = fmt::format("{} log folders have its name and it holds nothing to tell them apart",
                        folders);
    } else if (folders == 1) {
      why = "the state files have entries under the UID of its name, but it holds nothing";
    }
    result_.diagnostics.push_back(
        {.code = "PodUidUnknown",
         .subject = fmt::format("pod {}/{}", pod.namespace_name, pod.name),
         .message = fmt::format("The pod's UID is not known: {}.", why)});
  }

  const KubeletState& state_;
  const std::vector<ApiPod>* const api_pods_;  // nullptr: not known
  const std::set<std::string> with_entries_;
  std::map<std::pair<std::string, std::string>, std::set<std::string>> folders_;
  Joined result_;
};

}  // namespace

std::set<std::string> UidsWithEntries(const KubeletState& state) {
  std::set<std::string> uids;
  if (state.cpu) {
    for (const auto& [uid, entry] : state.cpu->entries) uids.insert(uid);
  }
  if (state.memory) {
    for (const auto& [uid, entry] : state.memory->entries) uids.insert(uid);
  }
  if (state.devices) {
    for (const auto& [uid, entry] : state.devices->entries) uids.insert(uid);
  }
  return uids;
}

bool HasEntriesOf(const KubeletState& state, const std::string& uid, const Pod& pod) {
  return Compare(pod, state, uid) == Match::kEqual;
}

Joined JoinPods(const podresources::Assignments& assignments, const KubeletState& state,
                const std::optional<std::vector<ApiPod>>& api_pods) {
  Joiner joiner(state, api_pods ? &*api_pods : nullptr);
  for (const Pod& pod : assignments.pods) joiner.Join(pod);
  return std::move(joiner).Finish();
}

}  // namespace placement
