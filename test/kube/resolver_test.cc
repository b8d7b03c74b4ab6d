// Run under ThreadSanitizer as well.
#include "kube/resolver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <memory>
#include <string>
#include <thread>

#include "test/support/status.h"

namespace kube {
namespace {

using test::StatusIs;
using testing::ElementsAre;

using Clock = std::chrono::steady_clock;

// A name server that says nothing until it is told to; then the number of the question.
class SilentServer {
 public:
  ~SilentServer() { Speak(); }
  void Speak() {
    if (!spoke_.exchange(true)) speak_->set_value();
  }
  int asked() const { return *asked_; }

  Resolver::LookUp LookUp() {
    // What the resolver's thread uses may outlive this.
    return [asked = asked_, told = speak_->get_future().share()](
               const std::string&) -> absl::StatusOr<Resolver::Addresses> {
      const int number = ++*asked;
      told.wait();
      return Resolver::Addresses{"10.0.0." + std::to_string(number)};
    };
  }

 private:
  std::atomic<bool> spoke_ = false;
  std::shared_ptr<std::promise<void>> speak_ = std::make_shared<std::promise<void>>();
  std::shared_ptr<std::atomic<int>> asked_ = std::make_shared<std::atomic<int>>(0);
};

Clock::time_point Soon() { return Clock::now() + std::chrono::milliseconds(50); }
Clock::time_point Late() { return Clock::now() + std::chrono::seconds(20); }

TEST(Resolver, DoesNotWaitLongerThanItMayForNameServersThatAreSilent) {
  SilentServer server;
  Resolver resolver("api.example", server.LookUp());
  const Clock::time_point begin = Clock::now();
  EXPECT_THAT(resolver.Resolve(Soon(), {}),
              StatusIs(absl::StatusCode::kDeadlineExceeded, "no answer in time"));
  EXPECT_LT(Clock::now() - begin, std::chrono::seconds(10));
}

TEST(Resolver, IsGoneAtOnceWhileALookUpGoesOn) {
  SilentServer server;
  {
    Resolver resolver("api.example", server.LookUp());
    EXPECT_FALSE(resolver.Resolve(Soon(), {}).ok());
  }
  server.Speak();
}

TEST(Resolver, StartsNoSecondLookUpWhileOneGoesOn) {
  SilentServer server;
  Resolver resolver("api.example", server.LookUp());
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(resolver.Resolve(Soon(), {}).ok());
  while (server.asked() == 0) std::this_thread::yield();
  EXPECT_EQ(server.asked(), 1);
}

TEST(Resolver, LooksUpAnewOnceItHasAnAnswer) {
  SilentServer server;
  server.Speak();
  Resolver resolver("api.example", server.LookUp());
  EXPECT_THAT(resolver.Resolve(Late(), {}).value(), ElementsAre("10.0.0.1"));
  EXPECT_THAT(resolver.Resolve(Late(), {}).value(), ElementsAre("10.0.0.2"));
}

TEST(Resolver, EndsAtOnceWhenStopped) {
  SilentServer server;
  Resolver resolver("api.example", server.LookUp());
  std::stop_source stop;
  std::jthread stopper([&] {
    while (server.asked() == 0) std::this_thread::yield();
    stop.request_stop();
  });
  EXPECT_THAT(resolver.Resolve(Late(), stop.get_token()),
              StatusIs(absl::StatusCode::kCancelled, "stopped"));
}

TEST(Resolver, AsksNobodyForAnAddress) {
  const auto never = [](const std::string&) -> absl::StatusOr<Resolver::Addresses> {
    return absl::InternalError("asked");
  };
  EXPECT_THAT(Resolver("10.96.0.1", never).Resolve(Late(), {}).value(), ElementsAre("10.96.0.1"));
  EXPECT_THAT(Resolver("fd00::1", never).Resolve(Late(), {}).value(), ElementsAre("fd00::1"));
  EXPECT_THAT(Resolver("api.example", never).Resolve(Late(), {}),
              StatusIs(absl::StatusCode::kInternal, "asked"));
}

TEST(Resolver, AsksTheSystem) {
  EXPECT_THAT(Resolver("localhost").Resolve(Late(), {}).value(),
              testing::IsSupersetOf({"127.0.0.1"}));
  EXPECT_THAT(Resolver("no-such-host.invalid").Resolve(Late(), {}),
              StatusIs(absl::StatusCode::kUnavailable, testing::Not("")));
}

}  // namespace
}  // namespace kube
