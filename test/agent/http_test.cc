#include "agent/http.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <httplib.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "test/fakes/clock.h"
#include "test/kube/pki.h"
#include "test/support/status.h"
#include "test/support/temp_tree.h"

namespace agent {
namespace {

using testing::HasSubstr;

// A client that writes what it likes.
class Line {
 public:
  explicit Line(int port) : socket_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    EXPECT_EQ(connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  }
  Line(const Line&) = delete;
  Line& operator=(const Line&) = delete;
  ~Line() { close(socket_); }

  bool Write(const std::string& bytes) const {
    return send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL) > 0;
  }
  // Until the other side has closed it.
  std::string ReadAll() const {
    std::string all;
    char buffer[4096];
    for (ssize_t got = 0; (got = recv(socket_, buffer, sizeof buffer, 0)) > 0;) {
      all.append(buffer, static_cast<std::size_t>(got));
    }
    return all;
  }

 private:
  const int socket_;
};

class HttpTest : public testing::Test {
 protected:
  void SetUp() override {
    auto server = ServeHttp({.address = "127.0.0.1", .port = 0, .certificate = "", .key = ""},
                            metrics_, health_, clock_);
    ASSERT_OK(server);
    server_ = *std::move(server);
  }
  httplib::Result Get(const std::string& path) {
    return httplib::Client("127.0.0.1", server_->port()).Get(path);
  }

  test::FakeClock clock_;
  Metrics metrics_;
  Health health_{clock_.Steady()};
  std::unique_ptr<HttpServer> server_;
};

TEST_F(HttpTest, GivesMetrics) {
  const httplib::Result answer = Get("/metrics");
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 200);
  EXPECT_THAT(answer->body, HasSubstr("plumbline_build_info"));
}

TEST_F(HttpTest, IsHealthyUntilTheLoopIsStuck) {
  EXPECT_EQ(Get("/healthz")->status, 200);
  clock_.Advance(Health::kStuck);
  EXPECT_EQ(Get("/healthz")->status, 503);
  health_.Stepped(clock_.Steady());
  EXPECT_EQ(Get("/healthz")->status, 200);
}

TEST_F(HttpTest, IsReadyOnceSomethingWasPublished) {
  EXPECT_EQ(Get("/readyz")->status, 503);
  health_.Published();
  EXPECT_EQ(Get("/readyz")->status, 200);
}

TEST_F(HttpTest, HasNothingElse) { EXPECT_EQ(Get("/")->status, 404); }

TEST_F(HttpTest, TakesNoHeadWithoutEnd) {
  for (const std::string& piece :
       {std::string(4096, 'a'), "X: " + std::string(4093, 'a') + "\r\n"}) {
    const Line line(server_->port());
    int written = 0;
    line.Write("GET /metrics HTTP/1.1\r\n");
    while (written < 4096 && line.Write(piece)) ++written;  // 16 MiB, if it takes them
    EXPECT_LT(written, 4096) << piece.substr(0, 3);
  }
}

TEST_F(HttpTest, AnswersWhileOthersSayNothing) {
  std::vector<std::unique_ptr<Line>> silent;
  for (int i = 0; i < 1000; ++i) {
    silent.push_back(std::make_unique<Line>(server_->port()));
    silent.back()->Write("GET /");
  }
  const auto begin = std::chrono::steady_clock::now();
  const httplib::Result answer = Get("/healthz");
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 200);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(4));
}

TEST_F(HttpTest, SaysWhichAddressIsNotToBeHad) {
  EXPECT_THAT(
      ServeHttp({.address = "127.0.0.1", .port = server_->port(), .certificate = "", .key = ""},
                metrics_, health_, clock_)
          .status(),
      test::StatusIs(absl::StatusCode::kUnavailable, HasSubstr("127.0.0.1")));
}

TEST_F(HttpTest, ListensOnAllAddressesOfBothFamilies) {
  const auto server = ServeHttp({}, metrics_, health_, clock_);
  ASSERT_OK(server);
  EXPECT_TRUE(httplib::Client("127.0.0.1", (*server)->port()).Get("/healthz"));
  const bool has_ipv6 = ServeHttp({.address = "::1", .port = 0, .certificate = "", .key = ""},
                                  metrics_, health_, clock_)
                            .ok();
  EXPECT_EQ(static_cast<bool>(httplib::Client("::1", (*server)->port()).Get("/healthz")), has_ipv6);
}

TEST_F(HttpTest, ServesByTlsAndWithTheNextCertificateOnceItIsThere) {
  test::TempTree tree;
  const test::Authority first;
  const test::Authority next;
  const auto use = [&](const test::Authority& authority) {
    const test::Issued own = authority.Issue("agent", "IP:127.0.0.1");
    tree.Put("tls.crt", own.certificate_pem).Put("tls.key", own.key_pem);
  };
  tree.Put("first.crt", first.certificate_pem()).Put("next.crt", next.certificate_pem());
  use(first);
  const auto server = ServeHttp({.address = "127.0.0.1",
                                 .port = 0,
                                 .certificate = tree.Path("tls.crt"),
                                 .key = tree.Path("tls.key")},
                                metrics_, health_, clock_);
  ASSERT_OK(server);
  const auto trusts = [&](const char* authority) {
    httplib::SSLClient client("127.0.0.1", (*server)->port());
    client.set_ca_cert_path(tree.Path(authority));
    return static_cast<bool>(client.Get("/healthz"));
  };
  EXPECT_TRUE(trusts("first.crt"));
  use(next);
  EXPECT_TRUE(trusts("next.crt"));
  EXPECT_FALSE(trusts("first.crt"));
  tree.Put("tls.crt", "half of i");
  EXPECT_TRUE(trusts("next.crt"));
}

TEST_F(HttpTest, AnswersAHeadWithoutItsBodyAndNothingElse) {
  httplib::Client client("127.0.0.1", server_->port());
  EXPECT_EQ(client.Head("/healthz")->status, 200);
  EXPECT_EQ(client.Post("/healthz")->status, 405);
}

TEST_F(HttpTest, RefusesACertificateThatIsNone) {
  EXPECT_THAT(
      ServeHttp({.address = "127.0.0.1", .port = 0, .certificate = "/none.pem", .key = "/none.pem"},
                metrics_, health_, clock_)
          .status(),
      test::StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("/none.pem")));
}

}  // namespace
}  // namespace agent
