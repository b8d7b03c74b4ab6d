// Run under ThreadSanitizer as well.
#include "agent/configz.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <condition_variable>
#include <cstdint>
#include <future>
#include <mutex>
#include <utility>

#include "test/fakes/clock.h"
#include "test/kube/scripted_server.h"
#include "test/support/status.h"
#include "test/support/temp_tree.h"

namespace agent {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using test::Reply;
using test::StatusIs;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr char kTheAnswer[] = R"({"kubeletconfig":{}})";
constexpr char kOwnCertificate[] = "var/lib/kubelet/pki/kubelet.crt";

// A kubelet that listens with one of these certificates, and the node that it is on.
class AskConfigzTest : public testing::Test {
 protected:
  NodeObject NodeOf(const test::ScriptedServer& kubelet) const {
    return {.exists = true,
            .uid = "uid-1",
            .capacity = {},
            .not_understood = {},
            .addresses = {"127.0.0.1"},
            .kubelet_port = kubelet.port(),
            .kubelet_version = "v1.32.1"};
  }
  ConfigzOptions Options() const {
    return {.credentials = {.server = "https://api.test",
                            .certificate_authority = {.text = cluster_.certificate_pem()},
                            .token = "the-token"},
            .random = [] { return 1.0; }};
  }
  absl::StatusOr<std::string> Ask(const test::ScriptedServer& kubelet) {
    return AskConfigz(NodeOf(kubelet), tree_.Open(), Options(), clock_, {});
  }

  test::FakeClock clock_;
  test::TempTree tree_;
  const test::Authority cluster_;
  const test::Authority kubelets_own_;  // as a kubelet makes one up and forgets its key
  const test::Issued signed_by_cluster_ = cluster_.Issue("kubelet", "IP:127.0.0.1");
  const test::Issued self_signed_ = kubelets_own_.Issue("kubelet", "DNS:gpu-7");
};

TEST_F(AskConfigzTest, SendsTheTokenToAKubeletThatTheClusterVouchesFor) {
  test::ScriptedServer kubelet(test::ServerTls{.own = signed_by_cluster_});
  kubelet.Then(Reply(200, kTheAnswer));
  ASSERT_OK_AND_ASSIGN(const std::string answer, Ask(kubelet));
  EXPECT_EQ(answer, kTheAnswer);
  ASSERT_EQ(kubelet.requests().size(), 1U);
  EXPECT_EQ(kubelet.requests()[0].target, "/configz");
  EXPECT_EQ(kubelet.requests()[0].headers.at("authorization"), "Bearer the-token");
}

TEST_F(AskConfigzTest, TakesTheVeryCertificateThatTheKubeletKeepsOnThisNode) {
  test::ScriptedServer kubelet(test::ServerTls{.own = self_signed_});
  kubelet.Then(Reply(200, kTheAnswer));
  tree_.Put(kOwnCertificate, self_signed_.certificate_pem + kubelets_own_.certificate_pem());
  EXPECT_OK(Ask(kubelet));
}

TEST_F(AskConfigzTest, TakesARotatedCertificateFromTheFileThatAlsoHasItsKey) {
  const test::Issued rotated = kubelets_own_.Issue("system:node:gpu-7", "DNS:gpu-7,IP:10.0.0.7");
  test::ScriptedServer kubelet(test::ServerTls{.own = rotated});
  kubelet.Then(Reply(200, kTheAnswer));
  tree_.Put("var/lib/kubelet/pki/kubelet-server-current.pem",
            rotated.certificate_pem + rotated.key_pem);
  tree_.Put(kOwnCertificate, self_signed_.certificate_pem);  // of an earlier life
  EXPECT_OK(Ask(kubelet));
}

TEST_F(AskConfigzTest, SendsNoTokenToWhoeverCannotShowThatItIsTheKubelet) {
  const test::Authority stranger;
  for (const test::Issued& own :
       {stranger.Issue("kubelet", "IP:127.0.0.1,DNS:gpu-7"),
        // Signed by the same authority as the kubelet's own: not the very one.
        kubelets_own_.Issue("another", "DNS:gpu-7,IP:127.0.0.1")}) {
    test::ScriptedServer server(test::ServerTls{.own = own});
    server.Then(Reply(200, kTheAnswer));
    tree_.Put(kOwnCertificate, self_signed_.certificate_pem + kubelets_own_.certificate_pem());
    EXPECT_THAT(Ask(server),
                StatusIs(absl::StatusCode::kUnavailable,
                         AllOf(HasSubstr("is not trusted for 127.0.0.1"),
                               HasSubstr("(by the cluster's authority)"),
                               HasSubstr("is not trusted for gpu-7"), HasSubstr("kubelet.crt)"))));
    EXPECT_THAT(server.requests(), IsEmpty());
  }
}

TEST_F(AskConfigzTest, IsNotTalkedIntoTrustByTheSettingOfItsCredentials) {
  const test::Authority stranger;
  test::ScriptedServer server(test::ServerTls{.own = stranger.Issue("kubelet", "IP:127.0.0.1")});
  server.Then(Reply(200, kTheAnswer));
  ConfigzOptions options = Options();
  options.credentials.insecure_skip_tls_verify = true;
  EXPECT_THAT(AskConfigz(NodeOf(server), tree_.Open(), options, clock_, {}),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("not trusted")));
  EXPECT_THAT(server.requests(), IsEmpty());
}

