#include "agent/metrics.h"

#include <prometheus/client_metric.h>
#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/metric_family.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <chrono>
#include <mutex>
#include <sstream>
#include <utility>
#include <vector>

#include "agent/version.h"

namespace agent {
namespace {

using placement::Observation;
using prometheus::ClientMetric;
using prometheus::MetricFamily;
using Labels = std::vector<ClientMetric::Label>;

const prometheus::Histogram::BucketBoundaries kSeconds = {
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10};

// Why the kubelet did not answer, as the condition PodResourcesReachable has it.
const char* CauseOf(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kNotFound:
      return "socket_missing";
    case absl::StatusCode::kPermissionDenied:
      return "permission_denied";
    case absl::StatusCode::kUnavailable:
      return "not_answering";
    case absl::StatusCode::kResourceExhausted:
      return "rate_limited";
    case absl::StatusCode::kOutOfRange:
      return "reply_too_large";
    case absl::StatusCode::kUnimplemented:
      return "not_supported";
    case absl::StatusCode::kInvalidArgument:
      return "invalid_answer";
    default:
      return "failed";
  }
}

// Why a watch of the API server is not up to date (kube/api_error.h, kube/transport.h).
const char* CauseOfLoss(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kOutOfRange:
      return "expired";
    case absl::StatusCode::kPermissionDenied:
      return "forbidden";
    case absl::StatusCode::kUnimplemented:
      return "not_served";
    case absl::StatusCode::kDeadlineExceeded:
      return "silent";
    case absl::StatusCode::kUnknown:
      return "cut";
    case absl::StatusCode::kUnavailable:
      return "unavailable";
    default:
      return "failed";
  }
}

MetricFamily Gauges(std::string name, std::string help) {
  MetricFamily family;
  family.name = std::move(name);
  family.help = std::move(help);
  family.type = prometheus::MetricType::Gauge;
  return family;
}

void Add(Labels labels, double value, MetricFamily& family) {
  ClientMetric metric;
  metric.label = std::move(labels);
  metric.gauge.value = value;
  family.metric.push_back(std::move(metric));
}

MetricFamily PodsByAlignment(const Observation& observation) {
  MetricFamily family = Gauges(
      "plumbline_pods", "Pods that hold CPUs, memory or devices of their own, by alignment.");
  const placement::Summary& summary = observation.placement.summary;
  const std::pair<const char*, int> counts[] = {
      {"aligned", summary.aligned},       {"spread", summary.spread},
      {"misaligned", summary.misaligned}, {"unpinned", summary.unpinned},
      {"drifted", summary.drifted},       {"unknown", summary.unknown}};
  for (const auto& [alignment, count] : counts) Add({{"alignment", alignment}}, count, family);
  return family;
}

// Of NodeResourceTopology: what can be handed out on each NUMA node, and what of it is free.
std::vector<MetricFamily> Resources(const Observation& observation) {
  MetricFamily allocatable = Gauges("plumbline_numa_node_allocatable",
                                    "What pods can be given on a NUMA node: CPUs, bytes, devices.");
  MetricFamily available =
      Gauges("plumbline_numa_node_available", "What of it the next pod will find free.");
  if (!observation.nrt) return {};
  for (const placement::NrtZone& zone : observation.nrt->zones) {
    const auto node = placement::NumaNodeNamed(zone.name);
    if (!node) continue;
    for (const placement::NrtResource& resource : zone.resources) {
      const Labels labels = {{"numa_node", std::to_string(*node)}, {"resource", resource.name}};
      if (resource.allocatable) {
        Add(labels, static_cast<double>(*resource.allocatable), allocatable);
      }
      if (resource.available) Add(labels, static_cast<double>(*resource.available), available);
    }
  }
  return {std::move(allocatable), std::move(available)};
}

MetricFamily Resident(const Observation& observation) {
  MetricFamily family =
      Gauges("plumbline_container_resident_bytes",
             "Memory that a container with resources of its own has resident on a NUMA node.");
  for (const placement::PlacedPod& pod : observation.placement.pods) {
    for (const placement::PlacedContainer& container : pod.containers) {
      if (!container.kernel) continue;
      for (const auto& [node, bytes] : container.kernel->resident_bytes) {
        Add({{"namespace", pod.namespace_name},
             {"pod", pod.name},
             {"container", container.name},
             {"numa_node", std::to_string(node)}},
            static_cast<double>(bytes), family);
      }
    }
  }
  return family;
}

MetricFamily Conditions(const std::vector<placement::Condition>& conditions) {
  MetricFamily family =
      Gauges("plumbline_condition", "1 for the status that each condition of NodePlacement has.");
  for (const placement::Condition& condition : conditions) {
    Add({{"type", condition.type}, {"status", condition.status}, {"reason", condition.reason}}, 1,
        family);
  }
  return family;
}

}  // namespace

