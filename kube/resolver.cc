#include "kube/resolver.h"

#include <fmt/format.h>
#include <netdb.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <condition_variable>
#include <memory>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "absl/status/status.h"

namespace kube {
namespace {

absl::StatusOr<Resolver::Addresses> GetAddresses(const std::string& host, int flags) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags;
  addrinfo* first = nullptr;
  const int error = getaddrinfo(host.c_str(), nullptr, &hints, &first);
  if (error != 0) {
    return absl::UnavailableError(error == EAI_SYSTEM ? std::generic_category().message(errno)
                                                      : gai_strerror(error));
  }
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> found(first, freeaddrinfo);
  Resolver::Addresses addresses;
  for (const addrinfo* next = first; next != nullptr; next = next->ai_next) {
    std::array<char, NI_MAXHOST> text{};
    if (getnameinfo(next->ai_addr, next->ai_addrlen, text.data(), text.size(), nullptr, 0,
                    NI_NUMERICHOST) == 0) {
      addresses.emplace_back(text.data());
    }
  }
  if (addresses.empty()) return absl::UnavailableError("it has no address");
  return addresses;
}

}  // namespace

// Shared by those who wait and the thread that looks up.
struct Resolver::Question {
  std::mutex mutex;
  std::condition_variable_any answered;
  std::optional<absl::StatusOr<Addresses>> answer;  // guarded by it

  bool open() {
    const std::lock_guard lock(mutex);
    return !answer.has_value();
  }
  void Answer(absl::StatusOr<Addresses> addresses) {
    const std::lock_guard lock(mutex);
    answer = std::move(addresses);
    answered.notify_all();
  }
};

// The question that is being answered, or a new one.
std::shared_ptr<Resolver::Question> Resolver::Asked() {
  const std::lock_guard lock(mutex_);
  if (asked_ != nullptr && asked_->open()) return asked_;
  asked_ = std::make_shared<Question>();
  try {
    std::thread([question = asked_, host = host_, look_up = look_up_] {
      question->Answer(look_up(host));
    }).detach();
  } catch (const std::system_error& error) {
    asked_->Answer(absl::UnavailableError(fmt::format("no thread for it: {}", error.what())));
  }
  return asked_;
}

absl::StatusOr<Resolver::Addresses> Resolver::Resolve(Time until, const std::stop_token& stop) {
  if (stop.stop_requested()) return absl::CancelledError("stopped");
  // An address is itself, and nobody has to be asked.
  absl::StatusOr<Addresses> itself = GetAddresses(host_, AI_NUMERICHOST);
  if (itself.ok()) return itself;
  const std::shared_ptr<Question> question = Asked();
  std::unique_lock lock(question->mutex);
  question->answered.wait_until(lock, stop, until, [&] { return question->answer.has_value(); });
  if (question->answer) return *question->answer;
  if (stop.stop_requested()) return absl::CancelledError("stopped");
  return absl::DeadlineExceededError("no answer in time");
}

absl::StatusOr<Resolver::Addresses> Resolver::AskSystem(const std::string& host) {
  return GetAddresses(host, 0);
}

}  // namespace kube