TEST_F(AskConfigzTest, GoesOnToTheNextAddress) {
  test::ScriptedServer kubelet(test::ServerTls{.own = signed_by_cluster_});
  kubelet.Then(Reply(200, kTheAnswer));
  NodeObject node = NodeOf(kubelet);
  node.addresses = {"::1", "127.0.0.1"};
  EXPECT_OK(AskConfigz(node, tree_.Open(), Options(), clock_, {}));
}

// Somebody who takes connections at an address and then is silent.
class DeadEnd {
 public:
  DeadEnd(const char* address, int port) : socket_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in where{};
    where.sin_family = AF_INET;
    where.sin_port = htons(static_cast<std::uint16_t>(port));
    inet_pton(AF_INET, address, &where.sin_addr);
    listens_ = bind(socket_, reinterpret_cast<const sockaddr*>(&where), sizeof where) == 0 &&
               listen(socket_, 8) == 0;
  }
  DeadEnd(const DeadEnd&) = delete;
  DeadEnd& operator=(const DeadEnd&) = delete;
  ~DeadEnd() { close(socket_); }
  bool listens() const { return listens_; }

 private:
  const int socket_;
  bool listens_ = false;
};

TEST_F(AskConfigzTest, WaitedTheWholeDeadlineForEachDeadAddressAndEachCertificate) {
  test::ScriptedServer kubelet(test::ServerTls{.own = signed_by_cluster_});
  kubelet.Then(Reply(200, kTheAnswer));
  const DeadEnd first("127.0.0.2", kubelet.port());
  const DeadEnd second("127.0.0.3", kubelet.port());
  ASSERT_TRUE(first.listens() && second.listens());
  tree_.Put(kOwnCertificate, self_signed_.certificate_pem);
  NodeObject node = NodeOf(kubelet);
  node.addresses = {"127.0.0.2", "127.0.0.3", "127.0.0.1"};
  ConfigzOptions options = Options();
  options.deadline = seconds(3);
  base::SystemClock clock;
  const base::Instant begin = clock.Steady();
  EXPECT_OK(AskConfigz(node, tree_.Open(), options, clock, {}));
  EXPECT_LT(clock.Steady() - begin, seconds(6)) << "12 s for two, by two certificates each";
}

TEST_F(AskConfigzTest, NamesThePermissionThatIsMissing) {
  test::ScriptedServer kubelet(test::ServerTls{.own = signed_by_cluster_});
  kubelet.Then(Reply(403,
                     "Forbidden (user=me, verb=get, resource=nodes, "
                     "subresource(s)=[configz proxy])\n"));
  EXPECT_THAT(Ask(kubelet), StatusIs(absl::StatusCode::kPermissionDenied,
                                     HasSubstr("missing permission: get nodes/configz")));
}

TEST_F(AskConfigzTest, SaysThatAnOldKubeletWantsMoreThanIsAskedFor) {
  test::ScriptedServer kubelet(test::ServerTls{.own = signed_by_cluster_});
  kubelet.Then(Reply(403, "Forbidden (user=me, verb=get, resource=nodes, subresource=proxy)"));
  EXPECT_THAT(Ask(kubelet), StatusIs(absl::StatusCode::kPermissionDenied,
                                     AllOf(HasSubstr("(v1.32.1)"), HasSubstr("never asked for"))));
}

TEST_F(AskConfigzTest, SaysWhyAKubeletTakesNoTokens) {
  test::ScriptedServer kubelet(test::ServerTls{.own = signed_by_cluster_});
  kubelet.Then(Reply(401, "Unauthorized")).Then(Reply(404, "404 page not found"));
  EXPECT_THAT(Ask(kubelet),
              StatusIs(absl::StatusCode::kUnauthenticated, HasSubstr("authentication.webhook")));
  EXPECT_THAT(Ask(kubelet), StatusIs(absl::StatusCode::kUnavailable, HasSubstr("HTTP 404")));
}

