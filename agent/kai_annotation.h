#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "agent/annotation_plan.h"
#include "agent/metrics.h"
#include "agent/publisher.h"
#include "base/clock.h"
#include "kube/client.h"
#include "kube/watch.h"

namespace agent {

// Annotates the pods of the node with what they hold, as the KAI scheduler reads it
// (kai_placement.h), and takes the annotation away from those that hold nothing. A watch of the
// pods, metadata alone, tells what is written there; only what differs is written, also if others
// changed it. On a thread of its own, five a second at most: nobody waits for it.
class KaiAnnotation {
 public:
  static constexpr const char* kName = "kai.scheduler/numa-placement-observed";
  static constexpr std::chrono::milliseconds kPause{200};  // between two of them
  // How long after a refusal (a missing permission) the pods are watched again.
  static constexpr std::chrono::minutes kNotWatchedFor{10};

  // All of them outlive it.
  KaiAnnotation(kube::Client& client, base::Clock& clock, Metrics& metrics,
                const std::string& node_name);

  // What the pods hold by now, as it was published. Without NodeResourceTopology it is not known.
  // Returns at once. One thread calls.
  void Tell(const Publication& publication);

 private:
  // On the watch's thread.
  void Heard(const kube::WatchEvent& event);
  // On the thread of its own.
  void Run(const std::stop_token& stop);
  std::optional<AnnotatedPod> Next();
  void Annotate(AnnotatedPod pod, const std::stop_token& stop);
  void Log(const absl::Status& status);

  kube::Client& client_;
  base::Clock& clock_;
  Metrics& metrics_;
  absl::StatusCode trouble_ = absl::StatusCode::kOk;  // as it was logged; of the thread

  std::mutex mutex_;
  std::condition_variable_any changed_;
  // Guarded by it:
  AnnotationPlan plan_;
  bool news_ = false;

  // Last: they use the others.
  kube::Watch watch_;
  std::jthread thread_;
};

}  // namespace agent
