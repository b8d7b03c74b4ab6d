#include "agent/serve.h"

#include <pthread.h>
#include <spdlog/spdlog.h>

#include <chrono>
#include <csignal>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "absl/status/statusor.h"
#include "agent/api_publisher.h"
#include "agent/configz.h"
#include "agent/heartbeat.h"
#include "agent/http.h"
#include "agent/kai_annotation.h"
#include "agent/loop.h"
#include "agent/memory.h"
#include "agent/node_pods.h"
#include "agent/notice.h"
#include "agent/pod_events.h"
#include "agent/reader.h"
#include "agent/resource_slices.h"
#include "agent/sources.h"
#include "agent/this_node.h"
#include "agent/version.h"
#include "base/clock.h"
#include "base/status_macros.h"
#include "base/terminal.h"
#include "base/text_layout.h"
#include "kube/client.h"
#include "kube/config.h"
#include "kube/http_transport.h"

namespace agent {
namespace {

using std::chrono::milliseconds;

constexpr char kServiceAccount[] = "/var/run/secrets/kubernetes.io/serviceaccount";
constexpr char kDefaultNamespace[] = "plumbline-system";

// Blocked in every thread, so that it is one alone that waits for them. A log that nobody reads any
// more is no reason to stop.
sigset_t HoldSignals() {
  std::signal(SIGPIPE, SIG_IGN);
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  return signals;
}

absl::StatusOr<kube::Config> FindApiServer(const PublishOptions& options,
                                           const kube::Environment& environment) {
  if (options.kubeconfig) {
    return kube::LoadKubeconfig({*options.kubeconfig}, "", kube::Caller::kDaemon, environment);
  }
  absl::StatusOr<kube::Config> config = kube::InClusterConfig(environment, kServiceAccount);
  if (absl::IsNotFound(config.status())) {
    return absl::NotFoundError(std::string(config.status().message()) +
                               ": give --kubeconfig, or --dry-run to look once");
  }
  return config;
}

// The host's files, without which there is nothing to watch.
absl::StatusOr<Sources> OpenHost(const Options& options) {
  absl::StatusOr<Sources> sources = OpenSources(options);
  if (sources.ok() && !sources->files) {
    return absl::InvalidArgumentError(
        "--topology-xml: a recorded machine is published only with --root, or shown with "
        "--dry-run");
  }
  return sources;
}

// Which account's namespace, for the Lease.
std::string NamespaceOf(const PublishOptions& options, const kube::Config& config) {
  if (!options.name_space.empty()) return options.name_space;
  const bool in_pod = !options.kubeconfig && !config.default_namespace.empty();
  return in_pod ? config.default_namespace : kDefaultNamespace;
}

HttpOptions ToHttpOptions(const PublishOptions& options) {
  return {.address = options.metrics_address,
          .port = *options.metrics_port,
          .certificate = options.tls_certificate,
          .key = options.tls_key};
}

// Runs `loop` on a thread of its own until a signal comes. What was needed to start is given back.
template <class Loop>
void UntilSignal(const sigset_t& signals, const ProgramFiles& files, Notice& notice, Loop loop) {
  std::jthread thread(std::move(loop));
  const timespec while_it_starts{.tv_sec = 10, .tv_nsec = 0};
  int signal = sigtimedwait(&signals, nullptr, &while_it_starts);
  if (signal < 0) {
    files.GiveBackPages();
    sigwait(&signals, &signal);
  }
  spdlog::info("event=stopping signal={}", signal);
  thread.request_stop();
  notice.Poke();
}

// What the API server and the kubelet's own server tell of this node, while it is published.
class Cluster {
 public:
  // What is passed outlives it.
  Cluster(kube::Client& client, const kube::Config& credentials, const base::FileTree& files,
          base::Clock& clock, const std::string& node_name, const std::function<void()>& changed)
      : node_(client, node_name, changed),
        pods_(client, node_name, changed),
        slices_(client, node_name, changed),
        configz_([this](const std::stop_token& stop) { return node_.Await(stop); }, files, clock,
                 {.credentials = credentials}, changed) {}

  const ThisNode& node() const { return node_; }
  ReaderOptions ForReader() {
    return {.configz = [this](const KubeletRun& run,
                              milliseconds patience) { return configz_.Of(run, patience); },
            .kubelet_version = [this] { return node_.kubelet_version(); },
            .node_refusal = [this] { return node_.refusal(); },
            .pods = [this] { return pods_.Get(); },
            .dra_devices = [this] { return slices_.Get(); }};
  }

