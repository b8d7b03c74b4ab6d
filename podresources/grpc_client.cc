// The only file that includes gRPC's headers.
#include <fmt/format.h>
#include <grpc/support/log.h>
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <random>
#include <string_view>
#include <utility>

#include "base/status_macros.h"
#include "podresources/client.h"
#include "podresources/decode.h"
#include "podresources/socket_check.h"
#include "proto/podresources.grpc.pb.h"

namespace podresources {
namespace {

using std::chrono::milliseconds;
using Deadline = std::chrono::system_clock::time_point;
using Stub = v1::PodResourcesLister::Stub;

static_assert(static_cast<int>(grpc::StatusCode::UNAUTHENTICATED) ==
              static_cast<int>(absl::StatusCode::kUnauthenticated));

constexpr milliseconds kFirstPause{200};  // four times as long each time, give or take half
constexpr milliseconds kPatienceWithStrangers{500};

bool Has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

// gRPC takes its target for a URI.
std::string Target(const std::string& socket) {
  std::string target = "unix:";
  for (const char c : socket) {
    const bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                       std::string_view("/-._~").find(c) != std::string_view::npos;
    target += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return target;
}

std::unique_ptr<Stub> NewStub(const ConnectOptions& options) {
  grpc::ChannelArguments arguments;
  // The kubelet's grpc-go refuses a socket's path here, which some releases of gRPC would send.
  arguments.SetString(GRPC_ARG_DEFAULT_AUTHORITY, "localhost");
  arguments.SetMaxReceiveMessageSize(options.max_message_bytes);
  // A new channel must not share the connection, or the failed attempt, of the one before it.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  // A local socket needs none of these.
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_SERVICE_CONFIG_DISABLE_RESOLUTION, 1);
  // The kubelet compresses nothing, and gRPC would unpack a few MiB to GiB before it looks at the
  // limit, whatever the deadline.
  arguments.SetInt(GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0);
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);  // retries are ours: they wait on our clock
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, std::numeric_limits<int>::max());
  arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  arguments.SetInt(GRPC_ARG_ENABLE_CHANNELZ, 0);
  return v1::PodResourcesLister::NewStub(grpc::CreateCustomChannel(
      Target(options.socket), grpc::InsecureChannelCredentials(), arguments));
}

absl::Status NotThere(const std::string& text, const std::string& said) {
  // gRPC's own word, and code, for a reply that it could not parse.
  if (Has(text, "No message returned")) {
    return absl::InvalidArgumentError(said + ": what it sent is no podresources message");
  }
  if (Has(text, "unknown service")) {
    return absl::UnimplementedError(
        said + "; it is older than 1.20 and has no podresources v1, or it is another server");
  }
  return absl::UnimplementedError(said);
}

// Errors of the kubelet that have no gRPC code: gates that are off, pods that it does not know.
// NotFound is for the latter alone: of List it would mean that there is no kubelet.
absl::Status PlainError(bool asks_for_one, const std::string& text, const std::string& said) {
  if (Has(text, "disabled")) return absl::UnimplementedError(said);
  if (asks_for_one && Has(text, "not found")) return absl::NotFoundError(said);
  return absl::UnavailableError(said);
}

// A status, and whether the same question may be answered in a moment.
struct Outcome {
  absl::Status status;
  bool passing = false;
};

class GrpcClient : public Client {
 public:
  GrpcClient(ConnectOptions options, base::Clock& clock)
      : options_(std::move(options)), clock_(clock) {}

  absl::StatusOr<Assignments> Read() override;
  absl::StatusOr<Pod> Get(const std::string& namespace_name, const std::string& name) override;

 private:
  // Asks until there is an answer that stays, at most `attempts` times.
  template <class Request, class Reply>
  absl::Status Ask(grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Reply*),
                   std::string_view name, const Request& request, Reply& reply);
  template <class Request, class Reply>
  Outcome AskOnce(grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Reply*),
                  std::string_view name, const Request& request, Reply& reply, Deadline until);
  // A stub for the socket file that is there now.
  absl::Status Dial();
  Outcome Explain(const grpc::Status& status, std::string_view name);
  Outcome ExplainUnavailable(const grpc::Status& status, std::string_view name);
  milliseconds Pause(int attempt);

  const ConnectOptions options_;
  base::Clock& clock_;
  std::unique_ptr<Stub> stub_;
  SocketIdentity identity_;  // of the socket file that stub_ connects to
  std::minstd_rand random_{std::random_device{}()};
};

absl::StatusOr<Assignments> GrpcClient::Read() {
  v1::ListPodResourcesResponse list;
  RETURN_IF_ERROR(Ask(&Stub::List, "List", v1::ListPodResourcesRequest(), list));
  v1::AllocatableResourcesResponse allocatable;
  const absl::Status answer = Ask(&Stub::GetAllocatableResources, "GetAllocatableResources",
                                  v1::AllocatableResourcesRequest(), allocatable);
  // Kubelet 1.20 does not have the call; 1.21 and 1.22 have it behind a gate.
  const bool has_allocatable = answer.code() != absl::StatusCode::kUnimplemented;
  if (has_allocatable) RETURN_IF_ERROR(answer);
  const v1::AllocatableResourcesResponse* const known = has_allocatable ? &allocatable : nullptr;
  if (const absl::Status size = CheckSize(list, known); !size.ok()) {
    return absl::OutOfRangeError(
        fmt::format("{}: {}", options_.socket, std::string(size.message())));
  }
  return Decode(list, known);
}

