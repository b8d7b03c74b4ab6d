// What the reader makes of those who are asked besides the kubelet's socket and files.
#include "agent/reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "test/agent/fake_node.h"
#include "test/fakes/clock.h"
#include "test/support/status.h"

namespace agent {
namespace {

using podresources::ConfigSource;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::Contains;
using testing::Field;
using testing::Not;

constexpr Hints kPoked{.anything = true};

auto HasCode(const std::string& code) { return Contains(Field(&base::Diagnostic::code, code)); }

std::string Configz(const std::string& policy) {
  return R"({"kubeletconfig":{"cpuManagerPolicy":"static","topologyManagerPolicy":")" + policy +
         R"("}})";
}

// A node whose configuration file says best-effort, and a kubelet that says what `Says` was told.
class ReaderTest : public testing::Test {
 protected:
  void SetUp() override {
    node_.WriteAll();
    node_.StartKubelet();
  }
  void Says(absl::StatusOr<std::string> answer) {
    answer_ = std::make_shared<const absl::StatusOr<std::string>>(std::move(answer));
  }
  void Start() {
    Sources sources = node_.sources();
    sources.podresources = recording_;
    reader_ = std::make_unique<Reader>(
        sources,
        ReaderOptions{.connect = {.deadline = milliseconds(2000), .attempts = 1},
                      .configz =
                          [this](const KubeletRun& run, milliseconds patience) {
                            if (run != asked_) answer_ = std::exchange(at_next_run_, nullptr);
                            asked_ = run;
                            longest_patience_ = std::max(longest_patience_, patience);
                            return answer_;
                          },
                      .kubelet_version = [this] { return version_; },
                      .node_refusal = [this] { return node_refusal_; },
                      .pods = [this] { return clock_.Now() < pods_at_ ? nullptr : pods_; },
                      .dra_devices = [this] { return dra_devices_; }},
        clock_);
    ASSERT_OK(reader_->Start());
  }
  bool Look() { return reader_->Again(kPoked).changed; }
  const podresources::KubeletConfig& config() { return reader_->facts().config; }
  std::string Policy() { return config().topology_policy.value.value_or("unknown"); }

  test::FakeNode node_;
  test::FakeClock clock_;
  std::shared_ptr<const absl::StatusOr<std::string>> answer_;
  std::shared_ptr<const absl::StatusOr<std::string>> at_next_run_;
  KubeletRun asked_;
  milliseconds longest_patience_{0};
  std::string version_;
  std::optional<std::string> recording_;  // instead of the kubelet's socket
  absl::Status node_refusal_;
  KnownPods pods_;
  base::Time pods_at_;  // when the API server has said it
  KnownDraDevices dra_devices_;
  std::unique_ptr<Reader> reader_;
};

TEST_F(ReaderTest, TakesTheKubeletsOwnWordOnItsConfigurationIfItComesInTime) {
  at_next_run_ = std::make_shared<const absl::StatusOr<std::string>>(Configz("restricted"));
  Start();
  EXPECT_EQ(Policy(), "restricted");
  EXPECT_EQ(config().topology_policy.source, ConfigSource::kConfigz);
  EXPECT_EQ(longest_patience_, milliseconds(300));
}

TEST_F(ReaderTest, GoesByTheFileUntilTheKubeletHasAnswered) {
  Start();
  EXPECT_EQ(Policy(), "best-effort");
  EXPECT_FALSE(Look());
  Says(Configz("restricted"));
  EXPECT_TRUE(Look());
  EXPECT_EQ(Policy(), "restricted");
  EXPECT_FALSE(Look());
}

TEST_F(ReaderTest, GoesByTheFileAndSaysSoIfTheKubeletCannotBeAsked) {
  Start();
  Says(absl::PermissionDeniedError("missing permission: get nodes/configz"));
  EXPECT_TRUE(Look());
  EXPECT_EQ(Policy(), "best-effort");
  EXPECT_THAT(config().diagnostics, HasCode("ConfigzUnreadable"));
  Says(Configz("restricted"));
  EXPECT_TRUE(Look());
  EXPECT_EQ(Policy(), "restricted");
  EXPECT_THAT(config().diagnostics, Not(HasCode("ConfigzUnreadable")));
}