TEST_F(AskConfigzTest, SaysThatTheNodeDoesNotTellWhereItsKubeletIs) {
  const auto ask = [this](const NodeObject& node) {
    return AskConfigz(node, tree_.Open(), Options(), clock_, {});
  };
  EXPECT_THAT(ask({}), StatusIs(absl::StatusCode::kUnavailable, HasSubstr("no Node object")));
  NodeObject silent;
  silent.exists = true;
  EXPECT_THAT(ask(silent), StatusIs(absl::StatusCode::kUnavailable, HasSubstr("does not say yet")));
}

class ConfigzTest : public AskConfigzTest {
 protected:
  static constexpr milliseconds kPatience{10'000};  // for what comes at once

  std::unique_ptr<Configz> Start() {
    auto node = std::make_shared<const NodeObject>(NodeOf(kubelet_));
    return std::make_unique<Configz>([node](const std::stop_token&) { return node; }, tree_.Open(),
                                     clock_, Options(),
                                     [this] {
                                       const std::lock_guard lock(mutex_);
                                       ++changes_;
                                       changed_.notify_all();
                                     });
  }
  // How many there were, once there were so many; fewer after 10 s.
  int AwaitChanges(int count) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, seconds(10), [&] { return changes_ >= count; });
    return changes_;
  }

  const KubeletRun first_{.process = "42@500", .socket = "1"};
  const KubeletRun second_{.process = "43@900", .socket = "2"};
  test::ScriptedServer kubelet_{test::ServerTls{.own = signed_by_cluster_}};
  std::mutex mutex_;
  std::condition_variable changed_;
  int changes_ = 0;
};

TEST_F(ConfigzTest, AsksOnceInEachRunOfTheKubelet) {
  kubelet_.Then(Reply(200, "first")).Then(Reply(200, "second"));
  const auto configz = Start();
  Configz::Answer answer = configz->Of(first_, kPatience);
  ASSERT_NE(answer, nullptr);
  EXPECT_EQ(**answer, "first");
  EXPECT_EQ(configz->Of(first_, {}), answer);
  answer = configz->Of(second_, kPatience);
  ASSERT_NE(answer, nullptr);
  EXPECT_EQ(**answer, "second");
  EXPECT_EQ(kubelet_.requests().size(), 2U);
  EXPECT_EQ(AwaitChanges(2), 2);
}

TEST_F(ConfigzTest, DoesNotKeepWhoAsksLongerThanHisPatience) {
  const auto configz = Start();  // a kubelet that takes questions and is silent
  EXPECT_EQ(configz->Of(first_, {}), nullptr);
  EXPECT_EQ(configz->Of(first_, milliseconds(20)), nullptr);
}

TEST_F(ConfigzTest, AsksNobodyWhereNoKubeletRuns) {
  const auto configz = Start();
  EXPECT_EQ(configz->Of({}, kPatience), nullptr);
  EXPECT_THAT(kubelet_.requests(), IsEmpty());
}

TEST_F(ConfigzTest, AsksAgainWithPausesThatGrowAndSaysWhatChanged) {
  for (int i = 0; i < 8; ++i) kubelet_.Then(Reply(403, "configz"));
  kubelet_.Then(Reply(200, "at last"));
  const auto configz = Start();
  const Configz::Answer refusal = configz->Of(first_, kPatience);
  ASSERT_NE(refusal, nullptr);
  EXPECT_EQ(AwaitChanges(2), 2);  // the same refusal is no change
  EXPECT_EQ(**configz->Of(first_, {}), "at last");
  EXPECT_THAT(clock_.pauses(), ElementsAre(seconds(5), seconds(10), seconds(20), seconds(40),
                                           seconds(80), seconds(160), seconds(300), seconds(300)));
}

TEST_F(ConfigzTest, DoesNotTakeAnAnswerForThatOfAnotherRun) {
  kubelet_.Then(Reply(200, "to the question about the first")).Then(Reply(200, "of the second"));
  std::promise<void> asked;
  std::promise<void> restarted;
  auto node = std::make_shared<const NodeObject>(NodeOf(kubelet_));
  bool first_question = true;
  Configz configz(
      [&](const std::stop_token&) {
        if (std::exchange(first_question, false)) {
          asked.set_value();
          restarted.get_future().wait();
        }
        return node;
      },
      tree_.Open(), clock_, Options(), [] {});
  EXPECT_EQ(configz.Of(first_, {}), nullptr);
  asked.get_future().wait();
  EXPECT_EQ(configz.Of(second_, {}), nullptr);
  restarted.set_value();
  const Configz::Answer answer = configz.Of(second_, kPatience);
  ASSERT_NE(answer, nullptr);
  EXPECT_EQ(**answer, "of the second");
}

}  // namespace
}  // namespace agent
