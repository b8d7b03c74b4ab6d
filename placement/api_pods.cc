#include "placement/api_pods.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "placement/join.h"
#include "podresources/settle.h"

namespace placement {
namespace {

using podresources::Assignments;
using podresources::KubeletState;
using podresources::Pod;

std::string SubjectOf(const Pod& pod) {
  return fmt::format("pod {}/{}", pod.namespace_name, pod.name);
}

base::CpuSet ExclusiveCpus(const KubeletState& state) {
  base::CpuSet cpus;
  if (!state.cpu) return cpus;
  for (const auto& [uid, containers] : state.cpu->entries) {
    for (const auto& [name, of_container] : containers) cpus |= of_container;
  }
  for (const auto& [uid, of_pod] : state.cpu->pod_entries) cpus |= of_pod;
  return cpus;
}

bool HasEnded(const ApiPod& pod) { return pod.phase == "Succeeded" || pod.phase == "Failed"; }

class Corrector {
 public:
  Corrector(const Assignments& listed, const KubeletState& state, const std::vector<ApiPod>& pods)
      : state_(state), pods_(pods), exclusive_(ExclusiveCpus(state)), corrected_(listed) {
    for (const ApiPod& pod : pods) told_.insert(pod.state_uid());
  }

  std::optional<Assignments> Run() && {
    TakeOutEnded();
    for (Pod& pod : corrected_.pods) TakeSharedCpus(pod);
    if (!changed_) return std::nullopt;
    std::erase_if(corrected_.diagnostics,
                  [](const base::Diagnostic& found) { return found.code == "HeldTwice"; });
    podresources::FindHeldTwice(corrected_);
    std::ranges::sort(corrected_.diagnostics);
    return std::move(corrected_);
  }

 private:
  void Note(const char* code, const Pod& pod, std::string message) {
    changed_ = true;
    corrected_.diagnostics.push_back(
        {.code = code, .subject = SubjectOf(pod), .message = std::move(message)});
  }

  void TakeOutEnded() {
    std::vector<Pod> living;
    for (Pod& pod : corrected_.pods) {
      const ApiPod* known = FindApiPod(pods_, pod);
      if (known == nullptr || !HasEnded(*known) || IsOfAnUntoldPod(pod)) {
        living.push_back(std::move(pod));
        continue;
      }
      Note("EndedPodListed", pod,
           fmt::format("The kubelet still lists the pod, which has ended ({}): it holds nothing.",
                       known->phase));
    }
    corrected_.pods = std::move(living);
  }

  bool IsOfAnUntoldPod(const Pod& pod) const {
    return std::ranges::any_of(UidsWithEntries(state_), [&](const std::string& uid) {
      return !told_.contains(uid) && HasEntriesOf(state_, uid, pod);
    });
  }

  void TakeSharedCpus(Pod& pod) {
    const ApiPod* known = FindApiPod(pods_, pod);
    if (known == nullptr || known->qos_class.empty() || known->qos_class == "Guaranteed") return;
    base::CpuSet taken = TakeShared(pod.cpus);
    for (podresources::Container& container : pod.containers) taken |= TakeShared(container.cpus);
    if (taken.empty()) return;
    Note("SharedPoolListed", pod,
         fmt::format("CPUs {} are listed for the pod, which is {}: the shared pool, not taken as "
                     "exclusive.",
                     taken.ToString(), known->qos_class));
  }

  base::CpuSet TakeShared(base::CpuSet& cpus) const {
    if (!(cpus & exclusive_).empty()) return {};
    return std::exchange(cpus, {});
  }

  const KubeletState& state_;
  const std::vector<ApiPod>& pods_;
  const base::CpuSet exclusive_;
  std::set<std::string> told_;
  Assignments corrected_;
  bool changed_ = false;
};

}  // namespace

const ApiPod* FindApiPod(const std::vector<ApiPod>& pods, const Pod& listed) {
  const auto found = std::ranges::find_if(pods, [&](const ApiPod& pod) {
    return pod.name == listed.name && pod.namespace_name == listed.namespace_name;
  });
  return found == pods.end() ? nullptr : &*found;
}

std::optional<Assignments> Correct(const Assignments& listed, const KubeletState& state,
                                   const std::vector<ApiPod>& pods) {
  return Corrector(listed, state, pods).Run();
}

}  // namespace placement
