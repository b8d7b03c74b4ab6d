#include "demo/fake_kubelet.h"

#include <fmt/format.h>
#include <grpcpp/grpcpp.h>
#include <stdio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <utility>

#include "podresources/replay.h"
#include "proto/podresources.grpc.pb.h"

namespace demo {
namespace {

constexpr std::chrono::milliseconds kLookAgain{2};  // whether the caller of a held call is gone
constexpr std::chrono::milliseconds kGrace{100};    // for calls in flight when it stops

grpc::Status ToGrpc(const absl::Status& status) {
  return {static_cast<grpc::StatusCode>(status.code()), std::string(status.message())};
}

// grpc-go refuses clients whose authority is the path of the socket.
bool IsPathCharacter(char c) { return c == '/' || c == '%'; }

std::size_t Index(Method method) { return static_cast<std::size_t>(method); }

}  // namespace

class FakeKubelet::Service : public v1::PodResourcesLister::Service {
 public:
  explicit Service(Answers answers) : answers_(std::move(answers)) {}

  grpc::Status List(grpc::ServerContext* context, const v1::ListPodResourcesRequest* /*request*/,
                    v1::ListPodResourcesResponse* reply) override {
    v1::AllocatableResourcesResponse unused;
    return Answer(*context, Method::kList, *reply, unused);
  }

  grpc::Status GetAllocatableResources(grpc::ServerContext* context,
                                       const v1::AllocatableResourcesRequest* /*request*/,
                                       v1::AllocatableResourcesResponse* reply) override {
    v1::ListPodResourcesResponse unused;
    return Answer(*context, Method::kGetAllocatableResources, unused, *reply);
  }

  grpc::Status Get(grpc::ServerContext* context, const v1::GetPodResourcesRequest* request,
                   v1::GetPodResourcesResponse* reply) override {
    v1::ListPodResourcesResponse list;
    v1::AllocatableResourcesResponse unused;
    if (grpc::Status status = Answer(*context, Method::kGet, list, unused); !status.ok()) {
      return status;
    }
    for (v1::PodResources& pod : *list.mutable_pod_resources()) {
      if (pod.name() != request->pod_name() || pod.namespace_() != request->pod_namespace()) {
        continue;
      }
      *reply->mutable_pod_resources() = std::move(pod);
      return grpc::Status::OK;
    }
    // The kubelet's words, and no better code than this.
    return {grpc::StatusCode::UNKNOWN, fmt::format("pod {} in namespace {} not found",
                                                   request->pod_name(), request->pod_namespace())};
  }

  void Serve(Answers answers) {
    const std::lock_guard lock(mutex_);
    answers_ = std::move(answers);
  }
  void Fail(Method method, int times, const absl::Status& with) {
    const std::lock_guard lock(mutex_);
    for (int i = 0; i < times; ++i) failures_[Index(method)].push_back(with);
  }
  void LimitTo(int calls) {
    const std::lock_guard lock(mutex_);
    calls_left_ = calls;
  }
  void SetHeld(bool held) {
    const std::lock_guard lock(mutex_);
    held_ = held;
    changed_.notify_all();
  }
  int Calls(Method method) const {
    const std::lock_guard lock(mutex_);
    return calls_[Index(method)];
  }

 private:
  // What was scripted for this call, in the order of the kubelet: first its rate limit.
  absl::Status Admit(Method method) {
    ++calls_[Index(method)];
    if (calls_left_ == 0) return absl::ResourceExhaustedError("rejected by rate limit");
    if (calls_left_ > 0) --calls_left_;
    std::deque<absl::Status>& failures = failures_[Index(method)];
    if (failures.empty()) return absl::OkStatus();
    absl::Status failure = std::move(failures.front());
    failures.pop_front();
    return failure;
  }

  grpc::Status Answer(grpc::ServerContext& context, Method method,
                      v1::ListPodResourcesResponse& list,
                      v1::AllocatableResourcesResponse& allocatable) {
    const grpc::string_ref authority = context.ExperimentalGetAuthority();
    if (std::ranges::find_if(authority, IsPathCharacter) != authority.end()) {
      return {grpc::StatusCode::INTERNAL, "malformed authority"};
    }
    Answers answers;
    {
      std::unique_lock lock(mutex_);
      if (const absl::Status admitted = Admit(method); !admitted.ok()) return ToGrpc(admitted);
      while (held_ && !context.IsCancelled()) changed_.wait_for(lock, kLookAgain);
      answers = answers_;
    }
    const absl::StatusOr<std::string> replies = answers();
    if (!replies.ok()) return ToGrpc(replies.status());
    const absl::StatusOr<podresources::RepliesFound> found =
        podresources::ParseReplies(*replies, list, allocatable);
    if (!found.ok()) return ToGrpc(found.status());
    const bool there =
        method == Method::kGetAllocatableResources ? found->allocatable : found->list;
    if (!there) return {grpc::StatusCode::UNIMPLEMENTED, "unknown method"};
    return grpc::Status::OK;
  }

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  Answers answers_;
  std::array<std::deque<absl::Status>, 3> failures_;
  std::array<int, 3> calls_{};
  int calls_left_ = -1;  // until the rate limit; -1: no limit
  bool held_ = false;
};

class FakeKubelet::Server {
 public:
  explicit Server(std::unique_ptr<grpc::Server> server) : server_(std::move(server)) {}
  ~Server() { server_->Shutdown(std::chrono::system_clock::now() + kGrace); }

 private:
  std::unique_ptr<grpc::Server> server_;
};

FakeKubelet::FakeKubelet(std::string socket)
    : FakeKubelet(std::move(socket), [] { return R"({"list": {}, "allocatable": {}})"; }) {}

FakeKubelet::FakeKubelet(std::string socket, Answers answers)
    : socket_(std::move(socket)), service_(std::make_unique<Service>(std::move(answers))) {}

FakeKubelet::~FakeKubelet() { Stop(); }

absl::Status FakeKubelet::Start() {
  Stop();
  unlink(socket_.c_str());
  grpc::ServerBuilder builder;
  builder.AddListeningPort("unix:" + socket_, grpc::InsecureServerCredentials());
  builder.RegisterService(service_.get());
  builder.SetMaxSendMessageSize(-1);
  builder.SetSyncServerOption(grpc::ServerBuilder::NUM_CQS, 1);
  builder.SetSyncServerOption(grpc::ServerBuilder::MAX_POLLERS, 1);
  std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr) {
    return absl::UnavailableError(fmt::format("cannot listen on {}", socket_));
  }
  server_ = std::make_unique<Server>(std::move(server));
  return absl::OkStatus();
}

void FakeKubelet::Stop() {
  service_->SetHeld(false);
  server_ = nullptr;  // gRPC takes the file away
}

void FakeKubelet::StopAndLeaveSocket() {
  const std::string kept = socket_ + ".kept";
  unlink(kept.c_str());
  const bool linked = link(socket_.c_str(), kept.c_str()) == 0;
  Stop();
  if (linked) rename(kept.c_str(), socket_.c_str());
}

void FakeKubelet::Serve(std::string replies) {
  service_->Serve([replies = std::move(replies)] { return replies; });
}
void FakeKubelet::Fail(Method method, int times, const absl::Status& with) {
  service_->Fail(method, times, with);
}
void FakeKubelet::LimitTo(int calls) { service_->LimitTo(calls); }
void FakeKubelet::Hold() { service_->SetHeld(true); }
void FakeKubelet::Release() { service_->SetHeld(false); }
int FakeKubelet::Calls(Method method) const { return service_->Calls(method); }

}  // namespace demo
