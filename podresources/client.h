#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "podresources/assignments.h"

namespace podresources {

// Questions to the kubelet. Every answer is whole or an error; an empty list means that the kubelet
// itself said so. Codes and what to do about them:
//   NotFound           no socket there (no kubelet, or another path)
//   PermissionDenied   the socket refuses us: file mode, or SELinux, which the message names
//   Unavailable        the kubelet is not answering: stopped, restarting, deadline passed, or an
//                      error of its own; try again
//   ResourceExhausted  its rate limit, shared by all clients of the node (100 a second); back off
//   OutOfRange         the reply is larger than our limit; trying again does not help
//   Unimplemented      this kubelet does not have the call
//   InvalidArgument    the path is no socket, or what answers is no podresources server
// The whole table is in docs/podresources.md.
class Client {
 public:
  virtual ~Client() = default;
  // List, and GetAllocatableResources where the kubelet has it.
  virtual absl::StatusOr<Assignments> Read() = 0;
  // One pod. NotFound if the kubelet does not know it, Unimplemented if the call is switched off.
  virtual absl::StatusOr<Pod> Get(const std::string& namespace_name, const std::string& name) = 0;
};

struct ConnectOptions {
  std::string socket = "/var/lib/kubelet/pod-resources/kubelet.sock";
  std::chrono::milliseconds deadline{10'000};  // for each call, with its attempts
  int max_message_bytes = 16 << 20;            // the kubelet's own clients use 16 MiB
  int attempts = 3;  // with back-off; a call whose deadline has passed is not made again
};

// Connects at the first question, and anew whenever the socket file has been replaced. One thread.
std::unique_ptr<Client> Connect(ConnectOptions options, base::Clock& clock);

// Answers from a JSON file instead: {"list": …, "allocatable": …}, the replies as protobuf's JSON
// mapping writes them (grpcurl does), or List's reply alone; read at each question. NotFound: no
// such file; InvalidArgument: what is wrong with it, and where.
std::unique_ptr<Client> Replay(std::string path);

}  // namespace podresources
