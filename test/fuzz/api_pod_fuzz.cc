// Any bytes as a pod of the API server: an error, or values; and the kubelet's list stands the
// corrections that such a pod brings.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>

#include "agent/node_pods.h"
#include "placement/api_pods.h"

namespace {

void Check(bool holds) {
  if (!holds) std::abort();
}

podresources::Assignments Listed() {
  podresources::Assignments listed;
  podresources::Pod& pod = listed.pods.emplace_back();
  pod.namespace_name = "ml";
  pod.name = "llm-0";
  pod.containers.emplace_back().name = "main";
  pod.containers.back().cpus = *base::CpuSet::Parse("4-7");
  return listed;
}

podresources::KubeletState StateOf(const std::string& uid) {
  podresources::KubeletState state;
  state.cpu.emplace().entries[uid]["main"] = *base::CpuSet::Parse("4-7");
  return state;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(data, data + size);
  const absl::StatusOr<placement::ApiPod> pod =
      agent::ReadApiPod({.namespace_name = "ml", .name = "llm-0", .uid = "uid", .json = text});
  if (!pod.ok()) return 0;
  Check(!pod->state_uid().empty() && !pod->containers.contains(""));
  // Of an ended pod nothing stays; no other is ever taken out, nor what its state file has.
  const std::optional<podresources::Assignments> corrected =
      placement::Correct(Listed(), StateOf(pod->state_uid()), {*pod});
  const bool ended = pod->phase == "Succeeded" || pod->phase == "Failed";
  Check(corrected.has_value() == ended);
  Check(!corrected || corrected->pods.empty());
  return 0;
}