TEST_F(ReaderTest, DoesNotMindAFileThatIsNewerThanTheKubeletsAnswer) {
  Start();
  Says(Configz("restricted"));
  Look();
  node_.tree().Put("var/lib/kubelet/config.yaml",
                   "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
                   "topologyManagerPolicy: none\n");
  clock_.Advance(seconds(2));
  EXPECT_FALSE(Look());
  EXPECT_EQ(Policy(), "restricted");
}

TEST_F(ReaderTest, KeepsTheValuesOfTheRunThroughAChangedFileAndAnotherRefusal) {
  Start();
  Says(absl::UnavailableError("no connection"));
  Look();
  node_.tree().Put("var/lib/kubelet/config.yaml",
                   "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
                   "topologyManagerPolicy: none\n");
  clock_.Advance(seconds(2));
  Look();
  Says(absl::UnavailableError("still no connection"));
  Look();
  EXPECT_EQ(Policy(), "best-effort");
}

TEST_F(ReaderTest, ForgetsTheAnswerOfAKubeletThatWasRestarted) {
  Start();
  Says(Configz("restricted"));
  Look();
  node_.StopKubelet();
  node_.StartKubelet();
  Look();
  clock_.Advance(Reader::kFirstPatience);
  EXPECT_TRUE(Look());
  EXPECT_EQ(Policy(), "best-effort");
  Look();
  Says(Configz("single-numa-node"));
  Look();
  EXPECT_EQ(Policy(), "single-numa-node");
}

TEST_F(ReaderTest, WentByTheFilesForAMomentUntilARestartedKubeletHadAnswered) {
  Start();
  Says(Configz("restricted"));
  Look();
  node_.StopKubelet();
  Look();
  clock_.Advance(seconds(5));
  Look();
  EXPECT_EQ(Policy(), "restricted") << "while none runs";
  node_.StartKubelet();
  Look();
  EXPECT_EQ(Policy(), "restricted");
  Look();
  Says(absl::UnavailableError("connection refused"));
  Look();
  EXPECT_EQ(Policy(), "restricted");
  EXPECT_THAT(config().diagnostics, Not(HasCode("ConfigzUnreadable")))
      << "it may be about to listen";
  Says(Configz("restricted"));
  Look();
  EXPECT_EQ(Policy(), "restricted");
  EXPECT_EQ(config().topology_policy.source, ConfigSource::kConfigz);
  EXPECT_THAT(config().diagnostics, Not(HasCode("ConfigzUnreadable")));
}

TEST_F(ReaderTest, GoesByTheFilesOfARestartedKubeletAtOnceIfTheySaySomethingNew) {
  Start();
  Says(Configz("restricted"));
  Look();
  node_.StopKubelet();
  node_.tree().Put("var/lib/kubelet/config.yaml",
                   "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
                   "topologyManagerPolicy: none\n");
  node_.StartKubelet();
  Look();
  EXPECT_EQ(Policy(), "none");
}

TEST_F(ReaderTest, GoesByTheFilesOfARestartedKubeletAtOnceIfItRefusesToSay) {
  Start();
  Says(Configz("restricted"));
  Look();
  node_.StopKubelet();
  at_next_run_ = std::make_shared<const absl::StatusOr<std::string>>(
      absl::PermissionDeniedError("missing permission: get nodes/configz"));
  node_.StartKubelet();
  Look();
  EXPECT_EQ(Policy(), "best-effort");
}

TEST_F(ReaderTest, KnowsTheNodesPodsOnceTheApiServerHasToldAndWhyItDoesNot) {
  Start();
  EXPECT_EQ(reader_->facts().api_pods, std::nullopt);
  pods_ = std::make_shared<const absl::StatusOr<std::vector<placement::ApiPod>>>(
      absl::PermissionDeniedError("missing permission: watch pods"));
  EXPECT_TRUE(Look());
  EXPECT_EQ(reader_->facts().api_pods, std::nullopt);
  EXPECT_THAT(reader_->facts().diagnostics, HasCode("NodePodsUnreadable"));
  pods_ = std::make_shared<const absl::StatusOr<std::vector<placement::ApiPod>>>(
      std::vector<placement::ApiPod>{{.namespace_name = "ml", .name = "llm-0", .uid = "uid-1"}});
  EXPECT_TRUE(Look());
  ASSERT_TRUE(reader_->facts().api_pods.has_value());
  EXPECT_EQ(reader_->facts().api_pods->at(0).uid, "uid-1");
  EXPECT_TRUE(reader_->facts().diagnostics.empty());
  EXPECT_FALSE(Look());
}

