#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

#include "agent/content.h"
#include "agent/health.h"
#include "agent/metrics.h"
#include "agent/notice.h"
#include "agent/pace.h"
#include "agent/publisher.h"
#include "agent/reader.h"
#include "agent/settling.h"
#include "base/clock.h"
#include "placement/observation.h"

namespace agent {

struct LoopOptions {
  std::chrono::milliseconds poll_interval{1000};
  // Node.status.capacity; nullopt: not known. Asked at each look.
  std::function<std::optional<Capacity>()> capacity = [] { return std::nullopt; };
  // Evenly from [0, 1), must be given: agents that failed together shall not try again together.
  std::function<double()> random = nullptr;
};

// The agent's one thread: notice, observe, compare, publish.
//
// What is published is the last good observation with the conditions of now. An observation is good
// if the kubelet answered, its files stood still meanwhile and were not half of a change, and it
// listed the pods that run here (a kubelet that has just started lists none; settling.h). As long
// as a later one is not, the last good one stays, with its own time, and conditions say why. A
// passing trouble is no news: conditions tell of it after a second. What then?
//   no answer        stays so until there is one
//   files changing   after that second the observation is published all the same, marked
//   pods unlisted    after five minutes the kubelet is believed, but not while publishing fails: it
//                    may be cut off from the API server as well, and not know its pods
// Where there was never a good one, the first publication says so at once: it has no time and no
// NodeResourceTopology. What a former process published is the first good one, so that pods and
// devices that it knew are not forgotten. Until it is known whether there is such a thing, the node
// is observed and counted, and nothing is published.
//
// What differs from what was published is published at once, with a new revision if the content of
// NodePlacement is another one. While the last observation was accepted and nothing of it waits to
// be written, what is published is current (Health). Resident memory alone is no content; it is
// written once a minute at most. What could not be published is tried again after 0.2 s, twice as
// long each time up to 30 s, each time give or take half, and not before the API server has said
// (Retry-After); it is the newest content that is tried.
class Loop {
 public:
  static constexpr std::chrono::seconds kTroubleIsNews{1};
  static constexpr std::chrono::seconds kHurryEnds{10};
  static constexpr std::chrono::minutes kResidentInterval{1};
  static constexpr std::chrono::milliseconds kFirstRetry{200};
  static constexpr std::chrono::milliseconds kLongestRetry{30'000};

  // The reader has been started. All of them outlive the loop.
  Loop(Reader& reader, Publisher& publisher, base::Clock& clock, Metrics& metrics, Health& health,
       LoopOptions options);

  // One pass. Returns when the next is due, unless there are hints before. `hints_complete`: every
  // place where changes show is watched.
  base::Instant Step(const Hints& hints, bool hints_complete);

 private:
  enum class Trouble { kNone, kNoAnswer, kFilesChanging, kPodsUnlisted };
  using Observed = std::shared_ptr<const placement::Observation>;

  void LearnFormer();
  // Observe.
  void LookAgain();
  void Judge();
  void NoticeRestart();
  placement::Observation Account();
  Trouble FindTrouble(const placement::Observation& fresh) const;
  void NoteTrouble(Trouble trouble);
  static const char* NameOf(Trouble trouble);
  void Accept(placement::Observation fresh);
  void Keep(const placement::Observation& fresh);
  placement::Observation WithoutData() const;
  base::Instant WhenTimeTells() const;
  // Compare.
  void Want(placement::Observation observation);
  // Publish.
  bool IsDue() const { return knows_former_ && now_ >= DueAt(); }
  base::Instant DueAt() const;
  void Publish();
  bool IsCurrent() const;
  const placement::NodePlacement* LastPublished() const;
  void Failed(const char* event, const absl::Status& failure);

  Reader& reader_;
  Publisher& publisher_;
  base::Clock& clock_;
  Metrics& metrics_;
  Health& health_;
  const LoopOptions options_;
  Pace pace_;
  base::Instant now_;

  Hints hints_;                                     // not followed yet
  bool knows_former_ = false;                       // what a former process published:
  std::optional<placement::NodePlacement> former_;  // nothing, or this
  bool judged_ = false;
  base::Instant judge_at_ = base::Instant::max();  // when time alone changes the judgement
  std::optional<Capacity> capacity_;

  Observed good_;                          // the last good one
  std::set<std::string> expected_;         // pods of it
  MissingSince missing_;                   // devices
  std::optional<KubeletRun> settled_run_;  // of the kubelet that listed all its pods
  std::optional<KubeletRun> new_run_;      // another one, and since when it is there
  base::Instant new_run_since_;
  Trouble trouble_ = Trouble::kNone;
  bool accepted_ = false;  // what was judged last; a passing trouble is not judged
  base::Instant trouble_since_;

  Observed found_;   // what is to be published, but for the publisher's own conditions
  Observed wanted_;  // with them
  std::vector<placement::Condition> publisher_conditions_;
  Observed published_;
  Difference difference_;  // between the two
  Objects in_doubt_;  // tried since then and failed: what the API server has of it is not known
  std::int64_t revision_ = 0;
  base::Instant published_at_;
  base::Instant retry_at_ = base::Instant::min();
  int failures_ = 0;  // of publishing, in a row
};

// Steps, and waits for hints in between, until told to stop.
void Run(Loop& loop, const Reader& reader, Notice& notice, const std::stop_token& stop);

}  // namespace agent
