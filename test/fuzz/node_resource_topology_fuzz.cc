#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "placement/decode.h"
#include "placement/encode.h"
#include "scheduler/admission/admit.h"
#include "scheduler/admission/coarse.h"

namespace {

constexpr int kMostNumaNodes = 8;  // best-effort looks at all sets of them

// A Guaranteed pod of one container.
scheduler::admission::Request Example() {
  kube::Pod pod;
  pod.containers.emplace_back().limits = {
      {"cpu", 4000}, {"memory", 1 << 30}, {"nvidia.com/gpu", 2}};
  kube::ApplyDefaults(pod);
  pod.qos = kube::ComputeQos(pod);
  return scheduler::admission::MakeRequest(pod);
}

}  // namespace

// What can be read can be written, and then reads as the same again. A state that comes of it can
// be asked.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(data, data + size);
  const absl::StatusOr<placement::NodeResourceTopology> read =
      placement::ParseNodeResourceTopology(text);
  if (!read.ok()) return 0;
  const absl::StatusOr<placement::NodeResourceTopology> again =
      placement::ParseNodeResourceTopology(placement::ToJson(*read));
  if (!again.ok() || !(*again == *read)) std::abort();
  placement::ToYaml(*read);
  const kube::Resources allocatable = {{"cpu", 8000}, {"nvidia.com/gpu", 4}};
  const absl::StatusOr<scheduler::admission::CoarseState> coarse =
      scheduler::admission::CoarseStateFrom(*read,
                                            {.allocatable = allocatable, .kubelet_version = {}});
  if (!coarse.ok() || coarse->state.machine->numa_count() > kMostNumaNodes) return 0;
  scheduler::admission::Admit(coarse->state, Example());
  return 0;
}
