#include "agent/configz.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "base/text.h"
#include "base/text_layout.h"
#include "kube/http_transport.h"
#include "kube/proxy.h"
#include "kube/tls.h"
#include "kube/transport.h"

namespace agent {
namespace {

constexpr std::size_t kMaxReply = std::size_t{1} << 20;  // real ones have 5 KiB
constexpr std::int64_t kMaxPem = std::int64_t{1} << 20;

// Where kubelets keep the certificate that they serve with (--cert-dir, which does not follow
// --root-dir): the one that the cluster signed and rotates, and the one that the kubelet signed
// itself; upstream and k0s.
constexpr std::array kOwnCertificates = {
    "/var/lib/kubelet/pki/kubelet-server-current.pem", "/var/lib/kubelet/pki/kubelet.crt",
    "/var/lib/k0s/kubelet/pki/kubelet-server-current.pem", "/var/lib/k0s/kubelet/pki/kubelet.crt"};

// A way to trust the kubelet.
struct Trust {
  kube::Pem authority;
  std::string name;   // that the certificate must be for; "" for the address
  std::string where;  // for people
};

std::vector<Trust> WaysToTrust(const base::FileTree& files, const kube::Pem& cluster_authority) {
  std::vector<Trust> ways = {
      {.authority = cluster_authority, .name = "", .where = "the cluster's authority"}};
  for (const char* const path : kOwnCertificates) {
    const absl::StatusOr<std::string> pem = files.Read(path, kMaxPem);
    if (!pem.ok()) continue;  // which of them there are differs from node to node
    absl::StatusOr<kube::ServerCertificate> own = kube::ReadServerCertificate(*pem);
    if (!own.ok()) continue;
    ways.push_back({.authority = {.text = std::move(own->pem)},
                    .name = std::move(own->name),
                    .where = files.Describe(path)});
  }
  return ways;
}

kube::Config ConfigFor(const std::string& address, int port, const Trust& trust,
                       const kube::Config& credentials) {
  kube::Config config = credentials;
  config.server =
      "https://" + kube::ToString(kube::HostPort{.host = address, .port = std::to_string(port)});
  config.tls_server_name = trust.name;
  config.certificate_authority = trust.authority;
  config.insecure_skip_tls_verify = false;
  config.proxy_url = "";  // this very node is not behind one
  return config;
}

std::string WhyForbidden(const std::string& said, const std::string& version) {
  if (said.find("configz") != std::string::npos) return "missing permission: get nodes/configz";
  // Before 1.33, or with the gate KubeletFineGrainedAuthz off.
  return fmt::format(
      "this kubelet ({}) takes nodes/configz for no permission and wants nodes/proxy, which is "
      "never asked for",
      version.empty() ? "of an unknown version" : version);
}

absl::StatusOr<std::string> Judge(kube::HttpReply reply, const NodeObject& node) {
  if (reply.status == 200) return std::move(reply.body);
  const std::string said(base::Trim(std::string_view(reply.body).substr(0, 200)));
  const std::string text =
      fmt::format("GET /configz of the kubelet: HTTP {}: {}", reply.status, said);
  switch (reply.status) {
    case 401:
      return absl::UnauthenticatedError(text +
                                        "; it takes no tokens of service accounts unless "
                                        "its authentication.webhook is enabled");
    case 403:
      return absl::PermissionDeniedError(
          fmt::format("{}; {}", text, WhyForbidden(said, node.kubelet_version)));
    default:
      return absl::UnavailableError(text);
  }
}

}  // namespace

absl::StatusOr<std::string> AskConfigz(const NodeObject& node, const base::FileTree& files,
                                       const ConfigzOptions& options, base::Clock& clock,
                                       const std::stop_token& stop) {
  if (node.addresses.empty() || node.kubelet_port == 0) {
    return absl::UnavailableError(
        node.exists ? "the Node does not say yet where its kubelet listens"
                    : "there is no Node object, which would say where its kubelet listens");
  }
  std::vector<std::string> failures;
  const base::Instant end = clock.Steady() + options.deadline;
  auto addresses_left = static_cast<int>(node.addresses.size());
  for (const std::string& address : node.addresses) {
    const base::Instant now = clock.Steady();
    const base::Instant until = now + (end - now) / addresses_left--;
    for (const Trust& trust : WaysToTrust(files, options.credentials.certificate_authority)) {
      const auto patience =
          std::chrono::duration_cast<std::chrono::milliseconds>(until - clock.Steady());
      if (patience.count() <= 0) break;
      const kube::Config config = ConfigFor(address, node.kubelet_port, trust, options.credentials);
      ASSIGN_OR_RETURN(const auto transport, kube::MakeTransport(config, clock));
      absl::StatusOr<kube::HttpReply> reply =
          transport->Send({.target = "/configz"}, patience, kMaxReply, stop);
      if (reply.ok()) return Judge(*std::move(reply), node);
      if (!absl::IsUnavailable(reply.status())) return reply.status();
      std::string failure =
          fmt::format("{} (by {})", std::string(reply.status().message()), trust.where);
      failures.push_back(std::move(failure));
    }
  }
  return absl::UnavailableError(fmt::format("{}", fmt::join(failures, "; ")));
}

Configz::Configz(Node node, base::FileTree files, base::Clock& clock, ConfigzOptions options,
                 std::function<void()> changed)
    : node_(std::move(node)),
      files_(std::move(files)),
      clock_(clock),
      options_(std::move(options)),
      changed_(std::move(changed)),
      thread_([this](const std::stop_token& stop) { Run(stop); }) {}

Configz::~Configz() {
  thread_.request_stop();
  const std::lock_guard lock(mutex_);
  pause_.request_stop();
}

Configz::Answer Configz::Of(const KubeletRun& run, std::chrono::milliseconds patience) {
  std::unique_lock lock(mutex_);
  if (run != run_) {
    run_ = run;
    answer_ = nullptr;
    pause_.request_stop();
    pause_ = std::stop_source();
    told_.notify_all();
  }
  // No kubelet runs: nobody will answer.
  if (run == KubeletRun()) return nullptr;
  if (patience.count() > 0) told_.wait_for(lock, patience, [this] { return answer_ != nullptr; });
  return answer_;
}

void Configz::Run(const std::stop_token& stop) {
  kube::Backoff backoff(options_.first_pause, options_.longest_pause, options_.random);
  KubeletRun asked;
  KubeletRun answered;
  while (const std::optional<Question> question = NextQuestion(answered, stop)) {
    const std::shared_ptr<const NodeObject> node = node_(stop);
    if (node == nullptr) return;
    absl::StatusOr<std::string> answer = AskConfigz(*node, files_, options_, clock_, stop);
    if (stop.stop_requested()) return;
    const bool ok = answer.ok();
    Put(std::move(answer), question->run);
    if (ok) {
      answered = question->run;
      continue;
    }
    if (asked != question->run) backoff.Reset();
    asked = question->run;
    clock_.Wait(backoff.Next(), question->until);
  }
}

std::optional<Configz::Question> Configz::NextQuestion(const KubeletRun& answered,
                                                       const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  const bool wanted =
      told_.wait(lock, stop, [&] { return run_ != KubeletRun() && run_ != answered; });
  if (!wanted || stop.stop_requested()) return std::nullopt;
  return Question{.run = run_, .until = pause_.get_token()};
}

void Configz::Put(absl::StatusOr<std::string> answer, const KubeletRun& of) {
  {
    const std::lock_guard lock(mutex_);
    if (run_ != of || (answer_ != nullptr && *answer_ == answer)) return;
    answer_ = std::make_shared<const absl::StatusOr<std::string>>(std::move(answer));
    if (answer_->ok()) {
      spdlog::info("event=configz state=read");
    } else {
      spdlog::warn("event=configz state=failed error={}",
                   base::OneLine(std::string(answer_->status().message())));
    }
  }
  told_.notify_all();
  changed_();
}

}  // namespace agent
