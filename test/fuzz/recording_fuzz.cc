// A line of recorded admissions: it is read or refused in words, and what is read can be replayed,
// as the managers alone and as a running kubelet, with the same counts each time.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "cli/recording.h"
#include "cli/replay.h"

namespace {

cli::Agreement Count(const cli::Recording& recording, bool live) {
  cli::Agreement agreement;
  if (!cli::Replay(recording, {.live = live}, agreement).ok()) return {};
  return agreement;
}

void Check(const cli::Recording& recording, bool live) {
  const cli::Agreement agreement = Count(recording, live);
  const cli::Agreement again = Count(recording, live);
  if (agreement.events != again.events || agreement.differences != again.differences) std::abort();
  const int all = agreement.events + agreement.left_out + agreement.untold;
  if (all > static_cast<int>(recording.events.size())) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto recording = cli::ParseRecording(std::string(data, data + size));
  if (!recording.ok()) {
    if (recording.status().message().empty()) std::abort();
    return 0;
  }
  Check(*recording, false);
  Check(*recording, true);
  return 0;
}
