#include "agent/kai_annotation.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <utility>

#include "agent/api_access.h"
#include "base/status_macros.h"
#include "base/text.h"
#include "base/text_layout.h"
#include "kube/json.h"

namespace agent {
namespace {

using kube::JsonObject;
using kube::WatchEvent;

const kube::Resource kPods = {"", "v1", "pods"};
// How often it is looked whether what had to wait is due.
constexpr std::chrono::seconds kLookAgain{10};

kube::WatchOptions OptionsFor(const std::string& node_name) {
  kube::WatchOptions options;
  options.selection = {
      .resource = kPods, .field_selector = "spec.nodeName=" + node_name, .metadata_only = true};
  options.refused_pause = KaiAnnotation::kNotWatchedFor;
  return options;
}

absl::StatusOr<AnnotatedPod> ReadPod(const kube::Object& object) {
  ASSIGN_OR_RETURN(const JsonObject root, JsonObject::Parse(object.json));
  ASSIGN_OR_RETURN(const JsonObject metadata, root.Object("metadata"));
  ASSIGN_OR_RETURN(const JsonObject annotations, metadata.Object("annotations"));
  ASSIGN_OR_RETURN(std::string value, annotations.Text(KaiAnnotation::kName));
  const auto version = base::ParseNumber<std::uint64_t>(object.resource_version);
  if (!version) return absl::InvalidArgumentError("metadata.resourceVersion: is no number");
  return AnnotatedPod{.namespace_name = object.namespace_name,
                      .name = object.name,
                      .uid = object.uid,
                      .version = *version,
                      .value = std::move(value)};
}

// With the UID: for a pod that was made anew under the name it is refused (422, immutable).
std::string PatchOf(const AnnotatedPod& pod) {
  return fmt::format(R"({{"metadata":{{"uid":{},"annotations":{{"{}":{}}}}}}})",
                     kube::JsonQuote(pod.uid), KaiAnnotation::kName,
                     pod.value.empty() ? "null" : kube::JsonQuote(pod.value));
}

}  // namespace

KaiAnnotation::KaiAnnotation(kube::Client& client, base::Clock& clock, Metrics& metrics,
                             const std::string& node_name)
    : client_(client),
      clock_(clock),
      metrics_(metrics),
      watch_(client, OptionsFor(node_name), [this](const WatchEvent& event) { Heard(event); }),
      thread_([this](const std::stop_token& stop) { Run(stop); }) {}

void KaiAnnotation::Tell(const Publication& publication) {
  if (!publication.content.nrt) return;
  const std::vector<KaiPlacement> placements =
      KaiPlacements(publication.content.placement, *publication.content.nrt);
  const std::lock_guard lock(mutex_);
  plan_.Hold(placements);
  news_ = true;
  changed_.notify_one();
}

void KaiAnnotation::Heard(const WatchEvent& event) {
  const std::lock_guard lock(mutex_);
  switch (event.kind) {
    case WatchEvent::Kind::kAdded:
    case WatchEvent::Kind::kModified:
      if (const absl::StatusOr<AnnotatedPod> pod = ReadPod(event.object); pod.ok()) {
        plan_.Seen(*pod);
      } else {
        spdlog::warn("event=pod_not_understood pod={}/{} error={}", event.object.namespace_name,
                     event.object.name, base::OneLine(std::string(pod.status().message())));
      }
      break;
    case WatchEvent::Kind::kDeleted:
      return plan_.Gone(event.object.namespace_name, event.object.name);
    case WatchEvent::Kind::kSynced:
      return;
    case WatchEvent::Kind::kLost:
      return spdlog::warn("event=watch_lost object=pods error={}", base::OneLine(event.reason));
  }
  news_ = true;
  changed_.notify_one();
}

void KaiAnnotation::Run(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    if (std::optional<AnnotatedPod> pod = Next()) {
      Annotate(*std::move(pod), stop);
      clock_.Wait(kPause, stop);
      continue;
    }
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, stop, kLookAgain, [this] { return std::exchange(news_, false); });
  }
}

std::optional<AnnotatedPod> KaiAnnotation::Next() {
  const std::lock_guard lock(mutex_);
  return plan_.Next(clock_.Steady());
}

void KaiAnnotation::Annotate(AnnotatedPod pod, const std::stop_token& stop) {
  const absl::StatusOr<kube::Object> reply = client_.MergePatch(
      {.resource = kPods, .namespace_name = pod.namespace_name, .name = pod.name}, PatchOf(pod),
      kFieldManager, stop);
  metrics_.Wrote("pods", reply.ok() ? "updated" : ResultOf(reply.status()));
  Log(reply.status());
  const absl::StatusOr<AnnotatedPod> now = reply.ok() ? ReadPod(*reply) : reply.status();
  const std::lock_guard lock(mutex_);
  if (!now.ok()) return plan_.Refused(pod, clock_.Steady());
  pod.version = now->version;
  plan_.Written(pod, clock_.Steady());
}

// A pod that is gone, or another by now, is no trouble: the watch tells.
void KaiAnnotation::Log(const absl::Status& status) {
  if (absl::IsNotFound(status) || absl::IsAborted(status)) return;
  if (std::exchange(trouble_, status.code()) == status.code()) return;
  if (status.ok()) {
    spdlog::info("event=pods_annotated");
  } else {
    spdlog::warn("event=pod_not_annotated error={}", base::OneLine(std::string(status.message())));
  }
}

}  // namespace agent
