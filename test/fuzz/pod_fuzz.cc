// Any bytes as a pod and as a file of pods: an error or pods, and what is computed from them stays
// defined. The JSON of a document gives the same pods as the document.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "kube/read_pod.h"
#include "kube/yaml.h"
#include "scheduler/admission/node_sums.h"
#include "scheduler/admission/request.h"

namespace {

void Use(const kube::Pod& pod) {
  using namespace scheduler::admission;  // NOLINT(google-build-using-namespace)
  kube::ComputeQos(pod);
  kube::Effective(pod, &kube::Container::limits);
  MakeRequest(pod);
  kube::Resources enough = kube::Effective(pod, &kube::Container::requests);
  enough["pods"] = 1;
  NodeSums sums(enough);
  sums.Add(pod);
  sums.Check(pod);
  sums.Remove(pod);
  if (!sums.Check(pod).empty()) std::abort();  // it fits a node of its own size
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(data, data + size);
  if (const absl::StatusOr<kube::Pod> pod = kube::ParsePod(text); pod.ok()) Use(*pod);
  const absl::StatusOr<std::vector<kube::Pod>> pods = kube::ParsePods(text);
  if (!pods.ok()) return 0;
  for (const kube::Pod& pod : *pods) Use(pod);
  std::vector<kube::Pod> again;
  const auto documents = kube::YamlToJson(text);
  if (!documents.ok()) std::abort();
  for (const std::string& document : *documents) {
    const absl::StatusOr<std::vector<kube::Pod>> more = kube::ParsePods(document);
    if (!more.ok()) std::abort();
    again.insert(again.end(), more->begin(), more->end());
  }
  if (again != *pods) std::abort();
  return 0;
}