absl::StatusOr<Pod> GrpcClient::Get(const std::string& namespace_name, const std::string& name) {
  v1::GetPodResourcesRequest request;
  request.set_pod_namespace(namespace_name);
  request.set_pod_name(name);
  v1::GetPodResourcesResponse reply;
  RETURN_IF_ERROR(Ask(&Stub::Get, "Get", request, reply));
  if (!reply.has_pod_resources()) {
    return absl::InvalidArgumentError(
        fmt::format("the server on {} answered Get for pod {}/{} without a pod", options_.socket,
                    namespace_name, name));
  }
  base::Diagnostics diagnostics;
  return DecodePod(reply.pod_resources(), diagnostics);
}

template <class Request, class Reply>
absl::Status GrpcClient::Ask(grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&,
                                                          Reply*),
                             std::string_view name, const Request& request, Reply& reply) {
  // One for all attempts: a server that is slow to refuse must not be waited for each time.
  const auto until = std::chrono::system_clock::now() + options_.deadline;
  for (int attempt = 1;; ++attempt) {
    const Outcome outcome = AskOnce(method, name, request, reply, until);
    if (!outcome.passing || attempt >= options_.attempts) return outcome.status;
    const milliseconds pause = Pause(attempt);
    if (std::chrono::system_clock::now() + pause >= until) return outcome.status;
    clock_.Sleep(pause);
  }
}

template <class Request, class Reply>
Outcome GrpcClient::AskOnce(grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&,
                                                         Reply*),
                            std::string_view name, const Request& request, Reply& reply,
                            Deadline until) {
  if (const absl::Status dialled = Dial(); !dialled.ok()) {
    return {dialled, absl::IsUnavailable(dialled)};
  }
  grpc::ClientContext context;
  context.set_deadline(until);
  return Explain((stub_.get()->*method)(&context, request, &reply), name);
}

absl::Status GrpcClient::Dial() {
  ASSIGN_OR_RETURN(const SocketIdentity found, IdentifySocket(options_.socket));
  if (stub_ != nullptr && found == identity_) return absl::OkStatus();
  stub_ = nullptr;
  RETURN_IF_ERROR(TryConnect(options_.socket));
  stub_ = NewStub(options_);
  identity_ = found;
  return absl::OkStatus();
}

Outcome GrpcClient::Explain(const grpc::Status& status, std::string_view name) {
  const std::string text = status.error_message();
  const std::string said =
      fmt::format("{} on {}: the kubelet says \"{}\"", name, options_.socket, text);
  switch (status.error_code()) {
    case grpc::StatusCode::OK:
      return {};
    case grpc::StatusCode::UNAVAILABLE:
      return ExplainUnavailable(status, name);
    case grpc::StatusCode::DEADLINE_EXCEEDED:
      stub_ = nullptr;
      return {absl::UnavailableError(fmt::format("{} on {}: no answer within {} ms", name,
                                                 options_.socket, options_.deadline.count()))};
    case grpc::StatusCode::RESOURCE_EXHAUSTED:
      if (Has(text, "larger than max")) {
        return {absl::OutOfRangeError(fmt::format("{} on {}: the reply is above the limit: {}",
                                                  name, options_.socket, text))};
      }
      return {absl::ResourceExhaustedError(said +
                                           "; its rate limit is shared by all clients of the node"),
              true};
    case grpc::StatusCode::UNIMPLEMENTED:
      return {NotThere(text, said)};
    case grpc::StatusCode::UNKNOWN:
      return {PlainError(name == "Get", text, said)};
    case grpc::StatusCode::PERMISSION_DENIED:
    case grpc::StatusCode::UNAUTHENTICATED:
      return {absl::PermissionDeniedError(said)};
    default:
      return {absl::UnavailableError(
          fmt::format("{} (code {})", said, static_cast<int>(status.error_code())))};
  }
}

// The connection failed. gRPC has one word for it; the socket tells more.
Outcome GrpcClient::ExplainUnavailable(const grpc::Status& status, std::string_view name) {
  stub_ = nullptr;
  if (const absl::Status now = TryConnect(options_.socket); !now.ok()) {
    return {now, absl::IsUnavailable(now)};
  }
  const milliseconds patience = std::min(kPatienceWithStrangers, options_.deadline);
  if (const absl::Status stranger = CheckSpeaksHttp2(options_.socket, patience); !stranger.ok()) {
    return {stranger};
  }
  return {absl::UnavailableError(fmt::format("{} on {}: the connection failed: {}", name,
                                             options_.socket, status.error_message())),
          true};
}

milliseconds GrpcClient::Pause(int attempt) {
  milliseconds pause = kFirstPause;
  for (int i = 1; i < std::min(attempt, 5); ++i) pause *= 4;
  std::uniform_int_distribution<milliseconds::rep> jitter(pause.count() / 2, pause.count() * 3 / 2);
  return milliseconds(jitter(random_));
}

}  // namespace

std::unique_ptr<Client> Connect(ConnectOptions options, base::Clock& clock) {
  // gRPC writes what a server sends it to our stderr; all that matters is in its status as well.
  gpr_set_log_function([](gpr_log_func_args* /*line*/) {});
  return std::make_unique<GrpcClient>(std::move(options), clock);
}

}  // namespace podresources
