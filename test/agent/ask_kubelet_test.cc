#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <string>
#include <utility>

#include "agent/sources.h"
#include "test/support/status.h"

namespace agent {
namespace {

using podresources::Assignments;
using podresources::KubeletState;

constexpr int kThrice = 3;

// Does `at_read` at each question, as a kubelet does its work while it is asked.
class BusyKubelet : public podresources::Client {
 public:
  explicit BusyKubelet(std::function<absl::StatusOr<Assignments>(int)> at_read)
      : at_read_(std::move(at_read)) {}
  absl::StatusOr<Assignments> Read() override { return at_read_(++reads_); }
  absl::StatusOr<podresources::Pod> Get(const std::string& /*namespace_name*/,
                                        const std::string& /*name*/) override {
    return absl::UnimplementedError("not asked here");
  }
  int reads() const { return reads_; }

 private:
  std::function<absl::StatusOr<Assignments>(int)> at_read_;
  int reads_ = 0;
};

Assignments OnePod(const std::string& name) {
  Assignments assignments;
  assignments.pods = {
      {.namespace_name = "ml", .name = name, .containers = {}, .cpus = {}, .memory = {}}};
  return assignments;
}

KubeletState StateOf(const std::string& fingerprint) {
  KubeletState state;
  state.fingerprint = fingerprint;
  return state;
}

TEST(AskKubelet, AsksOnceWhenItsFilesStandStill) {
  BusyKubelet kubelet([](int) { return OnePod("llm-0"); });
  const Answer answer = AskKubelet(
      kubelet, [] { return StateOf("same"); }, kThrice);
  EXPECT_TRUE(answer.settled);
  EXPECT_EQ(kubelet.reads(), 1);
  EXPECT_EQ(answer.state.fingerprint, "same");
}

TEST(AskKubelet, AsksAgainWhenAFileChangedMeanwhileAndKeepsTheLaterAnswer) {
  std::string files = "before";
  BusyKubelet kubelet([&files](int read) {
    if (read == 1) files = "after";
    return OnePod(read == 1 ? "old" : "new");
  });
  const Answer answer = AskKubelet(
      kubelet, [&files] { return StateOf(files); }, kThrice);
  EXPECT_TRUE(answer.settled);
  EXPECT_EQ(kubelet.reads(), 2);
  ASSERT_OK(answer.assignments);
  EXPECT_EQ(answer.assignments->pods.front().name, "new");
  EXPECT_EQ(answer.state.fingerprint, "after");
}

TEST(AskKubelet, GivesUpAfterThreeReadingsAndSaysSo) {
  std::string files = "0";
  BusyKubelet kubelet([&files](int read) {
    files = std::to_string(read);
    return OnePod("llm-0");
  });
  const Answer answer = AskKubelet(
      kubelet, [&files] { return StateOf(files); }, kThrice);
  EXPECT_FALSE(answer.settled);
  EXPECT_EQ(kubelet.reads(), 3);
  EXPECT_OK(answer.assignments);
  EXPECT_EQ(answer.state.fingerprint, "3");
}

TEST(AskKubelet, DoesNotRepeatAQuestionThatFailed) {
  std::string files = "0";
  BusyKubelet kubelet([&files](int read) {
    files = std::to_string(read);
    return absl::UnavailableError("stopped");
  });
  const Answer answer = AskKubelet(
      kubelet, [&files] { return StateOf(files); }, kThrice);
  EXPECT_EQ(kubelet.reads(), 1);
  EXPECT_THAT(answer.assignments,
              test::StatusIs(absl::StatusCode::kUnavailable, testing::HasSubstr("stopped")));
}

}  // namespace
}  // namespace agent
