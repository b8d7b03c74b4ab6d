#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace demo {

enum class Method { kList, kGetAllocatableResources, kGet };

// A kubelet's podresources server, real gRPC on a real unix socket, that says what it is told to:
// for tests, and for showing Plumbline without a kubelet. All methods are safe for concurrent use,
// those that start and stop it apart.
class FakeKubelet {
 public:
  // Its replies, as podresources/replay.h reads them; asked anew at each call, so they may change.
  // An error is what the call fails with. A reply that is missing makes its call Unimplemented.
  using Answers = std::function<absl::StatusOr<std::string>()>;

  explicit FakeKubelet(std::string socket);
  FakeKubelet(std::string socket, Answers answers);
  ~FakeKubelet();
  FakeKubelet(const FakeKubelet&) = delete;
  FakeKubelet& operator=(const FakeKubelet&) = delete;

  // Listens, on a new socket file; an old one is replaced. Unavailable if it cannot.
  absl::Status Start();
  // Ends all calls and takes the socket file away.
  void Stop();
  // The file stays, and nobody listens on it: what a killed kubelet leaves.
  void StopAndLeaveSocket();

  // From now on these replies.
  void Serve(std::string replies);
  // The next calls of a method fail so.
  void Fail(Method method, int times, const absl::Status& with);
  // After that many calls, of any method, each is "rejected by rate limit"; -1: no limit.
  void LimitTo(int calls);
  // Calls wait until Release, or until their caller gives up.
  void Hold();
  void Release();
  // How many calls there were, refused ones too.
  int Calls(Method method) const;

 private:
  class Service;
  class Server;
  const std::string socket_;
  std::unique_ptr<Service> service_;
  std::unique_ptr<Server> server_;  // while it listens
};

}  // namespace demo