TEST_F(ReaderTest, BeganWithoutWhatTheApiServerSaidAMomentLater) {
  pods_ = std::make_shared<const absl::StatusOr<std::vector<placement::ApiPod>>>(
      std::vector<placement::ApiPod>{{.namespace_name = "ml", .name = "llm-0", .uid = "uid-1"}});
  pods_at_ = clock_.Now() + milliseconds(120);
  Start();
  EXPECT_TRUE(reader_->facts().api_pods.has_value());
  EXPECT_LT(clock_.Now(), pods_at_ + milliseconds(20));
}

TEST_F(ReaderTest, SaidNothingOfANodeThatItMayNotRead) {
  Start();
  node_refusal_ = absl::PermissionDeniedError("missing permission: watch nodes");
  EXPECT_TRUE(Look());
  EXPECT_THAT(reader_->facts().diagnostics, HasCode("NodeUnreadable"));
  EXPECT_FALSE(Look());
  node_refusal_ = absl::OkStatus();
  EXPECT_TRUE(Look());
  EXPECT_TRUE(reader_->facts().diagnostics.empty());
}

TEST_F(ReaderTest, ResolvesDraDevicesByWhatTheirDriverPublishes) {
  node_.tree().Put("answers.json",
                   R"({"list": {"podResources": [{"name": "llm-0", "namespace": "ml",
      "containers": [{"name": "main", "dynamicResources": [{"claimName": "net",
        "claimNamespace": "ml", "claimResources": [
          {"driverName": "dra.net", "poolName": "gpu-7", "deviceName": "eth1"}]}]}]}]}})");
  recording_ = node_.tree().Path("answers.json");
  Start();
  ASSERT_EQ(reader_->facts().device_hardware.size(), 1U);
  EXPECT_EQ(reader_->facts().device_hardware[0].claimed_node, std::nullopt);
  dra_devices_ = std::make_shared<const absl::StatusOr<DraDevices>>(
      DraDevices{{{.driver = "dra.net", .pool = "gpu-7", .name = "eth1"}, {.numa_node = 1}},
                 {{.driver = "dra.net", .pool = "another", .name = "eth1"}, {.numa_node = 0}}});
  EXPECT_TRUE(Look());
  EXPECT_EQ(reader_->facts().device_hardware[0].id, "gpu-7/eth1");
  EXPECT_EQ(reader_->facts().device_hardware[0].claimed_node, 1);
  EXPECT_FALSE(Look());
}

TEST_F(ReaderTest, SaysThatItMayNotReadWhatDriversPublishButNotThatThereIsNoSuchKind) {
  Start();
  dra_devices_ = std::make_shared<const absl::StatusOr<DraDevices>>(
      absl::PermissionDeniedError("missing permission: watch resourceslices.resource.k8s.io"));
  EXPECT_TRUE(Look());
  EXPECT_THAT(reader_->facts().diagnostics, HasCode("ResourceSlicesUnreadable"));
  dra_devices_ = std::make_shared<const absl::StatusOr<DraDevices>>(
      absl::UnimplementedError("HTTP 404: 404 page not found"));
  Look();
  EXPECT_TRUE(reader_->facts().diagnostics.empty());
}

TEST_F(ReaderTest, KnowsTheKubeletsVersionOnceTheNodeSaysIt) {
  Start();
  EXPECT_EQ(config().version.value, std::nullopt);
  version_ = "v1.37.2";
  EXPECT_TRUE(Look());
  EXPECT_EQ(config().version.value, "v1.37.2");
  EXPECT_FALSE(Look());
  Says(Configz("restricted"));
  Look();
  EXPECT_EQ(config().version.value, "v1.37.2");
}

}  // namespace
}  // namespace agent
