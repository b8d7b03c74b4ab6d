#include "agent/loop.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/retry_after.h"
#include "base/text_layout.h"

namespace agent {
namespace {

using placement::Condition;
using placement::Observation;
using std::chrono::duration;
using std::chrono::milliseconds;

constexpr char kReachable[] = "PodResourcesReachable";

// Conditions have each type once.
void SetCondition(Condition condition, std::vector<Condition>& conditions) {
  const auto found = std::ranges::find(conditions, condition.type, &Condition::type);
  if (found == conditions.end()) return conditions.push_back(std::move(condition));
  *found = std::move(condition);
}

Condition PodsUnlisted() {
  return {"Settled", "False", "KubeletStarting",
          "The kubelet has started and does not list all pods that run here yet: what it held for "
          "them before is shown."};
}

double Seconds(base::Instant from, base::Instant to) { return duration<double>(to - from).count(); }

}  // namespace

Loop::Loop(Reader& reader, Publisher& publisher, base::Clock& clock, Metrics& metrics,
           Health& health, LoopOptions options)
    : reader_(reader),
      publisher_(publisher),
      clock_(clock),
      metrics_(metrics),
      health_(health),
      options_(std::move(options)),
      pace_(options_.poll_interval) {
  pace_.Asked(clock_.Steady());  // by the reader's start
}

base::Instant Loop::Step(const Hints& hints, bool hints_complete) {
  now_ = clock_.Steady();
  hints_ |= hints;
  if (hints.any()) pace_.Hinted(now_);
  if (hints.lost) metrics_.LostHints();
  if (!hints_complete) pace_.HintsAreMissing();
  const bool poll = now_ >= pace_.NextPoll();
  if (!knows_former_ && now_ >= retry_at_) LearnFormer();
  if (!judged_) {
    hints_ = {};
    Judge();  // what the reader's start has found
  } else if ((hints_.any() || poll) && now_ >= pace_.Earliest()) {
    LookAgain();
  }
  if (trouble_ == Trouble::kNone) metrics_.GoodAt(reader_.facts().observed_at);
  if (found_ != nullptr && publisher_.Conditions() != publisher_conditions_) Want(*found_);
  if (IsDue()) Publish();
  now_ = clock_.Steady();
  health_.Stepped(now_);
  health_.SetCurrent(IsCurrent());
  base::Instant next_look = pace_.Earliest();
  if (!hints_.any()) next_look = std::max(next_look, pace_.NextPoll());
  return std::min({next_look, DueAt(), now_ + Health::kHeartbeat});
}

// What this process has seen itself meanwhile counts more. But a kubelet that is new may not have
// listed pods that the former knew.
void Loop::LearnFormer() {
  const base::Instant begin = now_;
  auto former = publisher_.Former();
  now_ = clock_.Steady();
  if (!former.ok()) {
    metrics_.Published(former.status(), Seconds(begin, now_));
    return Failed("published_unknown", former.status());
  }
  knows_former_ = true;
  failures_ = 0;
  former_ = *std::move(former);
  if (!former_) return;
  revision_ = former_->revision;
  wanted_.reset();
  if (former_->observed_at) {
    expected_.merge(PodsOf(*former_));
    settled_run_.reset();
    if (good_ == nullptr) {
      good_ = std::make_shared<const Observation>(
          Observation{.placement = *former_, .nrt = std::nullopt, .diagnostics = {}});
    }
  }
  if (judged_) Judge();
}

// Observe.

void Loop::LookAgain() {
  const Hints hints = std::exchange(hints_, {});
  const Look look = reader_.Again(hints);
  const base::Instant end = clock_.Steady();
  pace_.Asked(end);
  metrics_.Asked(reader_.facts().assignments.status(), Seconds(now_, end));
  if (!hints.any() && trouble_ == Trouble::kNone) pace_.Polled(look.kubelet_changed);
  now_ = end;
  if (look.changed || now_ >= judge_at_ || capacity_ != options_.capacity()) Judge();
}

void Loop::Judge() {
  judged_ = true;
  NoticeRestart();
  Observation fresh = Account();
  NoteTrouble(FindTrouble(fresh));
  const bool news = now_ - trouble_since_ >= kTroubleIsNews;
  if (trouble_ == Trouble::kNone || (trouble_ == Trouble::kFilesChanging && news)) {
    Accept(std::move(fresh));
    accepted_ = true;
  } else if (trouble_ != Trouble::kFilesChanging && (news || good_ == nullptr)) {
    Keep(fresh);
    accepted_ = false;
  }
  pace_.Hurry(trouble_ != Trouble::kNone && now_ - trouble_since_ < kHurryEnds);
  judge_at_ = WhenTimeTells();
}

void Loop::NoteTrouble(Trouble trouble) {
  if (trouble == trouble_) return;
  spdlog::info("event=judged trouble={} before={}", NameOf(trouble), NameOf(trouble_));
  if (trouble_ == Trouble::kNone) trouble_since_ = now_;
  trouble_ = trouble;
}

const char* Loop::NameOf(Trouble trouble) {
  switch (trouble) {
    case Trouble::kNone:
      return "none";
    case Trouble::kNoAnswer:
      return "no_answer";
    case Trouble::kFilesChanging:
      return "files_changing";
    case Trouble::kPodsUnlisted:
      return "pods_unlisted";
  }
  return "";
}

// At the first look nobody knows whether the kubelet has settled: it has, if it is old enough.
void Loop::NoticeRestart() {
  if (!reader_.facts().assignments.ok()) return;
  const KubeletRun& run = reader_.run();
  if (settled_run_ == run || new_run_ == run) return;
  if (!settled_run_ && !new_run_ && reader_.KubeletAge().value_or(kSettlingEnds) >= kSettlingEnds) {
    settled_run_ = run;
    return;
  }
  new_run_ = run;
  new_run_since_ = now_;
}

Observation Loop::Account() {
  placement::Facts& facts = reader_.facts();
  capacity_ = options_.capacity();
  facts.known_devices.clear();
  if (good_ != nullptr) {
    const auto& last = good_->placement.devices;
    NoteMissing(last, facts, now_, missing_);
    facts.known_devices = StillCounted(last, facts, capacity_, missing_, now_);
  }
  return placement::Observe(facts);
}

Loop::Trouble Loop::FindTrouble(const Observation& fresh) const {
  const placement::Facts& facts = reader_.facts();
  if (!facts.assignments.ok()) return Trouble::kNoAnswer;
  const bool believed = now_ - new_run_since_ >= kSettlingEnds && failures_ == 0;
  if (new_run_ && !believed) {
    const bool same_boot = good_ == nullptr || good_->placement.boot_id == facts.topology.boot_id;
    const std::set<std::string> expected = good_ == nullptr ? PodsOf(facts.state) : expected_;
    if (!UnlistedPods(expected, facts, fresh.placement, same_boot).empty()) {
      return Trouble::kPodsUnlisted;
    }
  }
  return facts.settled ? Trouble::kNone : Trouble::kFilesChanging;
}

void Loop::Accept(Observation fresh) {
  settled_run_ = reader_.run();
  new_run_.reset();
  expected_ = PodsOf(fresh.placement);
  good_ = std::make_shared<const Observation>(std::move(fresh));
  metrics_.Observed(good_);
  Want(*good_);
}

void Loop::Keep(const Observation& fresh) {
  Observation kept = good_ != nullptr ? *good_ : WithoutData();
  kept.placement.agent_version = fresh.placement.agent_version;
  std::vector<Condition>& conditions = kept.placement.conditions;
  for (const Condition& condition : fresh.placement.conditions) {
    if (condition.type == kReachable) SetCondition(condition, conditions);
  }
  if (trouble_ == Trouble::kPodsUnlisted) SetCondition(PodsUnlisted(), conditions);
  Want(std::move(kept));
}

// What is known without the kubelet's answer.
Observation Loop::WithoutData() const {
  placement::Facts facts = reader_.facts();
  if (facts.assignments.ok()) facts.assignments = absl::UnavailableError(PodsUnlisted().message);
  return placement::Observe(facts);
}

base::Instant Loop::WhenTimeTells() const {
  base::Instant first = base::Instant::max();
  const auto at = [&](base::Instant when) {
    if (when > now_) first = std::min(first, when);
  };
  if (trouble_ != Trouble::kNone) at(trouble_since_ + kTroubleIsNews);
  if (trouble_ != Trouble::kNone) at(trouble_since_ + kHurryEnds);
  if (trouble_ == Trouble::kPodsUnlisted) {
    at(std::max(new_run_since_ + kSettlingEnds, now_ + kTroubleIsNews));
  }
  for (const auto& [resource, since] : missing_) at(since + kSettlingEnds);
  return first;
}

// Compare.

void Loop::Want(Observation observation) {
  found_ = std::make_shared<const Observation>(observation);
  publisher_conditions_ = publisher_.Conditions();
  for (const Condition& condition : publisher_conditions_) {
    SetCondition(condition, observation.placement.conditions);
  }
  std::ranges::sort(observation.placement.conditions, {}, &Condition::type);
  metrics_.Holds(observation.placement.conditions);
  Difference change;
  if (wanted_ != nullptr) {
    change = Compare(*wanted_, observation);
  } else {
    change.placement = true;
    if (former_) change = Compare({*former_, observation.nrt, {}}, observation);
    change.nrt = true;
  }
  if (!change.content() && !change.resident) return;
  if (change.placement) ++revision_;
  observation.placement.revision = revision_;
  wanted_ = std::make_shared<const Observation>(std::move(observation));
  if (published_ != nullptr) difference_ = Compare(*published_, *wanted_);
}

// Publish.

base::Instant Loop::DueAt() const {
  if (!knows_former_) return retry_at_;
  if (wanted_ == nullptr) return base::Instant::max();
  if (published_ == nullptr || difference_.content() || in_doubt_.any()) return retry_at_;
  if (publisher_.Stale().any()) return retry_at_;
  if (!difference_.resident) return base::Instant::max();
  return std::max(retry_at_, published_at_ + kResidentInterval);
}

void Loop::Publish() {
  const base::Instant begin = clock_.Steady();
  const bool first = published_ == nullptr;
  Objects changed = {.nrt = first || difference_.nrt,
                     .placement = first || difference_.placement || difference_.resident};
  changed |= publisher_.Stale();
  changed |= in_doubt_;
  const absl::Status status =
      publisher_.Publish({.content = *wanted_, .changed = changed, .before = LastPublished()});
  now_ = clock_.Steady();
  metrics_.Published(status, Seconds(begin, now_));
  if (!status.ok()) {
    in_doubt_ = changed;
    return Failed("publish_failed", status);
  }
  spdlog::info("event=published revision={}", wanted_->placement.revision);
  health_.Published();
  published_ = wanted_;
  difference_ = {};
  in_doubt_ = {};
  published_at_ = now_;
  failures_ = 0;
  retry_at_ = base::Instant::min();
}

bool Loop::IsCurrent() const {
  return accepted_ && published_ != nullptr && !difference_.content() && !in_doubt_.any();
}

const placement::NodePlacement* Loop::LastPublished() const {
  if (published_ != nullptr) return &published_->placement;
  return former_ ? &*former_ : nullptr;
}

void Loop::Failed(const char* event, const absl::Status& failure) {
  if (failures_ == 0) {
    spdlog::warn("event={} error={}", event, base::OneLine(std::string(failure.message())));
  }
  milliseconds pause = kFirstRetry;
  for (int i = 0; i < failures_ && pause < kLongestRetry; ++i) pause *= 2;
  pause = std::min(pause, kLongestRetry);
  ++failures_;
  const double factor = 0.5 + options_.random();
  const milliseconds asked = base::RetryAfter(failure).value_or(milliseconds(0));
  retry_at_ = now_ + std::max(std::chrono::duration_cast<milliseconds>(pause * factor),
                              std::min(asked, kLongestRetry));
}

void Run(Loop& loop, const Reader& reader, Notice& notice, const std::stop_token& stop) {
  notice.Watch(reader.places());
  Hints hints;
  while (!stop.stop_requested()) {
    const base::Instant next = loop.Step(hints, notice.Complete());
    notice.Watch(reader.places());
    hints = notice.Wait(next, stop);
  }
}

}  // namespace agent