// What counts up is kept; what the last observation says is made from it when somebody asks.
class Metrics::Families {
 public:
  prometheus::Registry registry;
  prometheus::Family<prometheus::Counter>& errors =
      prometheus::BuildCounter()
          .Name("plumbline_podresources_errors_total")
          .Help("Questions that the kubelet did not answer, by cause.")
          .Register(registry);
  prometheus::Counter& lost_hints =
      prometheus::BuildCounter()
          .Name("plumbline_hints_lost_total")
          .Help("How often more changed at once than the kernel keeps hints of.")
          .Register(registry)
          .Add({});
  prometheus::Family<prometheus::Counter>& lost_watches =
      prometheus::BuildCounter()
          .Name("plumbline_watches_lost_total")
          .Help("How often a watch of the API server ended before its time, by object and cause.")
          .Register(registry);
  prometheus::Family<prometheus::Counter>& writes =
      prometheus::BuildCounter()
          .Name("plumbline_writes_total")
          .Help("Writes to the API server, by object and result.")
          .Register(registry);
  prometheus::Histogram& observation = prometheus::BuildHistogram()
                                           .Name("plumbline_observation_duration_seconds")
                                           .Help("How long a look at the node takes.")
                                           .Register(registry)
                                           .Add({}, kSeconds);
  prometheus::Counter& dropped_events =
      prometheus::BuildCounter()
          .Name("plumbline_events_dropped_total")
          .Help("Events about pods that could not be created, or were too many at once.")
          .Register(registry)
          .Add({});
  prometheus::Histogram& publication =
      prometheus::BuildHistogram()
          .Name("plumbline_publish_duration_seconds")
          .Help("How long it takes to publish, all writes together, failed ones too.")
          .Register(registry)
          .Add({}, kSeconds);
  prometheus::Counter& failures = prometheus::BuildCounter()
                                      .Name("plumbline_publish_failures_total")
                                      .Help("Attempts to publish that failed.")
                                      .Register(registry)
                                      .Add({});
  prometheus::Gauge& good_at =
      prometheus::BuildGauge()
          .Name("plumbline_last_good_observation_timestamp_seconds")
          .Help("When the kubelet last gave a good answer, as Unix time; 0: never.")
          .Register(registry)
          .Add({});
  prometheus::Gauge& build = prometheus::BuildGauge()
                                 .Name("plumbline_build_info")
                                 .Help("1, with the version of this agent.")
                                 .Register(registry)
                                 .Add({{"version", kVersion}});
  mutable std::mutex mutex;
  // Guarded by mutex:
  std::shared_ptr<const Observation> last;
  std::vector<placement::Condition> conditions;
};

Metrics::Metrics() : families_(std::make_unique<Families>()) { families_->build.Set(1); }
Metrics::~Metrics() = default;

void Metrics::Asked(const absl::Status& answer, double seconds) {
  families_->observation.Observe(seconds);
  if (!answer.ok()) families_->errors.Add({{"cause", CauseOf(answer)}}).Increment();
}

void Metrics::LostHints() { families_->lost_hints.Increment(); }

void Metrics::LostWatch(std::string_view objects, absl::StatusCode cause) {
  families_->lost_watches.Add({{"object", std::string(objects)}, {"cause", CauseOfLoss(cause)}})
      .Increment();
}

void Metrics::Observed(std::shared_ptr<const Observation> observation) {
  const std::lock_guard lock(families_->mutex);
  families_->last = std::move(observation);
}

void Metrics::Holds(std::vector<placement::Condition> conditions) {
  const std::lock_guard lock(families_->mutex);
  families_->conditions = std::move(conditions);
}

void Metrics::GoodAt(base::Time time) {
  families_->good_at.Set(std::chrono::duration<double>(time.time_since_epoch()).count());
}

void Metrics::Published(const absl::Status& status, double seconds) {
  families_->publication.Observe(seconds);
  if (!status.ok()) families_->failures.Increment();
}

void Metrics::Wrote(std::string_view object, std::string_view result) {
  families_->writes.Add({{"object", std::string(object)}, {"result", std::string(result)}})
      .Increment();
}

void Metrics::DroppedEvent() { families_->dropped_events.Increment(); }

std::string Metrics::Text() const {
  std::shared_ptr<const Observation> last;
  std::vector<placement::Condition> conditions;
  {
    const std::lock_guard lock(families_->mutex);
    last = families_->last;
    conditions = families_->conditions;
  }
  std::vector<MetricFamily> families = families_->registry.Collect();
  if (last != nullptr) {
    families.push_back(PodsByAlignment(*last));
    for (MetricFamily& family : Resources(*last)) families.push_back(std::move(family));
    families.push_back(Resident(*last));
  }
  if (!conditions.empty()) families.push_back(Conditions(conditions));
  std::ostringstream text;
  text.imbue(std::locale::classic());
  prometheus::TextSerializer().Serialize(text, families);
  return text.str();
}

}  // namespace agent