 private:
  ThisNode node_;
  NodePods pods_;
  ResourceSlices slices_;
  Configz configz_;
};

// Serves metrics and health, if that is asked for; nullptr otherwise.
absl::StatusOr<std::unique_ptr<HttpServer>> ServeIfAsked(const PublishOptions& options,
                                                         const Metrics& metrics,
                                                         const Health& health, base::Clock& clock) {
  if (!options.metrics_port) return nullptr;
  ASSIGN_OR_RETURN(std::unique_ptr<HttpServer> http,
                   ServeHttp(ToHttpOptions(options), metrics, health, clock));
  spdlog::info("event=serving port={}", http->port());
  return http;
}

// Watches the host; only polls it where the kernel grants no more.
absl::StatusOr<std::unique_ptr<Notice>> OpenNotice(const base::FileTree& files) {
  ASSIGN_OR_RETURN(std::unique_ptr<Notice> notice, Notice::Open(files));
  if (!notice->HasInotify()) {
    spdlog::warn(
        "event=no_inotify effect=\"changes are found by polling\" "
        "cause=\"no more instances: see fs.inotify.max_user_instances\"");
  }
  return notice;
}

// What tells of a pod, beside the two objects.
class PodNotes {
 public:
  PodNotes(kube::Client& client, base::Clock& clock, Metrics& metrics, const Options& options)
      : events_(client, clock, metrics, options.node_name) {
    if (options.publish.kai_annotation) {
      annotation_.emplace(client, clock, metrics, options.node_name);
    }
  }
  void Tell(const Publication& publication) {
    events_.Tell(publication);
    if (annotation_) annotation_->Tell(publication);
  }

 private:
  PodEvents events_;
  std::optional<KaiAnnotation> annotation_;
};

absl::Status Publish(const Options& options, const kube::Environment& environment,
                     const sigset_t& signals, const ProgramFiles& program) {
  base::SystemClock clock;
  ASSIGN_OR_RETURN(const kube::Config config, FindApiServer(options.publish, environment));
  ASSIGN_OR_RETURN(const std::unique_ptr<kube::Transport> transport,
                   kube::MakeTransport(config, clock,
                                       {.user_agent = std::string("plumbline-agent/") + kVersion}));
  ASSIGN_OR_RETURN(const Sources sources, OpenHost(options));
  ASSIGN_OR_RETURN(const std::unique_ptr<Notice> notice, OpenNotice(*sources.files));
  const auto poke = [&notice = *notice] { notice.Poke(); };
  Metrics metrics;
  Health health(clock.Steady());
  ASSIGN_OR_RETURN(const std::unique_ptr<HttpServer> http,
                   ServeIfAsked(options.publish, metrics, health, clock));

  kube::ClientOptions for_publishing = ApiPublisher::ForClient();
  for_publishing.watch_lost = [&metrics](const kube::Resource& resource, absl::StatusCode cause) {
    metrics.LostWatch(resource.plural, cause);
  };
  kube::Client publishing(*transport, clock, for_publishing);
  kube::Client client(*transport, clock, {.watch_lost = for_publishing.watch_lost});
  const std::string& node_name = options.node_name;
  Cluster cluster(client, config, *sources.files, clock, node_name, poke);
  const auto node_uid = [&cluster] { return cluster.node().uid(); };
  Reader reader(sources, cluster.ForReader(), clock);
  RETURN_IF_ERROR(reader.Start());
  PodNotes notes(client, clock, metrics, options);
  Heartbeat heartbeat(client, clock, metrics, health,
                      {.node_name = node_name,
                       .namespace_name = NamespaceOf(options.publish, config),
                       .node_uid = node_uid,
                       .random = kube::SystemRandom()});
  const std::jthread beats([&heartbeat](const std::stop_token& stop) { heartbeat.Run(stop); });
  spdlog::info("event=started version={} node={} server={}", kVersion, base::OneLine(node_name),
               config.server);

  UntilSignal(signals, program, *notice, [&](const std::stop_token& stop) {
    ApiPublisher publisher(
        publishing, clock, metrics,
        {.node_name = node_name,
         .nrt = options.publish.nrt,
         .node_uid = node_uid,
         .poke = poke,
         .written = [&notes](const Publication& publication) { notes.Tell(publication); },
         .stop = stop});
    Loop loop(reader, publisher, clock, metrics, health,
              {.poll_interval = options.publish.poll_interval,
               .capacity = [&cluster] { return cluster.node().capacity(); },
               .random = kube::SystemRandom()});
    Run(loop, reader, *notice, stop);
  });
  return absl::OkStatus();
}

}  // namespace

int Serve(const Options& options, const kube::Environment& environment) {
  KeepLittleFreeMemory();
  const sigset_t signals = HoldSignals();
  const ProgramFiles program;
  const absl::Status status = Publish(options, environment, signals, program);
  if (status.ok()) return kExitOk;
  base::Tell("plumbline-agent: " + base::OneLine(std::string(status.message())));
  return kExitWrongInput;
}

}  // namespace agent
