#include "agent/annotation_plan.h"

namespace agent {

void AnnotationPlan::Hold(const std::vector<KaiPlacement>& placements) {
  held_.emplace();
  for (const KaiPlacement& placement : placements) {
    (*held_)[{placement.namespace_name, placement.name}] = placement;
  }
}

void AnnotationPlan::Seen(const AnnotatedPod& pod) {
  Pod& known = pods_[{pod.namespace_name, pod.name}];
  if (known.seen.uid != pod.uid) known = {};
  if (pod.version > known.seen.version) known.seen = pod;  // else it was said before we wrote
}

void AnnotationPlan::Gone(const std::string& namespace_name, const std::string& name) {
  pods_.erase({namespace_name, name});
}

std::optional<AnnotatedPod> AnnotationPlan::Next(base::Instant now) const {
  for (const auto& [key, pod] : pods_) {
    const std::optional<std::string> wanted = Wanted(key, pod);
    if (!wanted || *wanted == pod.seen.value || now < pod.refused_until) continue;
    if (pod.written == wanted && !pod.rewrites.MayRewrite(now)) continue;
    AnnotatedPod next = pod.seen;
    next.value = *wanted;
    return next;
  }
  return std::nullopt;
}

std::optional<std::string> AnnotationPlan::Wanted(const Key& key, const Pod& pod) const {
  if (!held_) return std::nullopt;
  const auto holder = held_->find(key);
  if (holder == held_->end()) return "";
  if (holder->second.uid.empty()) return std::nullopt;
  return holder->second.uid == pod.seen.uid ? holder->second.value : "";
}

void AnnotationPlan::Written(const AnnotatedPod& pod, base::Instant now) {
  Pod* known = Find(pod);
  if (known == nullptr) return;
  if (known->written == pod.value) known->rewrites.Rewritten(now);
  known->written = pod.value;
  if (pod.version > known->seen.version) known->seen = pod;
}

void AnnotationPlan::Refused(const AnnotatedPod& pod, base::Instant now) {
  if (Pod* known = Find(pod)) known->refused_until = now + kRetry;
}

AnnotationPlan::Pod* AnnotationPlan::Find(const AnnotatedPod& pod) {
  const auto found = pods_.find({pod.namespace_name, pod.name});
  if (found == pods_.end() || found->second.seen.uid != pod.uid) return nullptr;
  return &found->second;
}

}  // namespace agent
