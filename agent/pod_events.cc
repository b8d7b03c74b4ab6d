#include "agent/pod_events.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <cstdint>
#include <string_view>
#include <utility>

#include "agent/api_access.h"
#include "base/text_layout.h"
#include "kube/json.h"

namespace agent {
namespace {

using kube::JsonQuote;
using placement::Alignment;
using placement::NodePlacement;
using placement::PlacedPod;

const kube::Resource kEvents = {"", "v1", "events"};
constexpr std::size_t kLongestName = 253;  // of an object

bool IsFinding(const PlacedPod& pod) {
  return pod.alignment == Alignment::kMisaligned || pod.alignment == Alignment::kDrifted;
}

// A pod is another one when it was made anew under its name, but not when its UID becomes known.
bool IsAnother(const std::string& uid, const std::string& before) {
  return !uid.empty() && !before.empty() && uid != before;
}

// FNV-1a: the same on every machine and in every release.
std::uint64_t Hash(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

// "llm-0.5f0c…": as the kubelet names its own.
std::string NameOf(const PlacedPod& pod) {
  const std::string suffix =
      fmt::format(".{:016x}", Hash(fmt::format("{}/{}/{}/{}", pod.uid, pod.name,
                                               placement::ToString(pod.alignment), pod.reason)));
  std::string name = pod.name.substr(0, kLongestName - suffix.size());
  while (name.ends_with('.') || name.ends_with('-')) name.pop_back();  // as names may not end
  return name + suffix;
}

}  // namespace

Findings FindingsOf(const NodePlacement& placement) {
  Findings findings;
  for (const PlacedPod& pod : placement.pods) {
    if (!IsFinding(pod)) continue;
    findings[{pod.namespace_name, pod.name, pod.alignment, pod.reason}] = pod.uid;
  }
  return findings;
}

std::vector<PlacedPod> NewFindings(const NodePlacement& now, const Findings& known) {
  std::vector<PlacedPod> found;
  for (const PlacedPod& pod : now.pods) {
    if (!IsFinding(pod)) continue;
    const auto before = known.find({pod.namespace_name, pod.name, pod.alignment, pod.reason});
    if (before == known.end() || IsAnother(pod.uid, before->second)) found.push_back(pod);
  }
  return found;
}

std::string EventJson(const PlacedPod& pod, const std::string& node_name, base::Time now) {
  const std::string space = JsonQuote(pod.namespace_name);
  const std::string node = JsonQuote(node_name);
  return fmt::format(
      R"({{"apiVersion":"v1","kind":"Event","metadata":{{"name":{},"namespace":{}}},)"
      R"("involvedObject":{{"apiVersion":"v1","kind":"Pod","namespace":{},"name":{}{}}},)"
      R"("type":"Warning","reason":{},"message":{},"count":1,"firstTimestamp":"{}",)"
      R"("lastTimestamp":"{}","source":{{"component":"{}","host":{}}},)"
      R"("reportingComponent":"{}","reportingInstance":{}}})",
      JsonQuote(NameOf(pod)), space, space, JsonQuote(pod.name),
      pod.uid.empty() ? "" : R"(,"uid":)" + JsonQuote(pod.uid), JsonQuote(pod.reason),
      JsonQuote(pod.message), base::FormatTime(now), base::FormatTime(now), kFieldManager, node,
      kFieldManager, node);
}

PodEvents::PodEvents(kube::Client& client, base::Clock& clock, Metrics& metrics,
                     std::string node_name)
    : client_(client),
      clock_(clock),
      metrics_(metrics),
      node_name_(std::move(node_name)),
      thread_([this](const std::stop_token& stop) { Run(stop); }) {}

void PodEvents::Tell(const Publication& publication) {
  const NodePlacement& now = publication.content.placement;
  if (!known_) known_ = publication.before ? FindingsOf(*publication.before) : Findings();
  for (const PlacedPod& pod : NewFindings(now, *known_)) Enqueue(pod);
  known_ = FindingsOf(now);
}

void PodEvents::Enqueue(const PlacedPod& pod) {
  const std::lock_guard lock(mutex_);
  if (waiting_.size() >= kMostWaiting) return metrics_.DroppedEvent();
  waiting_.push_back({pod.namespace_name, EventJson(pod, node_name_, clock_.Now())});
  changed_.notify_one();
}

void PodEvents::Run(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (changed_.wait(lock, stop, [this] { return !waiting_.empty(); }) &&
         !stop.stop_requested()) {
    const Event event = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    Create(event, stop);
    clock_.Wait(kPause, stop);
    lock.lock();
  }
}

// The client repeats what may be repeated; what fails then is dropped.
void PodEvents::Create(const Event& event, const std::stop_token& stop) {
  const absl::Status status =
      client_.Create(kEvents, event.namespace_name, event.json, stop).status();
  const bool told = status.ok() || absl::IsAlreadyExists(status);
  metrics_.Wrote("events", status.ok() ? "created" : told ? "unchanged" : ResultOf(status));
  if (!told) metrics_.DroppedEvent();
  const absl::StatusCode trouble = told ? absl::StatusCode::kOk : status.code();
  if (std::exchange(trouble_, trouble) == trouble || told) return;
  spdlog::warn("event=event_not_created error={}", base::OneLine(std::string(status.message())));
}

}  // namespace agent
